"""URLs and options of object stores.

========================================  ============================================================================
``s3://bucket/path``, ``s3a://``          S3, and compatible servers
``gs://bucket/path``, ``gcs://``          Google Cloud Storage
``az://container/path``, ``azure://``,    Azure Blob Storage; the account by ``account_name`` or the environment, or as
``adl://``, ``abfs://``, ``abfss://``     in ``abfs://container@account.dfs.core.windows.net/path``
``http://host/path``, ``https://``        HTTP; it can be written if the server takes PUT and DELETE
========================================  ============================================================================

The first form in each line is canonical: the scheme, the bucket, and the path, not percent-encoded, as the tools of
these clouds write it. HTTP URLs are percent-encoded, and may have a user, a password and a query, which are sent with
every request and never shown. ``https://`` means HTTP, even for an S3 server: for S3, use ``s3://`` and `endpoint`.

Options (``storage_options``) are those of obstore:

- of a cloud: `endpoint`, `region`, `access_key_id`, `secret_access_key`, `session_token`, `skip_signature` (anonymous),
  `virtual_hosted_style_request` (the bucket is part of the host, not of the path), `conditional_put`,
  `disable_bulk_delete` (keys are deleted one by one, not a thousand by one request), ...; `base_url`,
  `service_account`, `service_account_key`, `bearer_token`, ...; `account_name`, `account_key`, `sas_key`, ...; with or
  without ``aws_``, ``google_``, ``azure_`` before them; or `credential_provider`;
- of the HTTP client: `timeout`, `connect_timeout`, `read_timeout` (seconds, or text like "2min"), `allow_http`,
  `proxy_url`, `default_headers`, ...; separately, or together as `client_options`;
- of retries: `max_retries`, `retry_timeout`, `backoff`; separately, or together as `retry_config` or `retry`;
- `concurrency`, `max_value_bytes`, `max_keys`, `list_timeout` of `ObjectStore`;
- in the spelling of fsspec: `anon`, `key`, `secret`, `token`, `endpoint_url`, `client_kwargs`, `profile` (read by
  boto3), `connection_string`, `sas_token`, `headers`.

Other values come from the environment: ``AWS_*``, ``GOOGLE_*``, ``AZURE_*``; also ``AWS_ENDPOINT_URL``,
``AWS_PROFILE``, ``STORAGE_EMULATOR_HOST``, ``AZURE_STORAGE_CONNECTION_STRING``. Plain http is allowed if the
endpoint begins with ``http://``.

A request is repeated if there was no connection, if the answer was incomplete, or if the status was 5xx or 429: for 30
seconds, and at most ten times. A server that stops answering times out after 20 seconds, so the last attempt ends after
50 seconds.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Hashable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from omnizarr.errors import MissingDependencyError, SettingError, StoreError
from omnizarr.stores.urls import parse as urls
from omnizarr.support import extras, suggestions

_BACKENDS: Final = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "azure", "adl", "abfs", "abfss"), "az"),
    **dict.fromkeys(("http", "https"), "http"),
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OWN: Final = frozenset({"concurrency", "max_value_bytes", "max_keys", "list_timeout"})

_CLIENT: Final = _words(
    "allow_http allow_invalid_certificates connect_timeout default_content_type default_headers http1_only "
    "http2_keep_alive_interval http2_keep_alive_timeout http2_keep_alive_while_idle http2_only pool_idle_timeout "
    "pool_max_idle_per_host proxy_url proxy_ca_certificate proxy_excludes root_certificate randomize_addresses "
    "read_timeout timeout user_agent"
)

_RETRY: Final = frozenset({"max_retries", "retry_timeout", "backoff"})

_OF_SERVER: Final = _words(
    "endpoint base_url region default_region virtual_hosted_style_request account_name use_emulator "
    "allow_http connect_timeout read_timeout timeout proxy_url proxy_ca_certificate proxy_excludes root_certificate"
)
"""Options that tell which server is asked, and how; not by whom."""

_OPTIONS: Final = {
    "s3": _words(
        "access_key_id checksum_algorithm conditional_put container_credentials_relative_uri "
        "container_credentials_full_uri container_authorization_token_file copy_if_not_exists default_region "
        "disable_tagging disable_bulk_delete endpoint imdsv1_fallback metadata_endpoint region request_payer role_arn "
        "role_session_name s3_express secret_access_key server_side_encryption session_token skip_signature "
        "sse_bucket_key_enabled sse_customer_key_base64 sse_kms_key_id sts_endpoint unsigned_payload "
        "virtual_hosted_style_request web_identity_token_file"
    ),
    "gs": _words("service_account service_account_key base_url bearer_token application_credentials skip_signature"),
    "az": _words(
        "account_name account_key client_id client_secret credential_type tenant_id authority_host sas_key token "
        "use_emulator use_fabric_endpoint encryption_key endpoint msi_endpoint object_id msi_resource_id "
        "federated_token_file use_azure_cli skip_signature disable_tagging fabric_token_service_url "
        "fabric_workload_host fabric_session_token fabric_cluster_identifier"
    ),
    "http": frozenset[str](),
}

# Names that are not options of obstore, and are replaced by one or several options.
_OTHERS: Final = {"s3": {"profile"}, "gs": {"token", "project"}, "az": {"connection_string"}, "http": set[str]()}

# Names of the same options in other libraries and in the libraries of the clouds.
_SPELLINGS: Final = {
    "s3": {
        "anon": "skip_signature",
        "key": "access_key_id",
        "secret": "secret_access_key",
        "token": "session_token",
        "endpoint_url": "endpoint",
        "region_name": "region",
        "aws_session_token": "session_token",
        "requester_pays": "request_payer",
    },
    "gs": {"anon": "skip_signature", "endpoint_url": "base_url", "endpoint": "base_url"},
    "az": {
        "anon": "skip_signature",
        "account_host": "endpoint",
        "sas_token": "sas_key",
        "credential": "account_key",
        "account_url": "endpoint",
        "endpoint_url": "endpoint",
        "blob_endpoint": "endpoint",
    },
    "http": {},
}
_PREFIXES: Final = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_storage_", "azure_"), "http": ()}

_CONNECTION: Final = {
    "accountname": "account_name",
    "accountkey": "account_key",
    "blobendpoint": "endpoint",
    "sharedaccesssignature": "sas_key",
}

_CLIENT_DEFAULTS: Final = {
    "connect_timeout": "5s",
    "read_timeout": "20s",
    "timeout": "10min",
    "pool_idle_timeout": "30s",
}
_RETRY_DEFAULTS: Final = {
    "max_retries": 10,
    "retry_timeout": timedelta(seconds=20),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
}


def backend_of(scheme: str) -> str | None:
    """Return the service of a scheme: "s3", "gs", "az" or "http"; None for other schemes.

    >>> backend_of("s3a"), backend_of("https"), backend_of("ftp")
    ('s3', 'http', None)
    """
    return _BACKENDS.get(scheme)


def own_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `ObjectStore` itself. Raises StoreError for any other."""
    for name in options:
        if name not in _OWN:
            raise _unknown(name, _OWN, "a store of obstore has its options already")
    return options


def anonymous(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by which anybody can read what is public: those about the server and its client.

    >>> anonymous("s3", {"key": "a", "secret": "b", "endpoint_url": "https://example.org"})
    {'endpoint_url': 'https://example.org', 'skip_signature': True}
    >>> anonymous("https", {"headers": {"Authorization": "x"}})
    {}
    """
    backend = _BACKENDS[scheme.lower()]
    if backend == "http":
        return {}
    flat = {**(options.get("client_kwargs") or {}), **(options.get("config") or {}), **options}
    kept = {name: value for name, value in flat.items() if _name(backend, name) in _OF_SERVER | _RETRY | _OWN}
    return {**kept, "skip_signature": True}


def plain_options(backend: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a cloud under the names of obstore, for another library that opens it.

    Raises StoreError for unknown names.

    >>> plain_options("s3", {"key": "a", "endpoint_url": "http://127.0.0.1:9000", "anon": None})
    {'access_key_id': 'a', 'endpoint': 'http://127.0.0.1:9000'}
    """
    settings = _settings(backend, {name: value for name, value in options.items() if name not in _OWN})
    config: dict[str, Any] = settings["config"]
    if backend == "s3" and (profile := config.pop("profile", None)) is not None:
        _take_profile(profile, config)
    client = settings["client_options"]
    return {**config, **({"allow_http": True} if client.get("allow_http") else {})}


def parse(url: str, options: dict[str, Any]) -> tuple[Any, str, dict[str, Any]]:
    """Return the store of obstore for a URL, the path in it, and the options of `ObjectStore` itself."""
    scheme, _, rest = url.partition("://")
    backend = _BACKENDS.get(scheme.lower())
    if backend is None:
        raise StoreError(
            "no URL of an object store", found=f"{scheme}://", expected=", ".join(map("{}://".format, _BACKENDS))
        )
    own = {name: options.pop(name) for name in _OWN & options.keys()}
    own |= {name: _number(name, value) for name, value in own.items() if name != "max_value_bytes"}
    if backend == "http":
        settings = _settings(backend, options)
        root, path = _split_http(url)
        root = _log_in(root, settings["client_options"])
        settings["client_options"].setdefault("allow_http", scheme.lower() == "http")
        return _make("HTTPStore", root, settings), path, own
    bucket, _, path = rest.partition("/")
    if backend == "az" and "@" in bucket:
        bucket, _, host = bucket.partition("@")
        options.setdefault("account_name", host.partition(".")[0])
    if not bucket or "@" in bucket:
        raise StoreError(
            "the URL names no bucket",
            found=f"{scheme}://{bucket.rpartition('@')[2]}",
            expected=f"{scheme}://bucket/path",
        )
    settings = _settings(backend, options)
    make = {"s3": _s3, "gs": _gs, "az": _az}[backend]
    return make(bucket, settings), path.strip("/"), own


def _split_http(url: str) -> tuple[str, str]:
    """Return the URL of the server, with user and query, and the decoded path."""
    try:
        parts = urls.urlsplit(url)
    except ValueError as error:
        raise StoreError("no URL", found=str(error), expected="https://host/path") from None
    if not parts.hostname:
        raise StoreError("the URL names no host", found=f"{parts.scheme}://", expected="https://host/path")
    path = urls.unquote(parts.path).strip("/")
    return urls.urlunsplit((parts.scheme.lower(), parts.netloc, "/", parts.query, "")), path


def _log_in(root: str, client: dict[str, Any]) -> str:
    """Return the URL without user and password. They become a header, because obstore does not send them."""
    parts = urls.urlsplit(root)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return root
    given = urls.unquote_to_bytes(user if ":" in user else f"{user}:")
    token = base64.b64encode(given).decode()
    client["default_headers"] = {"Authorization": f"Basic {token}", **(client.get("default_headers") or {})}
    return urls.urlunsplit(parts._replace(netloc=host))


def _settings(backend: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return options for the backend, its client and its retries, under the names of obstore."""
    client: dict[str, Any] = {**_CLIENT_DEFAULTS, **(options.pop("client_options", None) or {})}
    retry: dict[str, Any] = dict(_RETRY_DEFAULTS)
    for name in ("retry", "retry_config"):
        given = options.pop(name, None)
        retry.update({"max_retries": given} if isinstance(given, int) else given or {})
    provider = options.pop("credential_provider", None)
    for name in ("config", "client_kwargs"):
        options = {**(options.pop(name, None) or {}), **options}
    config: dict[str, Any] = {}
    known = _OPTIONS[backend] | _OTHERS[backend] | _CLIENT | _RETRY
    for given, value in options.items():
        name = _name(backend, given)
        if value is None:
            continue
        if name in _CLIENT:
            client[name] = value
        elif name in _RETRY:
            retry[name] = _number(given, value)
        elif name in known:
            config[name] = value
        else:
            raise _unknown(
                given, known | _SPELLINGS[backend].keys() | _OWN, f"an option that {backend}:// does not have"
            )
    for name in ("timeout", "connect_timeout", "read_timeout", "pool_idle_timeout"):
        if isinstance(client.get(name), str) and _is_number(client[name]):
            client[name] = float(client[name])
        if isinstance(client.get(name), (int, float)):
            client[name] = timedelta(seconds=client[name])
    if isinstance(retry["retry_timeout"], (int, float)):
        retry["retry_timeout"] = timedelta(seconds=retry["retry_timeout"])
    return {"config": config, "client_options": client, "retry_config": retry, "credential_provider": provider}


_is_number: Final = re.compile(r"[0-9]+(\.[0-9]+)?").fullmatch


def _number(name: str, value: Any) -> Any:
    """Return the value of an option that is a number, which the command line passes as text."""
    if not isinstance(value, str):
        return value
    if not _is_number(value.strip()):
        if name == "retry_timeout":  # obstore understands times with a unit
            return value
        raise SettingError("an option of the store is not a number", found=name, expected="a number")
    return float(value) if "." in value else int(value)


def _name(backend: str, name: str) -> str:
    name = name.lower()
    for prefix in _PREFIXES[backend]:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return "default_headers" if name == "headers" else _SPELLINGS[backend].get(name, name)


def _unknown(name: str, known: frozenset[str], message: str) -> StoreError:
    return StoreError(message, found=name, remedy=suggestions.meant(name, known))


def _s3(bucket: str, settings: dict[str, Any]) -> Any:
    config = settings["config"]
    profile = config.pop("profile", None) or (None if _has_keys(config, settings) else os.environ.get("AWS_PROFILE"))
    if profile is not None:
        _take_profile(profile, config)
    endpoint = config.get("endpoint") or next(
        filter(None, map(os.environ.get, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"))), ""
    )
    if endpoint:
        config["endpoint"] = _endpoint(endpoint, bucket, config)
        _allow_http(endpoint, settings)
    return _make("S3Store", bucket, settings)


def _has_keys(config: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    return bool("access_key_id" in config or config.get("skip_signature") or settings["credential_provider"])


def _endpoint(endpoint: str, bucket: str, config: Mapping[str, Any]) -> str:
    """Return the endpoint in the form that obstore expects: with the bucket in it, for virtual-hosted requests."""
    endpoint = endpoint.rstrip("/")
    if str(config.get("virtual_hosted_style_request", "")).lower() in ("true", "1"):
        scheme, _, host = endpoint.partition("://")
        if not host.startswith(f"{bucket}."):
            return f"{scheme}://{bucket}.{host}"
    return endpoint


def _take_profile(profile: str, config: dict[str, Any]) -> None:
    try:
        boto3 = import_module("boto3")
    except ImportError as error:
        raise MissingDependencyError(
            "profiles of AWS are read by the package boto3", remedy="pip install boto3, or give the keys"
        ) from error
    try:
        session = boto3.Session(profile_name=profile)
        credentials = session.get_credentials()
    except Exception as error:  # the profile does not exist, or its file is broken
        raise StoreError("the profile cannot be read", found=f"{profile}: {error}") from error
    if credentials is None:
        raise StoreError("the profile has no credentials", found=profile)
    keys = credentials.get_frozen_credentials()
    found = {
        "access_key_id": keys.access_key,
        "secret_access_key": keys.secret_key,
        "session_token": keys.token,
        "region": session.region_name,
    }
    config.update({name: value for name, value in found.items() if value and name not in config})


def _gs(bucket: str, settings: dict[str, Any]) -> Any:
    config = settings["config"]
    config.pop("project", None)  # reading and writing need none
    token = config.pop("token", None)
    if token == "anon":  # noqa: S105 - as gcsfs spells it
        config["skip_signature"] = True
    elif isinstance(token, str):
        config["service_account" if os.path.exists(token) else "bearer_token"] = token
    base = config.get("base_url") or os.environ.get("STORAGE_EMULATOR_HOST")
    if base:
        base = config["base_url"] = base if "://" in base else f"http://{base}"
        _allow_http(base, settings)
    return _make("GCSStore", bucket, settings)


def _az(container: str, settings: dict[str, Any]) -> Any:
    config = settings["config"]
    text = config.pop("connection_string", None) or os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    for part in filter(None, text.split(";")):
        name, _, value = part.partition("=")
        if name.lower() in _CONNECTION:
            config.setdefault(_CONNECTION[name.lower()], value)
    _allow_http(config.get("endpoint") or os.environ.get("AZURE_STORAGE_ENDPOINT", ""), settings)
    return _make("AzureStore", container, settings)


def _allow_http(endpoint: str, settings: dict[str, Any]) -> None:
    """Allow plain http if the endpoint begins with it. Raises StoreError if the endpoint cannot be parsed."""
    try:
        _ = urls.urlsplit(endpoint).port
    except ValueError as error:
        raise StoreError("the endpoint is not a URL", found=str(error), expected="https://host:port") from None
    if endpoint.lower().startswith("http://"):
        settings["client_options"].setdefault("allow_http", True)


# Stores of obstore by everything that defines them, the last used last: creating one takes as long as several requests.
# Each has connections. A store that is not kept here closes them when the last `ObjectStore` that uses it is gone.
_made: Final[dict[tuple[Hashable, ...], Any]] = {}
_MOST_MADE: Final = 8
_VARIABLES: Final = ("AWS_", "GOOGLE_", "AZURE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_")


def _name_of(kind: str, place: str, settings: Mapping[str, Any]) -> tuple[Hashable, ...] | None:
    """Return a name that distinguishes a store from all others; None if there is none."""
    if settings.get("credential_provider") is not None:
        return None
    given = tuple(sorted((name, repr(value)) for name, value in settings.items()))
    return os.getpid(), kind, place, given, variables()


def variables() -> tuple[tuple[str, str], ...]:
    """Return the environment variables that count."""
    return tuple(sorted(item for item in os.environ.items() if item[0].upper().startswith(_VARIABLES)))


def _make(kind: str, place: str, settings: dict[str, Any]) -> Any:
    settings = {name: value for name, value in settings.items() if value}
    name = _name_of(kind, place, settings)
    if name is None:
        return _new(kind, place, settings)
    made = _made.get(name) or _new(kind, place, settings)
    _made.pop(name, None)
    # Dropping a store takes its locks. If the parent of a forked process created it, these may never become free.
    own = [known for known in list(_made) if known[0] == name[0]]
    for known in own[: max(0, len(own) + 1 - _MOST_MADE)]:
        _made.pop(known, None)
    _made[name] = made
    return made


def _new(kind: str, place: str, settings: Mapping[str, Any]) -> Any:
    from omnizarr.stores.remote import object_errors, redirects  # noqa: PLC0415 - not needed before

    settings = redirects.confined(kind, settings)
    make = getattr(import_obstore(), kind)
    try:
        return make(place, **settings)
    except Exception as error:  # noqa: BLE001 - what obstore raises has no base in common
        found = object_errors.clean(str(error))
    raise StoreError("the options make no store", found=found)


def lacks_bulk(store: Any) -> bool:
    """Return whether the options of a store of S3 say that it deletes keys one by one."""
    return str(store.config.get("disable_bulk_delete")).lower() in {"true", "1"}


def without_bulk(store: Any) -> Any:
    """Return the same store of S3, which deletes keys one by one."""
    args, kwargs = store.__getnewargs_ex__()
    config = {**(kwargs.get("config") or {}), "disable_bulk_delete": True}
    return import_obstore().S3Store(*args, **{**kwargs, "config": config})


def import_obstore() -> Any:
    """Return the stores of obstore. Raises MissingDependencyError if it is not installed."""
    try:
        return import_module("obstore.store")
    except ImportError as error:
        raise MissingDependencyError("object stores need the package obstore", remedy=extras.remedy("cloud")) from error


def origin(store: Any, kind: str) -> tuple[tuple[Hashable, ...], str]:
    """Return an identity of the bucket of a store of obstore, and the path in it where the store begins."""
    if kind == "HTTPStore":
        root, path = _split_http(store.url)
        return ("http", _shown_host(root)), path
    if kind == "MemoryStore":
        return ("obstore", id(store)), ""
    config = store.config
    place = [config.get(name) for name in ("bucket", "container_name", "account_name")]
    ends = [_shown_host(config[name]) if name in config else None for name in ("endpoint", "base_url")]
    return (kind, *place, *ends), str(store.prefix or "").strip("/")


def shown(store: Any, kind: str, prefix: str) -> str:
    """Return the URL of a store of obstore for display: without user, query and options."""
    (_, *place), below = origin(store, kind)
    path = f"{below}/{prefix}".strip("/")
    if kind == "HTTPStore":
        return f"{place[0]}{urls.quote(path)}"
    if kind == "MemoryStore":
        return f"obstore-memory:///{path}"
    scheme = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}[kind]
    return f"{scheme}://{place[0] or place[1]}/{path}".rstrip("/")


def _shown_host(url: str) -> str:
    parts = urls.urlsplit(url)
    return urls.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path or "/", "", ""))
