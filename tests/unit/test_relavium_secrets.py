"""Secrets in other agents' text: what is withheld, what stays, and that it costs linear time."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.relavium import read_workflow
from tasks.export import scaffold, withhold_session
from tasks.export.secrets import KINDS, withhold
from tests.relavium_sessions import AGENT, call, messages, record, result, said

# Written in halves, so that no scanner takes these invented keys for real ones.
KEYS = [
    "sk-" + "ant-api03-" + "Abcdefghijklmnopqrst-_0123456789",
    "sk-" + "proj-" + "abcdefghijklmnop1234",
    "sk_" + "live_" + "abcdefghij1234567890",
    "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "github_" + "pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "glpat-" + "abcdefghij0123456789",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "xoxb-" + "123456789012-abcdefghijkl",
    "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "hf_" + "abcdefghijklmnopqrstuvwxyzabcdefgh",
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".abcDEF-_123",
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key[:6])
def test_keys_of_known_shapes_are_withheld_wherever_they_stand(key: str) -> None:
    assert withhold(key) == ("[withheld]", {"key": 1})
    assert withhold(f"use ({key}), then") == ("use ([withheld]), then", {"key": 1})


@pytest.mark.parametrize(
    "words", ["task-force-that-is-long-enough", "disk-usage-of-a-whole-machine-x", "a hf_x", "AKIAB"]
)
def test_words_that_begin_like_a_key_stay(words: str) -> None:
    assert withhold(words) == (words, {})


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_private_key_blocks_are_withheld_whole(kind: str) -> None:
    block = f"-----BEGIN {kind}-----\nMIIEabc\nVersion: 1\nabc=\n-----END {kind}-----"
    assert withhold(f"a\n{block}\nb") == ("a\n[withheld]\nb", {"private_key": 1})


def test_a_block_that_is_cut_short_is_withheld_as_far_as_it_goes() -> None:
    lines = "\n".join(["QUJD" * 16] * 3)
    assert withhold(f"-----BEGIN PRIVATE KEY-----\n{lines}\n\nand then?") == (
        "[withheld]\n\nand then?",
        {"private_key": 1},
    )


def test_public_keys_and_certificates_stay() -> None:
    text = "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----\nMIIE\n"
    assert withhold(text) == (text, {})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password=hunter2", "password=[withheld]"),
        ("DB_PASSWORD: hunter2secret", "DB_PASSWORD: [withheld]"),
        ("export API_KEY=abc123def", "export API_KEY=[withheld]"),
        ("--password hunter2 --verbose", "--password [withheld] --verbose"),
        ("--db-password=hunter2", "--db-password=[withheld]"),
        ('{"api_key": "abcdef123"}', '{"api_key": "[withheld]"}'),
        ('{\\"client_secret\\": \\"zzzzzzzz\\"}', '{\\"client_secret\\": \\"[withheld]\\"}'),
        ("Authorization: Bearer abcdefghijk", "Authorization: Bearer [withheld]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [withheld]"),
        ("x-api-key: 12345abcdef", "x-api-key: [withheld]"),
        ("https://x.example/?token=abcdef&page=1", "https://x.example/?token=[withheld]&page=1"),
        ("const apiKey = 'sdf8sd7f';", "const apiKey = '[withheld]';"),
        ('os.environ["API_KEY"] = "qwerty99"', 'os.environ["API_KEY"] = "[withheld]"'),
        ("AWS_SECRET_ACCESS_KEY=wJalr/K7MDENG", "AWS_SECRET_ACCESS_KEY=[withheld]"),
        ("İ password=hunter2", "İ password=[withheld]"),
    ],
)
def test_values_assigned_to_secret_names_are_withheld(text: str, left: str) -> None:
    assert withhold(text) == (left, {"assignment": 1})


@pytest.mark.parametrize(
    "text",
    [
        "token: string",
        "token = get_token()",
        "password: please use a strong one",
        "password: ${DB_PASS}",
        "password = os.environ['X']",
        "max_tokens: 4096, token_count=17",
        "tokenizer: gpt2-base",
        "secretary: Jones99",
        "compass: north1",
        "secret_name: my-secret",
        "key: value",
        "api_key={{secrets.tide}}",
        "git@github.com:harbour/tides",
        "ssh://git@host/x and https://example.com/a@b",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert withhold(text) == (text, {})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("https://bob:s3cr3t@example.com/x", "https://bob:[withheld]@example.com/x"),
        ("postgres://user:pa:ss@host/db", "postgres://user:[withheld]@host/db"),
        ("https://abcdefghijklmnop1234@host/x", "https://[withheld]@host/x"),
    ],
)
def test_passwords_in_addresses_are_withheld(text: str, left: str) -> None:
    assert withhold(text) == (left, {"url_password": 1})


def test_a_secret_found_twice_is_counted_once() -> None:
    assert withhold(f"api_key={KEYS[0]}") == ("api_key=[withheld]", {"assignment": 1})


@given(st.text(alphabet=st.sampled_from("ab :=\"'\\-_@/.\n{}sketyokn"), max_size=200))
def test_text_outside_the_secrets_is_kept_and_a_second_pass_finds_nothing_new(text: str) -> None:
    left, counts = withhold(text)
    pieces = left.split("[withheld]")
    assert sum(counts.values()) == len(pieces) - 1
    position = 0
    for piece in pieces:
        position = text.index(piece, position) + len(piece)
    assert set(counts) <= set(KINDS)
    assert withhold(left)[0].count("[withheld]") == left.count("[withheld]")


@pytest.mark.parametrize(
    "unit",
    [
        *("a", " ", "token", 'token="', "password='", "https://", "://a:", "eyJ", ".eyJaaaaaaaa", " sk-", "--", "\\"),
        *("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n", "-----END ", "secret é "),
        *(
            "-eyJ",
            "eyJaaaaaaaaa.",
            "token=$",
            "(token=a)",
            "(password=)a",
            "token=(",
            "token=,a",
            "password=x,",
            "token=a(",
        ),
        *(
            "Cookie: a ",
            "cookie: a(",
            "Authorization: ",
            "curl -u ",
            "token=await ",
            'token=\\"',
            "token=${",
            "PASS:",
            "pass:/",
            "api key=",
        ),
    ],
)
def test_time_is_linear_in_the_text_whatever_it_is(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        best = float("inf")
        for _ in range(3):
            started = time.thread_time()
            withhold(text)
            best = min(best, time.thread_time() - started)
        return best

    # Eight times the text may take at most about eight times as long; quadratic would be 64 times.
    assert seconds(200_000) < 24 * seconds(25_000) + 0.05


def test_a_session_loses_secrets_in_its_texts_and_keeps_its_structure() -> None:
    handle = {"kind": "handle", "ref": f"media://sha256-{'0' * 64}"}
    media = {"type": "media", "mimeType": "image/png", "source": handle, "name": "password=hunter2", "transcript": "t"}
    env = {"TIDE_TOKEN": "abc123", "API_KEY": "{{secrets.tide}}", "LANG": "en"}
    server = {"id": "tides", "transport": "stdio", "command": "npx", "args": ["--token=abc123"], "env": env}
    agent = AGENT | {"system_prompt": "password=hunter2", "mcp_servers": [server], "tools": ["api_key"]}
    rows = messages(
        ("user", [*said(f"use {KEYS[0]}"), media]),
        ("assistant", [{"type": "reasoning", "text": "secret: abc123"}, call("read_file")]),
        ("tool", [result()]),
        ("assistant", said("done")),
    )
    clean = withhold_session(record(title="password=hunter2", agentSnapshot=agent), rows)
    assert clean.counts == {"assignment": 6, "key": 1}
    done = scaffold(clean.record, clean.messages)
    text = done.data.decode()
    assert not any(secret in text for secret in ("hunter2", "abc123", KEYS[0]))
    assert "{{secrets.tide}}" in text
    assert done.workflow_id == "password-withheld"
    assert (done.turns, [message.id for message in clean.messages]) == (1, [message.id for message in rows])
    assert read_workflow(done.data, name="f").workflow.name == "password=[withheld]"


def test_the_argument_after_a_secret_option_is_withheld() -> None:
    args = ["--verbose", "serve", "--password", "hunter2", "--port", "8080", "--name=x", "tide"]
    server = {"id": "tides", "transport": "stdio", "command": "npx", "args": args}
    clean = withhold_session(record(agentSnapshot=AGENT | {"mcp_servers": [server]}), [])
    assert clean.counts == {"assignment": 1}
    agent = clean.record.agentSnapshot
    assert agent is not None
    assert agent.mcp_servers is not None
    assert agent.mcp_servers[0].args == [*args[:3], "[withheld]", *args[4:]]


def test_a_schema_nested_as_deep_as_json_is_read_is_walked() -> None:
    schema: Any = {"password": "hunter2"}
    for _ in range(900):
        schema = {"a": schema}
    clean = withhold_session(record(agentSnapshot=AGENT | {"input_schema": schema}), [])
    assert clean.counts == {"assignment": 1}
    assert b'password: "[withheld]"' in scaffold(clean.record, []).data


def test_a_session_without_secrets_is_the_same_session() -> None:
    whole: Any = record(title="Tides", agentSnapshot=AGENT), messages(("user", said("a")), ("assistant", said("b")))
    clean = withhold_session(*whole)
    assert (clean.record, clean.messages, clean.counts) == (*whole, {})
