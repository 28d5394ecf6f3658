"""What data may lead to: files, buckets and hosts that it names, or all, if the user trusts it.

One rule for all formats whose files name others. The user gives trust with ``references="trusted"``, or with a list of
*roots*, directories and URLs below which everything may be read: as a keyword, in `storage_options`, or as the setting
``references.trust``; on the command line with ``--trust-references`` and ``--trust-root``. Without it:

==========================  =======================================================================================
files of this machine       those in the directory of the data and below, all links followed
the host or bucket of data  all of it
other buckets               anonymously; `PUBLIC` only
other web servers           those with a public address, without the user's headers; `PUBLIC` only
everything else             nothing: private addresses, memory, other protocols, chains
==========================  =======================================================================================

`PUBLIC` is the default of references of Kerchunk whose name says what they are.
"""

from __future__ import annotations

import ipaddress
import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from omnizarr.errors import Remedy, StorageOption, StoreAccessError
from omnizarr.settings import check, config
from omnizarr.stores.redaction import redact
from omnizarr.stores.urls import LOCAL, parse, path_in_fsspec, scheme_of
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import socket

    from omnizarr.stores.remote import object_urls
else:
    socket = Lazy("socket")
    object_urls = Lazy("omnizarr.stores.remote.object_urls")

References: TypeAlias = Literal["inside", "trusted"] | Sequence[str]
"""What data may name: what is in its own directory; everything; or also what is below some roots."""

INSIDE: Final = "inside"
PUBLIC: Final = "public"
TRUSTED: Final = "trusted"
_ALL: Final = Remedy("if you trust them, pass {references}", references=StorageOption("trusted"))
_BELOW: Final = "only what is below a root, by {references}"

_PRIVATE: Final = (".localhost", ".local", ".internal", ".intranet", ".lan", ".corp", ".home", ".home.arpa")
"""Suffixes of the names of hosts in private networks."""
_TRANSLATED: Final = "64:ff9b::/96"
"""IPv6 addresses that contain an IPv4 address (RFC 6052)."""
# A URL in which Python and the HTTP client could see different hosts matches none of these.
_is_plain_host = re.compile(r"(?:[^@\\/?#\s]*@)?(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]*)?").fullmatch
_is_bucket = re.compile(r"[A-Za-z0-9][A-Za-z0-9._$-]*(?:@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)?").fullmatch


@dataclass(frozen=True, slots=True)
class Trust:
    """What the user allows."""

    word: str
    """`INSIDE`, `PUBLIC` or `TRUSTED`."""
    roots: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether everything may be read."""
        return self.word == TRUSTED

    @property
    def directories(self) -> list[str]:
        """The roots that are directories of this machine."""
        return [os.path.expanduser(path_in_fsspec(root)) for root in self.roots if scheme_of(root) in {None, *LOCAL}]

    def covers(self, url: str) -> bool:
        """Return whether a URL is below a root.

        >>> trust = Trust(INSIDE, ("s3://noaa-goes16", "https://example.org/data"))
        >>> trust.covers("s3://noaa-goes16/a"), trust.covers("https://example.org/data/../b"), trust.covers("s3://b/a")
        (True, False, False)
        """
        return self.is_complete or any(_is_below(url, root) for root in self.roots)


def of(references: Any, default: str = INSIDE) -> Trust:
    """Return what a user allows, by keyword or by the setting. Raises SettingError for other words."""
    given = config.get("references.trust") if references is None else references
    if given is None:
        return Trust(default)
    check("references.trust", given, "this trust in references")
    if isinstance(given, str) and given in {INSIDE, PUBLIC, TRUSTED}:
        return Trust(given)
    roots = tuple(given) if _is_list(given) else (given,)
    return Trust(INSIDE, tuple(map(os.fspath, roots)))


def _is_list(given: Any) -> bool:
    return isinstance(given, list | tuple | set | frozenset)


# -- files of this machine ---------------------------------------------------------------


def is_inside(target: Path, directories: Iterable[Path]) -> bool:
    """Return whether a path, with all links followed, is in one of some directories.

    >>> is_inside(Path("/data/x/../../etc/passwd"), [Path("/data")])
    False
    """
    return root_of(target, directories) is not None


def root_of(target: str | os.PathLike[str], directories: Iterable[str | os.PathLike[str]]) -> tuple[str, str] | None:
    """Return the directory in which a path is, and its place there, both with all links followed; None if in none."""
    real = os.path.realpath(target)
    for root in map(os.path.realpath, directories):
        if Path(real).is_relative_to(root):
            return root, Path(real).relative_to(root).as_posix()
    return None


# -- other machines ----------------------------------------------------------------------


def is_same_place(url: str, other: str) -> bool:
    """Return whether two URLs are in the same bucket, or on the same web server.

    >>> is_same_place("https://a.org/x", "https://a.org:443/y"), is_same_place("http://a.org/x", "https://a.org/x")
    (True, False)
    """
    if scheme_of(other) is None or "::" in url.partition("?")[0]:
        return False
    return "::" not in other.partition("?")[0] and _place(url)[:2] == _place(other)[:2] != ("", "")


def is_public(url: str) -> bool:
    """Return whether a URL leads to a bucket, or to a web server that is not one of a private network."""
    scheme, place = scheme_of(url), url.partition("://")[2].partition("/")[0]
    service = None if scheme is None else object_urls.backend_of(scheme)
    if service is None or "::" in url.partition("?")[0]:
        return False
    if service != "http":
        return _is_bucket(place) is not None and (service == "az" or "@" not in place)
    try:
        parts = parse.urlsplit(url)
        return bool(_is_plain_host(parts.netloc)) and _is_public_host(parts.hostname or "")
    except ValueError:
        return False


def _is_public_host(host: str) -> bool:
    """Return whether a name, or all addresses that it has, are public."""
    host = host.rstrip(".").lower()
    try:
        return is_public_address(host if ":" in host else socket.inet_ntoa(socket.inet_aton(host)))
    except OSError:  # not 127.0.0.1, 127.1 or 0x7f000001
        pass
    if "." not in host or host.endswith(_PRIVATE):
        return False
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # only a proxy may know it
        return True
    return all(is_public_address(str(address[4][0])) for address in found)


def is_public_address(text: str) -> bool:
    """Return whether an address of IP is one that everybody reaches.

    >>> is_public_address("8.8.8.8"), is_public_address("10.0.0.1"), is_public_address("::ffff:127.0.0.1")
    (True, False, False)
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in ipaddress.ip_network(_TRANSLATED):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        address = inner or address
    return address.is_global and not address.is_multicast


def _is_below(url: str, root: str) -> bool:
    if "::" in url.partition("?")[0] or "::" in root:  # chains are compared as they are written
        rest = url.removeprefix(root.rstrip("/")) if url.startswith(root.rstrip("/")) else "::"
        return rest[:1] in {"", "/"} and "::" not in rest and ".." not in rest.split("/")
    one, other = _place(url), _place(root)
    is_there = one[0] == other[0] and other[1] in {"", one[1]}
    return is_there and (other[2] in {"", one[2]} or one[2].startswith(f"{other[2]}/"))


def _place(url: str) -> tuple[str, str, str]:
    """Return scheme, host or bucket, and path of a URL, each in one spelling."""
    scheme, rest = scheme_of(url) or "", url.partition("://")[2]
    service = object_urls.backend_of(scheme) or scheme
    if service != "http":
        place, _, path = rest.partition("/")
        return service, place, _normal(path)
    try:
        parts = parse.urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[scheme]
    except ValueError:
        return "", "", ""
    if parts.netloc and not _is_plain_host(parts.netloc):
        return "", "", ""
    host = f"{(parts.hostname or '').lower()}:{port}" if parts.netloc else ""
    return scheme, host, _normal(parse.unquote(parts.path))


def _normal(path: str) -> str:
    return posixpath.normpath(f"/{path}").strip("/") if path.strip("/") else ""


# -- refusals ------------------------------------------------------------------------------


def refused_target(target: str) -> StoreAccessError:
    """Return the error for references that lead to a file, bucket or host which the user did not allow."""
    shown = redact(target)
    is_url = scheme_of(target) is not None
    place = shown.partition("?")[0].rpartition("/")[0] if is_url else os.path.dirname(os.path.abspath(target))
    return StoreAccessError(
        "references may lead there only if you trust them",
        found=shown,
        expected="a file in their own directory, on their own server, or in public",
        remedy=_ALL | Remedy(_BELOW, references=StorageOption([place])),
    )


def refused_set(path: str) -> StoreAccessError:
    """Return the error for references whose name does not say what they are."""
    return StoreAccessError(
        "references of Kerchunk, to files elsewhere, whose name does not say so",
        store=path,
        expected="a name that ends in .json, .json.gz, .json.zst, .parq or .parquet",
        remedy=_ALL,
    )
