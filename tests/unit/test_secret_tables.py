"""Tables of what is withheld from other agents' text and of what stays, value by value."""

from __future__ import annotations

import json
import re

import pytest

from tasks.export.secrets import withhold, withhold_value

LETTERS = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
BODY = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "abcdefghi"]
OPEN, CLOSE = "-----BEGIN PRIVATE" + " KEY-----", "-----END PRIVATE" + " KEY-----"
LINES = "\n".join([OPEN, *BODY, CLOSE])


@pytest.mark.parametrize(
    "text",
    [
        f'PRIVATE_KEY="{LINES}"',
        f"PRIVATE_KEY='{LINES}'",
        f"SSH_PRIVATE_KEY: {LINES}",
        f"secret={LINES}",
        "PRIVATE_KEY='" + LINES.replace("\n", "\\n") + "'",
        json.dumps({"type": "service_account", "private_key": LINES + "\n", "client_email": "a@b"}),
        json.dumps(json.dumps({"private_key": LINES})),
        "\n".join([OPEN, *BODY]),
        "\n".join(f"> {line}" for line in [OPEN, *BODY]),
        "\n".join(f"+{line}" for line in [OPEN, *BODY]),
        "\n".join(f"{number}\t{line}" for number, line in enumerate([OPEN, *BODY], 1)),
        "\n".join(f"    {number}→{line}" for number, line in enumerate([OPEN, *BODY], 1)),
        " +\n".join(f'"{line}"' for line in [OPEN, *BODY]),
        "\n".join([OPEN, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0011", "", *BODY]),
        "\n".join(
            ["---- BEGIN SSH2 ENCRYPTED PRIVATE" + " KEY ----", *BODY, "---- END SSH2 ENCRYPTED PRIVATE KEY ----"]
        ),
        "\n".join(["PuTTY-User-Key-File-2: ssh-rsa", "Private-Lines: 3", *BODY, "Private-MAC: 00ff"]),
    ],
)
def test_no_line_of_a_private_key_stays(text: str) -> None:
    left, counts = withhold(text)
    assert not [line for line in BODY if line in left]
    assert sum(counts.values()) == 1


def test_what_follows_a_key_block_stays() -> None:
    assert withhold(f"a {LINES}\nb") == ("a [withheld]\nb", {"private_key": 1})


@pytest.mark.parametrize(
    "key",
    [
        "xoxc-" + "1234567890-" + LETTERS,
        "xoxd-" + LETTERS,
        "lin_" + "api_" + LETTERS,
        "figd_" + LETTERS,
        "ATATT3" + "xFf" + LETTERS,
        "r8_" + LETTERS[:37],
        "tskey-" + "auth-" + LETTERS,
        "ntn_" + LETTERS,
        "sntrys_" + LETTERS,
        "PMAK-" + LETTERS,
        "tvly-" + LETTERS,
        "glsa_" + LETTERS[:32] + "_ab12cd34",
        "sbp_" + "ab12" * 10,
        "dapi" + "ab12" * 8,
        "123456789" + ":AA" + LETTERS[:33],
        "discord.com/api/webhooks/" + "123456789012345678/" + LETTERS,
        "Bearer\t" + LETTERS,
        "BEARER " + LETTERS,
        "sk-" + LETTERS,
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + LETTERS[:36],
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".abcDEF-_123",
    ],
    ids=lambda key: key[:6],
)
def test_more_keys_of_known_shapes(key: str) -> None:
    for before, after in (("", ""), ("use (", ")"), ("x_", ""), ('{"a": "b\\n', '"}')):
        assert withhold(before + key + after) == (f"{before}[withheld]{after}", {"key": 1})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # The whole value, whatever is in it.
        ("password=https://u:p,QQQQ@h/", "password=[withheld]"),
        (r'{"password": "Tr0ub\\4dor&3"}', '{"password": "[withheld]"}'),
        (r'{"password": "a\"bcdef"}', '{"password": "[withheld]"}'),
        (r'{"password": "a\\", "b": "c"}', '{"password": "[withheld]", "b": "c"}'),
        (r"{\"password\": \"abcd\\\"efgh\"}", r"{\"password\": \"[withheld]\"}"),
        (r'"access_token": "abc\u0041defSECRET"', '"access_token": "[withheld]"'),
        (r'"token":"abcd\/efghSECRET"', '"token":"[withheld]"'),
        ("password=p@ss,word;1", "password=[withheld]"),
        ("password=pa(ss)word", "password=[withheld]"),
        ('password="hun\nter2"', 'password="[withheld]"'),
        ('password: "hunter2\nnext line', 'password: "[withheld]\nnext line'),
        ("PASSWORD='ab\"cd'", "PASSWORD='[withheld]'"),
        ("(password=abc(d)e)", "(password=[withheld])"),
        ("{token:abcd12,bc:1}", "{token:[withheld],bc:1}"),
        ("Cookie: a=1; sessionid=38afes7a8", "Cookie: [withheld]"),
        ("Set-Cookie: sid=abc123; Path=/\nHost: a", "Set-Cookie: [withheld]\nHost: a"),
        ("curl -H 'Cookie: a=1; b=22' x", "curl -H 'Cookie: [withheld]' x"),
        (
            "Authorization: AWS4-HMAC-SHA256 Credential=AB/2020, Signature=abcdef0123",
            "Authorization: AWS4-HMAC-SHA256 [withheld]",
        ),
        ("Authorization: Bearer abcd1234,TAIL", "Authorization: Bearer [withheld]"),
        ('-H "Authorization: Bearer abcd1234" -v', '-H "Authorization: Bearer [withheld]" -v'),
        ("password=[brackets]x9", "password=[withheld]"),
        ("password=v,y8,N:%Q0j3", "password=[withheld]"),
        # Names.
        *(
            (f"{name}=abcd1234", f"{name}=[withheld]")
            for name in (
                *("OPENAI_KEY", "STRIPE_KEY", "MY_KEY", "DBPASS", "userpass", "DB_PASS", "PGPASSWORD", "MYSQL_PWD"),
                *("accessToken", "_authToken", "clientSecret", "AccountKey", "SecretAccessKey", "password1", "TOKEN_A"),
                *("my_token_limited", "api_key_prod_used", "secret_user_id_hash", "db.password"),
            )
        ),
        ("password: x", "password: [withheld]"),
        ('psql "password=x"', 'psql "password=[withheld]"'),
        ("KEY=sk-test-abc", "KEY=[withheld]"),
        ("x-api-key: 1234567890", "x-api-key: [withheld]"),
        ("api key: abcdef123", "api key: [withheld]"),
        ("**Password:** hunter2", "**Password:** [withheld]"),
        ("password: 12345678", "password: [withheld]"),
        ("pass: hunter2", "pass: [withheld]"),
        ('"pass":"hunter2"', '"pass":"[withheld]"'),
        ('if password == "hunter2":', 'if password == "[withheld]":'),
        # Command lines and addresses.
        ("curl -u admin:hunter2 https://x", "curl -u admin:[withheld] https://x"),
        ("curl --user admin:hunter2 https://x", "curl --user admin:[withheld] https://x"),
        ("sshpass -p hunter2 ssh a", "sshpass -p [withheld] ssh a"),
        ("--api-key abc123 -v", "--api-key [withheld] -v"),
        ("https://x/?a=1&sig=abc123def456%3D&b=2", "https://x/?a=1&sig=[withheld]&b=2"),
        ("X-Amz-Signature=abcdef0123456789", "X-Amz-Signature=[withheld]"),
        # Values that begin like a reference.
        ("password=%41bc%20d", "password=[withheld]"),
        ("password: <hunter2>", "password: [withheld]"),
        ("password: *secretstar9", "password: [withheld]"),
        ("password: ${DB_PASS:-hunter2}", "password: [withheld]"),
        # Values apart from their names.
        ("<password>hunter2</password>", "<password>[withheld]</password>"),
        ("- name: DB_PASSWORD\n  value: hunter2\n", "- name: DB_PASSWORD\n  value: [withheld]\n"),
        ('{"name": "API_TOKEN", "value": "abcd1234"}', '{"name": "API_TOKEN", "value": "[withheld]"}'),
        ('"password": ["hunter2", "hunter3"]', '"password": ["[withheld]"]'),
        ('tokens: ["abcd1234", "b"], c', 'tokens: ["[withheld]"], c'),
        ('password="""hunter2"""', 'password="""[withheld]"""'),
        # Phrases and blocks.
        ("password: correct horse battery staple", "password: [withheld]"),
        ('password: "correct horse battery staple"', 'password: "[withheld]"'),
        ("a:\n  - passphrase: correct horse battery\n  - b: c", "a:\n  - passphrase: [withheld]\n  - b: c"),
        ("password:\n  hunter2\n", "password:\n  [withheld]\n"),
        ("password: |\n  hunter2", "password: |\n  [withheld]"),
    ],
)
def test_assigned_values_are_withheld_to_their_end(text: str, left: str) -> None:
    assert withhold(text) == (left, {"assignment": 1})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (r"https:\/\/u:hunter2@h", r"https:\/\/u:[withheld]@h"),
        ("redis://:hunter2@host", "redis://:[withheld]@host"),
        ("odd://u:hunter2@host:80/", "odd://u:[withheld]@host:80/"),
        ("https://u:hunter2@$HOST/", "https://u:[withheld]@$HOST/"),
        ("https://u:hunter2@{host}/", "https://u:[withheld]@{host}/"),
    ],
)
def test_more_passwords_in_addresses(text: str, left: str) -> None:
    assert withhold(text) == (left, {"url_password": 1})


@pytest.mark.parametrize(
    "text",
    [
        *("PASS: tests/test_login.py", "PASS: test_foo_9", "pass: 12/12", "pass: 12 fail: 3", "pass_rate: 0.954"),
        *("pass-through: enabled9", "PASS=12", "tokens: 1.5M", "Tokens: ~12k", "input_tokens: 500k", "token: 3.14"),
        *("total tokens: 12,345", "max_tokens=4096", "token == TokenKind.Comma", "while (token == END_OF_FILE)"),
        *("assert response.token == user.token", "token = match.group", "token = match.group(1)", "token: lexer.Token"),
        *("cancelToken: source.token", "cookie: CookieJar", "api_key: Option<String>", "tokens: Vec<Token>"),
        *("secret: Secret<String>", "token: Optional[str]", "password: PasswordHash", "session_key: SessionKey"),
        *("token: cancellationToken", "const token = useToken();", "const token = await fetchToken()"),
        *('password = input("x")', "password=getpass.getpass()", "token = line.split()[0]", "token = tokens[i+1]"),
        *("password: str = Field()", "password = self.password", "def f(password: str, token: Optional[str])"),
        *(
            'credentials: "same-origin"',
            "credentials: include",
            'fetch(u, {credentials: "include"})',
            "secrets: inherit",
        ),
        *("id-token: write", "sk-toggleable__label-arrow", "sk-estimator-doc-link", "sk-container-id-1 sk-toggleable"),
        *("Cookie: enabled", "cookie=on", "Authorization: required", "Authorization: see RFC 7235"),
        *("docs://section:para@v2", "npm://pkg:1.0@latest", "git@github.com:org/repo", "https://medium.com/@user/post"),
        *("password: ${X}", "token={{x}}", 'token: "<your-token>"', "token: <your-key>", "password: ********"),
        *("password: ${{ secrets.DB }}", "token=$(cat x)", "token=$TOKEN", "Authorization: Bearer $TOKEN"),
        *('"Authorization": f"Bearer {token}"', "password=", "password: ", "password:\n  user: a", "password: null"),
        *("primary_key=True", "foreign_key: user_id", "public_key: abcdefgh", "KEY=value", "CACHE_KEY=abc123def"),
        *("next_page_token: abcdef123", "token_type: bearer", "secret_file=/run/x", "docker run --user 1000:1000 x"),
        *("Bearer authentications-are-not", "passport: 12345X", "bypass: enabled", "tokenizer=gpt2-large"),
        *(
            "the password: the one you chose",
            "Use the token: it is short",
            "passwords: never log them",
            "token: [withheld]",
        ),
        "aws_session_token=aws_session_token,",
        "password=db_password",
        "<password>${DB_PASS}</password>",
        "<title>hunter2</title>",
        "- name: LOG_LEVEL\n  value: debug9",
        'tokens=["a", "b"]',
        'password=""',
        'password = "" + x',
        "self._cookies = cookies",
        "styles[token] = ndef",
        "quote_cookie: bool = True,",
        "cookies: list[bytes] = []",
        "tokens = tuple(Token(value=str(x)) for x in y)",
        '"secret": {"alias_of": "secret"},',
        "encryption key: exactly 64 digits",
        "f.__signature__ = _make_signature(arg)",
        "token = line[index:].split()[0]",
        "url=WEBHOOK_KEY&token=WEBHOOK_TOKEN",
        "_`Bearer Token`: https://tools.example.org/html/rfc6750",
        '"account-key": "AZURE_STORAGE_ACCOUNT_KEY"',
    ],
)
def test_code_counts_and_prose_stay(text: str) -> None:
    assert withhold(text) == (text, {})


def test_values_of_a_map_are_judged_with_their_key() -> None:
    assert withhold_value("MY_KEY", "abcd1234") == ("[withheld]", {"assignment": 1})
    assert withhold_value("password", "x") == ("[withheld]", {"assignment": 1})
    assert withhold_value("Authorization", "Bearer abcd1234") == ("[withheld]", {"assignment": 1})
    assert withhold_value("API_KEY", "${API_KEY}") == ("${API_KEY}", {})
    assert withhold_value("LANG", "en") == ("en", {})
    assert withhold_value("description", "password=hunter2") == ("password=[withheld]", {"assignment": 1})


def test_spans_that_overlap_are_one_of_the_widest_kind() -> None:
    inner = "ghp_" + LETTERS[:36]
    assert withhold(f'password="{inner}, and more"') == ('password="[withheld]"', {"assignment": 1})
    assert withhold(f"https://u:{inner}@h") == ("https://u:[withheld]@h", {"key": 1})
    assert re.fullmatch(r"TOKEN=\[withheld\]", withhold(f"TOKEN={LINES}")[0])
