"""Access: tokens, cookies, and names of the server."""

import pytest

from omnizarr.stores import MemoryStore
from omnizarr.web.guards import KnownHost, TokenRequired, check_hosts, check_origins, check_token, host_of, is_loopback
from omnizarr.web.keys import Keys
from tests.web.client import ask

KEYS = Keys(MemoryStore({"a": b"value"}))
TOKEN = "s3cret"


@pytest.fixture
def app():
    return TokenRequired(KEYS, TOKEN)


@pytest.mark.parametrize(
    ("target", "fields"),
    [
        ("/a?token=s3cret", {}),
        ("/a?x=1&token=s3cret", {}),
        ("/a", {"Authorization": "Bearer s3cret"}),
        ("/a", {"Authorization": "bearer  s3cret"}),
        ("/a", {"Cookie": "x=1; omnizarr-8000=s3cret"}),
    ],
)
def test_a_request_with_the_token_passes(app, target, fields):
    answer = ask(app, target, **fields)
    assert (answer.status, answer.body) == (200, b"value")


@pytest.mark.parametrize(
    ("target", "fields"),
    [
        ("/a", {}),
        ("/a?token=", {}),
        ("/a?token=s3cre", {}),
        ("/a?token=S3CRET", {}),
        ("/a?token=%ff%ff", {}),
        ("/a", {"Authorization": "Basic s3cret"}),
        ("/a", {"Authorization": "s3cret"}),
        ("/a", {"Cookie": "omnizarr-8001=s3cret"}),
        ("/a", {"Cookie": "omnizarr-8000="}),
        ("/none", {}),
    ],
)
def test_others_are_refused_before_anything_is_looked_for(app, target, fields):
    answer = ask(app, target, **fields)
    assert (answer.status, answer.fields["www-authenticate"]) == (401, "Bearer")
    assert b"s3cret" not in answer.body
    assert "set-cookie" not in answer.fields


def test_the_token_in_a_query_becomes_a_cookie_of_this_port(app):
    answer = ask(app, "/a?token=s3cret", root_path="/below")
    assert answer.fields["set-cookie"] == "omnizarr-8000=s3cret; Path=/below; HttpOnly; SameSite=Strict"
    assert "set-cookie" not in ask(app, "/a", Authorization="Bearer s3cret").fields


@pytest.mark.parametrize("token", ["", "a b", "a;b", "a&b", "\u00fc", "a\n"])
def test_a_token_that_urls_cannot_hold_is_refused(token):
    with pytest.raises(ValueError, match="letters, digits"):
        check_token(token)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.1.2.3", "[::1]:8000", "data.example.org"]
)
def test_requests_that_call_the_server_by_its_name_pass(host):
    assert ask(KnownHost(KEYS, ["Data.example.org"]), "/a", Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "", "10.0.0.1"),
        *("[::1", "::1]", "::1", "[::1]x", "[::1]evil.example", "[::1]:x", "localhost:x", "localhost:80:80"),
    ],
)
def test_requests_by_other_names_are_refused(host):
    answer = ask(KnownHost(KEYS), "/a", Host=host)
    assert (answer.status, answer.error) == (421, f"this server is not called {host_of(host)!r}")
    assert ask(KnownHost(KEYS), "/a").status == 421


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        *(("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("192.168.0.1", False), ("example.org", False), ("", False)),
    ],
)
def test_what_only_this_machine_reaches(host, is_local):
    assert is_loopback(host) is is_local


@pytest.mark.parametrize(
    "origin",
    ["https://example.org", "http://localhost:8080", "http://[::1]:80", "http://127.0.0.1", "null", "*",
     "chrome-extension://abc", "https://xn--bcher-kva.example"],
)  # fmt: skip
def test_origins_that_browsers_send_are_accepted(origin):
    check_origins([origin])


@pytest.mark.parametrize(
    "origin",
    ["", "example.org", "https://example.org/", "https://example.org/a", "https://", "HTTPS://example.org",
     "https://a@example.org", "https://example.org:x", "https://*.example.org/"],
)  # fmt: skip
def test_other_origins_are_refused(origin):
    with pytest.raises(ValueError, match="not an origin"):
        check_origins([origin])


@pytest.mark.parametrize("host", ["", "http://example.org", "example.org:80", "example.org/a", "a b"])
def test_names_that_are_no_host_are_refused(host):
    check_hosts(["example.org", "127.0.0.1", "::1", "[::1]", "nas_1"])
    with pytest.raises(ValueError, match="not the name of a host"):
        check_hosts([host])
