"""Clients of obstore that follow no redirect to another host.

obstore has no option that forbids redirects. It passes on the headers of S3 and Azure, such as
``X-Amz-Security-Token`` and the key of encrypted values, and names the old URL, with the signature that Azure has in
its query, as ``Referer``. So the client gets a proxy for all hosts but those of the store, whose
address is one where nothing can ever listen. A redirect to another host ends before anything is sent.

This does not hold where you have a proxy, for stores of obstore that you make yourself, and between two ports of one
host.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnizarr.stores.urls import parse

NOWHERE: Final = "http://127.0.0.1:0"
"""The proxy for all other hosts."""

_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")
_OF_MACHINES: Final = ("169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "fd00:ec2::23")
"""Addresses from which virtual machines get credentials."""


def confined(kind: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a store of obstore, so that its client reaches its own servers only.

    They are unchanged if nothing secret is sent but what redirects do not pass on, or if there is a proxy.
    """
    client, config = settings.get("client_options") or {}, settings.get("config") or {}
    has_headers = bool(client.get("default_headers"))
    hosts = {"S3Store": _hosts_of_s3, "AzureStore": _hosts_of_azure}.get(kind)
    if hosts is None or "proxy_url" in client or has_proxy():
        return settings
    found = list(filter(None, hosts(config, settings.get("credential_provider") is not None, has_headers)))
    if not found:
        return settings
    own = {"proxy_url": NOWHERE, "proxy_excludes": ",".join(dict.fromkeys(found))}
    return {**settings, "client_options": {**client, **own}}


def without_bounds(client: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a client without those of `confined`, for clients that follow no redirects."""
    if client.get("proxy_url") != NOWHERE:
        return dict(client)
    return {name: value for name, value in client.items() if name not in {"proxy_url", "proxy_excludes"}}


def has_proxy() -> bool:
    """Return whether the environment names a proxy."""
    return any(value for name, value in os.environ.items() if name.lower() in _PROXIES)


def _hosts_of_s3(config: Mapping[str, Any], has_provider: bool, has_headers: bool) -> Iterator[str]:  # noqa: FBT001
    if _is_true(config.get("skip_signature")) and not has_headers:
        return
    environment = {name: os.environ.get(f"AWS_{name}".upper()) for name in ("region", "default_region")}
    regions = [*map(config.get, environment), *environment.values(), "us-east-1"]
    regions = [str(region).lower() for region in regions if region]
    endpoint = config.get("endpoint")
    if endpoint:
        yield _host(endpoint)
    elif _is_true(config.get("s3_express") or os.environ.get("AWS_S3_EXPRESS")):
        return  # each zone has a host of its own
    else:
        yield from (f"s3.{region}.amazonaws.com" for region in regions)
    if has_provider or config.get("access_key_id") or os.environ.get("AWS_ACCESS_KEY_ID"):
        return
    yield from ("sts.amazonaws.com", *(f"sts.{region}.amazonaws.com" for region in regions), *_OF_MACHINES)
    for name in ("sts_endpoint", "metadata_endpoint", "container_credentials_full_uri"):
        yield _host(config.get(name))
    for name in ("AWS_ENDPOINT_URL_STS", "AWS_METADATA_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        yield _host(os.environ.get(name))


def _hosts_of_azure(config: Mapping[str, Any], has_provider: bool, has_headers: bool) -> Iterator[str]:  # noqa: FBT001
    signatures = ("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN")
    is_signed = bool(config.get("sas_key")) or any(map(os.environ.get, signatures))
    is_encrypted = bool(config.get("encryption_key") or os.environ.get("AZURE_STORAGE_ENCRYPTION_KEY"))
    if not (is_signed or is_encrypted or has_headers or has_provider):
        return
    endpoint = config.get("endpoint") or os.environ.get("AZURE_STORAGE_ENDPOINT") or os.environ.get("AZURE_ENDPOINT")
    account = config.get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    if _is_true(config.get("use_emulator") or os.environ.get("AZURE_STORAGE_USE_EMULATOR")):
        yield from ("127.0.0.1", "localhost", _host(os.environ.get("AZURITE_BLOB_STORAGE_URL")))
    elif endpoint:
        yield _host(endpoint)
    elif account:
        yield from (f"{account}.{kind}" for kind in ("blob.core.windows.net", "dfs.core.windows.net"))
        yield f"{account}.blob.fabric.microsoft.com"
    else:
        return
    if is_signed or config.get("account_key") or os.environ.get("AZURE_STORAGE_ACCOUNT_KEY"):
        return
    yield from ("login.microsoftonline.com", "169.254.169.254")
    for name in ("authority_host", "msi_endpoint", "fabric_token_service_url"):
        yield _host(config.get(name))
    for name in ("AZURE_STORAGE_AUTHORITY_HOST", "AZURE_AUTHORITY_HOST", "AZURE_MSI_ENDPOINT", "IDENTITY_ENDPOINT"):
        yield _host(os.environ.get(name))


def _is_true(value: object) -> bool:
    return str(value).lower() in {"true", "1"}


def _host(url: str | None) -> str:
    """Return the host of a URL; "" if it has none.

    >>> _host("https://minio.example.org:9000"), _host("http://[::1]:9000"), _host(None)
    ('minio.example.org', '::1', '')
    """
    try:
        return parse.urlsplit(url or "").hostname or ""
    except ValueError:
        return ""
