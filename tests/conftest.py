"""Settings that all tests share."""

from hypothesis import HealthCheck, settings

# A property holds or it does not, however busy the machine is: no test fails for the time one example took.
settings.register_profile("sessionmill", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sessionmill")
