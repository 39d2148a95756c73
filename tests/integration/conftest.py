"""One real S3 server and one real Prefect API for all integration tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import s3_server
from tests.s3_server import S3Server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running server with the bucket `zone`; where it is and who may use it stand in the environment."""
    with (
        s3_server.running(tmp_path_factory.mktemp("s3")) as server,
        pytest.MonkeyPatch.context() as environment,
    ):
        for name, value in server.environment.items():
            environment.setenv(name, value)
        yield server


@pytest.fixture(scope="session")
def prefect_api() -> Iterator[str]:
    """One temporary Prefect API with a database of its own."""
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        url = PREFECT_API_URL.value()
        assert url is not None
        yield url
