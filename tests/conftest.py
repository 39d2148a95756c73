"""Settings that all tests share, and a model server for those that need one."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.stub_llm import StubLlm, running

# A property holds or it does not, however busy the machine is: no test fails for the time one example took.
settings.register_profile("sessionmill", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sessionmill")


@pytest.fixture
def stub_llm() -> Iterator[StubLlm]:
    """A model server on loopback, with nothing served yet."""
    with running() as stub:
        yield stub
