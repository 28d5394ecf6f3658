"""Credentials of object stores: whatever goes wrong, none of them is shown."""

import base64
import json
import logging
import time
import traceback

import pytest

import omnizarr
from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.storage import CacheStore, LoggingStore
from omnizarr.stores import ObjectStore, verbs
from tests.stores.recording import FAST, recording

pytest.importorskip("obstore", reason="the extra cloud is not installed")

SECRETS = [f"hush-{number}-hush" for number in range(9)]
ENCODED = base64.b64encode(b"hush-8-hush").decode()
HEADERS = {"x-api-key": SECRETS[0], "Authorization": f"Bearer {SECRETS[1]}"}
KEYS = {"access_key_id": SECRETS[2], "secret_access_key": SECRETS[3], "session_token": SECRETS[4]}

PLACES = {
    "http": lambda host: (f"http://{SECRETS[5]}:{SECRETS[6]}@{host}/d?sig={SECRETS[7]}", {"headers": HEADERS}),
    "s3": lambda host: ("s3://bucket/d", {**KEYS, "endpoint": f"http://{host}"}),
    "s3 by endpoint": lambda host: ("s3://bucket/d", {**KEYS, "endpoint": f"http://{SECRETS[5]}:{SECRETS[6]}@{host}"}),
    "s3 by fsspec": lambda host: (
        "s3://bucket/d",
        {"key": SECRETS[2], "secret": SECRETS[3], "client_kwargs": {"endpoint_url": f"http://{host}"}},
    ),
    "gs": lambda host: ("gs://bucket/d", {"token": SECRETS[4], "endpoint": f"http://{host}", "headers": HEADERS}),
    "az by key": lambda host: (
        "az://box/d",
        {"account_name": "me", "account_key": ENCODED, "endpoint": f"http://{host}/me"},
    ),
    "az by signature": lambda host: (
        "az://box/d",
        {"account_name": "me", "sas_token": f"sv=2020&sig={SECRETS[7]}", "endpoint": f"http://{host}/me"},
    ),
    "az by connection string": lambda host: (
        "az://box/d",
        {"connection_string": f"AccountName=me;AccountKey={ENCODED};BlobEndpoint=http://{host}/me"},
    ),
}
PATIENCE = {**FAST, "read_timeout": 0.2, "retry_timeout": 0.2, "list_timeout": 1, "max_value_bytes": 1000}


def echo(status):
    """Answer with what was asked, as servers do that help to find mistakes."""

    def answer(handler):
        handler.respond(status, f"{handler.path} {handler.headers}".encode())
        return True

    return answer


def broken(handler):
    handler.close_connection = True
    return True


def silent(_):
    time.sleep(0.5)
    return True


BAD = {
    **{str(status): echo(status) for status in (400, 401, 403, 404, 409, 412, 416, 500, 503)},
    "too large": lambda handler: handler.respond(200, b"x" * 2000, ETag='"1"') or True,
    "wrong range": lambda handler: handler.respond(206, b"x", Content_Range="bytes 7-7/9", ETag='"1"') or True,
    "too short": lambda handler: handler.respond(206, b"x", Content_Range="bytes 0-3/9", ETag='"1"') or True,
    "no listing": lambda handler: handler.respond(200, b"<a>") or True,
    "redirect": lambda handler: handler.respond(302, Location=handler.path) or True,
    "to nowhere": lambda handler: handler.respond(302, Location=f"http://127.0.0.1:9{handler.path}") or True,
    "broken": broken,
    "silent": silent,
}
VERBS = [
    lambda store: store.get("a"),
    lambda store: store.get("a", (0, 4)),
    lambda store: verbs.get_stamped(store, "a"),
    lambda store: verbs.get_spans(store, "a", [(0, 1), (-1, None)]),
    lambda store: store.size("a"),
    lambda store: store.set("a", b"1"),
    lambda store: verbs.set_if_absent(store, "a", b"1"),
    lambda store: store.update("a", lambda _: b"2"),
    lambda store: store.delete("a"),
    lambda store: verbs.delete_many(store, ["a", "b"]),
    lambda store: list(store.list()),
    lambda store: store.list_dir(""),
    lambda store: store.get("a\nb"),
    lambda store: store.with_read_only().set("a", b""),
    lambda store: omnizarr.open(store, mode="r"),
]


def shown(error):
    """Return all that an error says, and those before it, as a program that dies prints them, and more."""
    chain = []
    while error is not None:
        chain += [str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)]
        error = error.__cause__ or error.__context__
    return "\n".join(chain)


def check(text):
    assert "Debug source" not in text
    for secret in [*SECRETS, ENCODED]:
        assert secret not in text


@pytest.fixture(scope="module")
def server():
    with recording() as server:
        yield server


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", PLACES)
def test_no_error_and_no_record_shows_credentials(server, place, bad, caplog, monkeypatch):
    monkeypatch.setattr("omnizarr.stores.conflicts.PATIENCE", 0)
    server.answer = server.put_answer = BAD[bad]
    url, options = PLACES[place](f"127.0.0.1:{server.server_port}")
    store = LoggingStore(ObjectStore.from_url(url, {**options, **PATIENCE}), "INFO")
    failures = 0
    with caplog.at_level("DEBUG"):
        for verb in VERBS[:5] if bad == "silent" else VERBS:
            try:
                verb(store)
            except OmnizarrError as error:
                failures += 1
                check(shown(error))
    assert failures
    assert caplog.records
    check(caplog.text)
    check(str([vars(record) for record in caplog.records]))


@pytest.mark.parametrize("place", PLACES)
def test_no_name_shows_credentials(server, place, tmp_path):
    server.answer = None
    server.values.update(dict.fromkeys(["/d/a", "/bucket/d/a", "/me/box/d/a"], b"1"))
    url, options = PLACES[place](f"127.0.0.1:{server.server_port}")
    store = ObjectStore.from_url(url, {**options, **FAST})
    cached = CacheStore(store, tmp_path / "cache")
    logging.getLogger().debug("%s", cached)
    cached.get("a")
    names = [str(path) for path in (tmp_path / "cache").rglob("*")]
    for text in (repr(store), str(store), repr(cached), str(store.origin()), str(cached.origin()), str(names)):
        check(text)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("s3://b", {"acces_key_id": SECRETS[0]}),
        ("s3://b", {"access_key_id": SECRETS[0], "retry_timeout": SECRETS[1]}),
        ("s3://b", {"secret_access_key": SECRETS[0], "virtual_hosted_style_request": "perhaps"}),
        ("s3://b", {**KEYS, "endpoint": f"http://{SECRETS[5]}:{SECRETS[6]}@host:port"}),
        ("s3://b", {**KEYS, "profile": "nobody"}),
        (f"s3://{SECRETS[5]}:{SECRETS[6]}@b", {}),
        ("gs://b", {"service_account_key": json.dumps({"private_key": SECRETS[0], "client_email": SECRETS[1]})}),
        ("gs://b", {"service_account_key": SECRETS[0]}),
        ("gs://b", {"service_acount": SECRETS[0]}),
        ("az://b", {"account_name": "me", "account_key": SECRETS[0] + "!"}),
        ("az://b", {"account_name": "me", "sas_key": SECRETS[0]}),
        ("az://b", {"connection_string": f"AccountKey={SECRETS[0]}"}),
        (f"http://{SECRETS[5]}:{SECRETS[6]}@host:port/?sig={SECRETS[7]}", {}),
        (f"http://{SECRETS[5]}:{SECRETS[6]}@[host/?sig={SECRETS[7]}", {}),
        ("http://host", {"headers": {"x-api-key": f"{SECRETS[0]}\n"}}),
        ("http://host", {"headers": {f"{SECRETS[0]} ": "1"}}),
        ("http://host", {"proxy_url": f"nonsense://{SECRETS[5]}:{SECRETS[6]}@[host"}),
    ],
)
def test_options_that_make_no_store_are_not_shown(url, options, monkeypatch):
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StoreError) as caught:
        ObjectStore.from_url(url, {**FAST, "retry_timeout": 0.2, **options}).get("a")
    check(shown(caught.value))
