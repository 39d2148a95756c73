"""Speed, as ratios within one run: `make bench`. Nothing here is a test, for a busy machine must not fail one."""
