"""Objects in a real S3 server: beside what every store does, lost replies, busy servers and wrong credentials."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from schemas.errors import ConfigurationRejected, ObjectExists, ObjectMissing, ObjectTooLarge, StoreUnavailable
from storage.objects import StoreSettings, open_store
from storage.s3 import S3Store
from tests.integration.fault_proxy import FaultProxy, cut, lose_reply, proxy_to, refuse, reset
from tests.s3_server import S3Server
from tests.store_behaviour import StoreBehaviour
from tests.store_race import race

_number = itertools.count()


@pytest.fixture
def place(s3: S3Server) -> str:
    """A prefix nobody else uses."""
    return f"zone/t{next(_number)}-{os.getpid()}"


@pytest.fixture
def store(place: str) -> S3Store:
    return S3Store(place)


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with proxy_to(s3.port) as running:
        yield running


def through(proxy: FaultProxy, place: str, *, attempts: int = 4) -> S3Store:
    return S3Store(place, StoreSettings(endpoint_url=proxy.endpoint, attempts=attempts, backoff_seconds=0.01))


class TestS3Store(StoreBehaviour):
    """The bucket does what every store does."""


def test_lost_reply_of_a_create_is_resolved_as_success(place: str, store: S3Store, proxy: FaultProxy) -> None:
    proxy.faults = [lose_reply, lose_reply]
    through(proxy, place).create("x", b"mine")
    assert store.read("x") == b"mine"
    assert [request.method for request in proxy.seen].count("PUT") == 3


def test_lost_reply_that_the_client_resends_by_itself_is_still_success(place: str, proxy: FaultProxy) -> None:
    writer = through(proxy, place)
    writer.create("warm", b"keeps the connection")
    proxy.faults = [lose_reply]
    writer.create("x", b"mine")
    with pytest.raises(ObjectExists):
        writer.create("x", b"mine")


def test_lost_reply_where_another_won_is_exists(place: str, store: S3Store, proxy: FaultProxy) -> None:
    store.create("x", b"theirs")
    proxy.faults = [lose_reply]
    with pytest.raises(ObjectExists):
        through(proxy, place).create("x", b"mine")
    assert store.read("x") == b"theirs"


def test_lost_reply_of_the_last_try_is_looked_up(place: str, store: S3Store, proxy: FaultProxy) -> None:
    proxy.faults = [lose_reply] * 10
    through(proxy, place, attempts=2).create("x", b"mine")
    assert store.read("x") == b"mine"


def test_nothing_is_looked_at_before_a_create(place: str, proxy: FaultProxy) -> None:
    through(proxy, place).create("x", b"mine")
    assert [request.method for request in proxy.seen] == ["PUT"]
    head = proxy.seen[0].raw.lower()
    assert b"if-none-match: *" in head
    assert b"x-amz-checksum-sha256: " in head


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("409 Conflict", "ConditionalRequestConflict"),
        ("500 Internal Server Error", "InternalError"),
        ("503 Slow Down", "SlowDown"),
        ("429 Too Many Requests", "TooManyRequests"),
        ("400 Bad Request", "BadDigest"),
    ],
)
def test_busy_server_is_asked_again(place: str, store: S3Store, proxy: FaultProxy, status: str, code: str) -> None:
    proxy.faults = [refuse(status, code)] * 3
    through(proxy, place).create("x", b"mine")
    assert store.read("x") == b"mine"


def test_server_that_stays_busy_is_unavailable_after_bounded_tries(place: str, proxy: FaultProxy) -> None:
    proxy.faults = [refuse("503 Slow Down", "SlowDown")] * 100
    with pytest.raises(StoreUnavailable) as failed:
        through(proxy, place, attempts=3).create("x", b"mine")
    assert (failed.value.key, failed.value.operation) == ("x", "create")
    assert [request.method for request in proxy.seen].count("PUT") == 3


def test_reads_survive_dropped_connections_and_cut_bodies(place: str, store: S3Store, proxy: FaultProxy) -> None:
    store.create("x", b"0123456789" * 1000)
    proxy.methods = ("GET",)
    reader = through(proxy, place, attempts=6)
    proxy.faults = [reset, cut, refuse("500 Internal Server Error", "InternalError")]
    assert reader.read("x") == b"0123456789" * 1000
    proxy.faults = [cut, reset]
    assert reader.read_range("x", 5, 10) == b"5678901234"
    proxy.faults = [reset, refuse("503 Slow Down", "SlowDown")]
    assert [stat.key for stat in reader.list("")] == ["x"]


def test_store_without_conditional_writes_is_refused(place: str, proxy: FaultProxy) -> None:
    proxy.faults = [refuse("501 Not Implemented", "NotImplemented")] * 100
    with pytest.raises(ConfigurationRejected, match="NotImplemented"):
        through(proxy, place).create("x", b"mine")


def test_nobody_listening_is_unavailable(place: str) -> None:
    settings = StoreSettings(endpoint_url="http://127.0.0.1:9", attempts=2, backoff_seconds=0.01)
    for call in (S3Store(place, settings).read, S3Store(place, settings).stat, S3Store(place, settings).delete):
        with pytest.raises(StoreUnavailable):
            call("x")


def test_waiting_is_said_once_a_request_and_without_what_follows_the_host(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = S3Store(place, StoreSettings(endpoint_url="http://127.0.0.1:9", attempts=5, backoff_seconds=0.01))
    with caplog.at_level("INFO", "sessionmill"), pytest.raises(StoreUnavailable) as failed:
        store.list("")
    (said,) = caplog.messages
    assert said.startswith(f"{store.url} does not answer (")
    assert said.endswith("; trying again")
    for text in (said, str(failed.value)):
        assert "http://127.0.0.1:9" in text
        assert "?" not in text


def test_missing_bucket_is_wrong_use(s3: S3Server) -> None:
    absent = S3Store("no-such-bucket/x")
    for call in (absent.check_root, lambda: absent.list(""), lambda: absent.read("x")):
        with pytest.raises(ConfigurationRejected, match="there is no such bucket"):
            call()


def test_folder_that_became_empty_is_no_object_and_no_listing(place: str) -> None:
    """SeaweedFS keeps the folder of deleted objects, and says of its name both "exists" and "no such object"."""
    store = S3Store(place, StoreSettings(attempts=2, backoff_seconds=0.01))
    store.create("p/q/x", b"1")
    store.delete("p/q/x")
    assert store.list("p/") == []
    assert store.stat("p") is None
    assert store.stat("p/q") is None
    with pytest.raises(ObjectMissing):
        store.read("p/q")
    with pytest.raises(ObjectExists):
        store.create("p/q", b"")
    store.create("p/q/x", b"2")
    assert store.read("p/q/x") == b"2"


def test_listing_of_more_than_one_page(store: S3Store) -> None:
    keys = [f"many/{number:04d}" for number in range(1100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.create(key, b""), keys))
    assert [stat.key for stat in store.list("many/")] == keys
    assert [stat.key for stat in store.children("many/")[1]] == keys


def test_object_above_the_limit_is_not_read(place: str, store: S3Store) -> None:
    store.create("big", b"0123456789x")
    small = S3Store(place, StoreSettings(max_object_bytes=10))
    with pytest.raises(ObjectTooLarge) as refused:
        small.read("big")
    assert (refused.value.size, refused.value.limit) == (11, 10)
    with pytest.raises(ObjectTooLarge):
        small.create("new", b"0123456789x")
    assert small.read_range("big", 5, 10) == b"56789x"


def test_large_object_is_one_conditional_write(store: S3Store) -> None:
    data = os.urandom(1 << 20) * 110  # above the size at which s3fs would have sent parts
    store.create("large", data)
    with pytest.raises(ObjectExists):
        store.create("large", b"other")
    assert store.read("large") == data


def test_two_processes_create_one_key_twenty_times(store: S3Store) -> None:
    winners = race(store.url, 20)
    assert [len(each) for each in winners] == [1] * 20
    assert [store.read(f"race/{n:04d}") for n in range(20)] == [str(won[0]).encode() * 1000 for won in winners]


def _read_in_child(url: str, key: str, answers: multiprocessing.SimpleQueue[bytes]) -> None:
    answers.put(open_store(url).read(key))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_process_reads_with_a_client_of_its_own(store: S3Store) -> None:
    store.create("x", b"before the fork")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_read_in_child, args=(store.url, "x", answers))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert answers.get() == b"before the fork"


PROBE = """
import sys
from schemas.errors import SessionmillError
from storage.objects import StoreSettings, open_store
try:
    print(open_store(sys.argv[1], settings=StoreSettings(attempts=2)).list(""))
except SessionmillError as error:
    print(type(error).__name__, error)
"""


def _probe(url: str, **changes: str | None) -> str:
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "AWS_EC2_METADATA_DISABLED": "true"}
    for name, value in changes.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE, url], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_wrong_secret_is_wrong_use_and_is_not_repeated(store: S3Store) -> None:
    said = _probe(store.url, AWS_SECRET_ACCESS_KEY="not-the-secret")
    assert said.startswith("ConfigurationRejected")
    assert "the credentials were refused: SignatureDoesNotMatch (HTTP 403)" in said
    assert "not-the-secret" not in said


def test_no_credentials_is_wrong_use(store: S3Store) -> None:
    nowhere = {"AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_CONFIG_FILE": "/nonexistent"}
    said = _probe(store.url, AWS_SECRET_ACCESS_KEY=None, AWS_ACCESS_KEY_ID=None, **nowhere)
    assert said.startswith("ConfigurationRejected")
    assert "there are no credentials" in said


def test_endpoint_comes_from_the_environment_and_the_process_ends_quietly(store: S3Store) -> None:
    assert _probe(store.url) == "[]\n"
