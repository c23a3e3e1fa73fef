"""What looks like a credential is masked; what people name their files is not."""

import base64
import random
import string
import time

import pytest

from computer_linker.audit.masks import looks_secret, masked
from computer_linker.audit.redact import fact, label, path_preview, preview, unknown_operation
from computer_linker.audit.secret import Key
from computer_linker.transports.http.sessions import session_label

KEY = Key(b"k" * 32)

FORMATS = {
    "bearer header": "Authorization: Bearer SECRETbearer123456",
    "basic header": "Authorization: Basic U0VDUkVUOnBhc3N3b3Jk",
    "cookie": "Cookie: session=SECRET; other=SECRET",
    "set-cookie": "Set-Cookie: id=SECRET",
    "api key header": "X-Api-Key: SECRET",
    "github": "ghp_SECRETgithub0123456789abcdef",
    "github fine-grained": "github_pat_SECRET_x",
    "gitlab": "glpat-SECRET1",
    "slack": "xoxb-1234-SECRET",
    "aws id": "AKIASECRET12345",
    "aws secret": "AWS_SECRET_ACCESS_KEY=wJalrSECRETutnFEMI",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.SECRET.signature",
    "openai": "sk-proj-SECRET",
    "anthropic": "sk-ant-api03-SECRETant",
    "google": "AIzaSECRET012345",
    "npm": "npm_SECRET0123",
    "stripe": "sk_live_SECRET0123",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nSECRET\n-----END RSA PRIVATE KEY-----",
    "password flag": "mysql --password SECRETpw2",
    "password flag with sign": "--password=SECRETpw2",
    "short flag": "mysql -u root -pSECRET",
    "user and password": "curl -u user:SECRET https://x",
    "address": "postgres://u:SECRET@h/db",
    "query string": "https://x/?access_token=SECRET&x=1",
    "json": '{"client_secret":"SECRETjson"}',
    "json inside json": '{\\"token\\": \\"SECRETesc\\"}',
    "environment": "PGPASSWORD=SECRET",
    "camel case": "dbPassword=SECRET",
    "xml": "<password>SECRET</password>",
    "yaml": "password: SECRET",
    "zero width": "sk-\u200bSECRETzw",
    "plain words": "token=SECRETproc",
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_known_format_leaves_nothing_of_the_secret(name: str) -> None:
    shown = masked(FORMATS[name]).replace("AWS_SECRET_ACCESS_KEY", "").replace("client_secret", "")
    assert "SECRET" not in shown and "U0VDUkVU" not in shown


@pytest.mark.parametrize("text", ["tok''en=SECRET", "password%3DSECRET", "Bearer%20SECRETabcdef"])
def test_a_disguised_credential_is_recognised(text: str) -> None:
    assert looks_secret(text)
    assert "SECRET" not in path_preview(f"notes/{text}.txt", KEY)


DICE = random.Random(2026)
ALPHABETS = {
    "hex": lambda: DICE.randbytes(16).hex(),
    "base64url": lambda: base64.urlsafe_b64encode(DICE.randbytes(24)).decode(),
    "base32": lambda: base64.b32encode(DICE.randbytes(20)).decode(),
    "letters and digits": lambda: "".join(DICE.choices(string.ascii_letters + string.digits, k=24)),
    "digits": lambda: "".join(DICE.choices(string.digits, k=20)),
}


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_random_strings_as_file_names_are_digests(alphabet: str) -> None:
    kept = sum(1 for _ in range(500) if (made := ALPHABETS[alphabet]()) in path_preview(f"notes/{made}.txt", KEY))
    # A string drawn at random may happen to be made of syllables; more than one in a hundred may not.
    assert kept <= 5


@pytest.mark.parametrize(
    "path",
    [
        "src/computer_linker/operations/history/failed_replay.py",
        "docs/How To Connect.md",
        "tests/test_dispatcher.py",
        "node_modules/typescript/lib/lib.es2022.d.ts",
        "Bücher/Übersicht 2026-11-16.txt",
        "a/b/c",
        ".",
        "build/libcrypto-1.1.so",
    ],
)
def test_ordinary_paths_are_kept(path: str) -> None:
    assert path_preview(path, KEY) == path


def test_a_preview_is_bounded_and_visible() -> None:
    shown = preview("file.stat", "x\n\u2028\u202e\x1b[31m" + "a b/" * 2000, KEY)
    assert shown.isprintable() and len(shown) < 300
    assert preview("file.stat", "long/" * 100 + "a", KEY) != preview("file.stat", "long/" * 100 + "b", KEY)


def test_targets_that_are_no_paths_are_kept_only_when_they_are_handles_or_places() -> None:
    assert preview("screen.capture", "primary", KEY) == "primary"
    assert preview("command.read", "proc_0123456789abcdef01234567", KEY) == "proc_0123456789abcdef01234567"
    assert "hunter" not in preview("app.open", "hunter two", KEY)
    assert "hunter" not in preview("command.read", "hunter", KEY)


def test_names_facts_and_unknown_operations() -> None:
    assert label("claude-code 1.2 (linux)", KEY) == "claude-code 1.2 (linux)"
    assert label("evil\nname", KEY).startswith("[")
    # The session of a client over HTTP, by which its evidence and its operations belong together.
    session = session_label(b"0123")
    assert label(session, KEY) == session
    assert unknown_operation("file.raed", KEY) == "file.raed"
    assert unknown_operation("FAKE", KEY).startswith("[")
    digest = "ab12" * 16
    assert fact("sha256", digest, KEY) == digest
    assert fact("note", digest, KEY).startswith("[")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 20000,
        "a." * 5000,
        "a_" * 5000,
        "password " * 2000,
        '"' * 5000,
        "token\\" * 3000,
        "x-" * 5000,
        "--a-" * 3000,
    ],
)
def test_no_text_makes_masking_slow(text: str) -> None:
    started = time.process_time()
    masked(text)
    assert time.process_time() - started < 2
