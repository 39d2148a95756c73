"""What data is: the models and codecs of every format, and the error tree. No I/O."""
