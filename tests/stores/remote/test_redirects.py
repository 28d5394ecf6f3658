"""Which hosts the client of a cloud may reach; tests/attacks/redirects.py shows that it reaches no other."""

import os
import sys
from types import SimpleNamespace

import pytest

from omnizarr.stores import ObjectStore, verbs
from omnizarr.stores.remote import redirects

pytest.importorskip("obstore", reason="the extra cloud is not installed")

S3 = {"access_key_id": "a", "secret_access_key": "b"}
SIGNED = {"account_name": "me", "sas_key": "sv=1&sig=x"}
FROM_MACHINE = ("sts.amazonaws.com", "169.254.169.254")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """None of the variables that count."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_DEFAULT_REGION", "AZURE_STORAGE_SAS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def hosts(kind, config, **client):
    """Return the hosts that a client is confined to; None: to none."""
    found = redirects.confined(kind, {"config": config, "client_options": client})["client_options"]
    excluded = found.get("proxy_excludes")
    assert (excluded is None) == (found.get("proxy_url") != redirects.NOWHERE)
    return None if excluded is None else set(excluded.split(","))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (S3, {"s3.us-east-1.amazonaws.com"}),
        ({**S3, "region": "eu-west-1"}, {"s3.us-east-1.amazonaws.com", "s3.eu-west-1.amazonaws.com"}),
        ({**S3, "endpoint": "https://minio.example.org:9000/x"}, {"minio.example.org"}),
        ({**S3, "endpoint": "http://[::1]:9000"}, {"::1"}),
        ({**S3, "s3_express": "true"}, None),
        ({"skip_signature": True}, None),
    ],
)
def test_s3_with_keys_is_confined_to_its_service(config, expected):
    assert hosts("S3Store", config) == expected


def test_headers_are_confined_without_a_signature_too():
    given = {"skip_signature": True, "endpoint": "https://minio.example.org", "access_key_id": "a"}
    assert hosts("S3Store", given, default_headers={"x-api-key": "x"}) == {"minio.example.org"}


def test_credentials_of_the_machine_can_be_asked_for(environment):
    assert hosts("S3Store", {"endpoint": "https://e.org"}) > {"e.org", *FROM_MACHINE}
    environment.setenv("AWS_ENDPOINT_URL_STS", "https://sts.example.org")
    assert "sts.example.org" in hosts("S3Store", {"endpoint": "https://e.org"})
    environment.setenv("AWS_ACCESS_KEY_ID", "a")
    assert hosts("S3Store", {"endpoint": "https://e.org"}) == {"e.org"}


def test_azure_is_confined_where_its_query_or_headers_are_secret():
    assert hosts("AzureStore", {**SIGNED, "endpoint": "https://e.org/me"}) == {"e.org"}
    assert "me.blob.core.windows.net" in hosts("AzureStore", SIGNED)
    assert hosts("AzureStore", {"account_name": "me", "account_key": "x"}) is None  # a header that is not passed on
    assert hosts("AzureStore", {"account_name": "me"}, default_headers={"a": "b"}) > {"me.blob.core.windows.net"}


def test_your_proxy_stays(environment):
    assert hosts("S3Store", S3, proxy_url="http://proxy") is None
    environment.setenv("HTTPS_PROXY", "http://proxy")
    assert hosts("S3Store", S3) is None


def test_other_services_are_left_alone():
    assert hosts("GCSStore", {}, default_headers={"a": "b"}) is None
    assert hosts("HTTPStore", {}, default_headers={"a": "b"}) is None


def test_the_native_engine_still_has_the_store():
    store = ObjectStore.from_url("s3://box/x.zarr", {**S3, "endpoint": "http://127.0.0.1:9"})
    assert store._store.client_options["proxy_url"] == redirects.NOWHERE
    access = verbs.access(store)
    assert access is not None
    assert not any("proxy" in name for name, _ in access.client.options)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have settings of their own")
def test_a_client_asks_for_proxies_only_if_the_environment_names_one(environment, monkeypatch):
    from obstore.store import HTTPStore

    from omnizarr.stores.remote import web_requests

    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        environment.delenv(name)
    client = web_requests.Client(HTTPStore("https://a.example"))
    asked = SimpleNamespace(getproxies=lambda: {"https": "http://proxy:1"}, proxy_bypass=lambda host: host == "near")
    monkeypatch.setattr(web_requests, "request", asked)
    assert client._proxy_for("https", "far") is None
    environment.setenv("HTTPS_PROXY", "http://proxy:1")
    assert client._proxy_for("https", "far").netloc == "proxy:1"
    assert client._proxy_for("https", "near") is None
