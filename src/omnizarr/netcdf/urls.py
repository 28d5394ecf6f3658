r"""Paths and URLs of datasets: ``file:///data/x.zarr#mode=nczarr,file``, ``s3://bucket/x#mode=zarr,s3``, ``x.zarr``.

The part after ``#`` tells the program how to read and write. It is not sent to a server. It consists of
``key=value`` pairs separated by ``&``; the value of ``mode`` is a list of words separated by commas.

- A word may also appear without ``mode=``: ``#zarr``. Case does not matter.
- ``zarr`` takes precedence over ``nczarr``, and ``xarray`` implies ``zarr``. ``noxarray`` takes precedence over
  ``xarray``, and means nothing else. (netCDF-C then also omits NCZarr's own attributes, contrary to the
  specification.)
- Contradictory words are an error (netCDF-C uses the last one), and so are unknown words.
- Missing information is inferred from existing data. A new dataset becomes NCZarr in a directory, or in an archive if
  the name ends in ``.zip``. netCDF-C creates nothing without a mode.
- ``zip`` means an archive for netCDF-C, which needs everything in one folder. An archive created without it has the
  dataset at its root, where other readers of Zarr look.
- ``%20`` is a space, as in all URLs except those of netCDF-C.
- In a path, ``#`` is an ordinary character, unless ``mode=`` follows.

Spec: NCZarr, "URL Format", "Client Parameters", "Addressing Style".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from omnizarr.errors import NodeExistsError, SettingError, StoreError
from omnizarr.stores import LocalStore, PrefixStore, Store, kinds
from omnizarr.stores.base import is_key
from omnizarr.stores.resolve import resolve_root
from omnizarr.stores.urls import parse as urllib_parse
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.stores.local import zip as archives
else:
    archives = Lazy("omnizarr.stores.local.zip")

Mode: TypeAlias = Literal["nczarr", "zarr"]
Storage: TypeAlias = Literal["file", "zip", "s3"]
ZarrFormat: TypeAlias = Literal[2, 3]

_FORMATS: Final[Mapping[str, ZarrFormat]] = {"v2": 2, "v3": 3}
_WORDS: Final = {*get_args(Mode), *get_args(Storage), *_FORMATS, "xarray", "noxarray", "consolidated", "gs3"}
# Other formats that netCDF-C reads.
_OTHER: Final = {"bytes", "dap2", "dap4", "netcdf-3", "classic", "netcdf-4", "enhanced"}
_SPEC: Final = 'NCZarr, "Client Parameters"'
# Names of documents in Zarr v3 and v1 that do not begin with a dot.
_DOCUMENTS: Final = {"zarr.json", "meta", "attrs"}

_GOOGLE: Final = "storage.googleapis.com"
_OPTIONS: Final = {"awsprofile": "profile", "aws.profile": "profile", "aws.region": "region"}

# Names in stores for the S3 parts of a URL.
_OF_S3: Final = {
    "endpoint": "endpoint",
    "region": "region",
    "profile": "profile",
    "access_key_id": "user",
    "secret_access_key": "password",
}

_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://").match  # of two letters or more: C:\ is a drive
_WITHOUT_HOST: Final = frozenset({"memory", "sqlite", "lmdb", *kinds.ICECHUNK.schemes})
_file = re.compile(r"file:", re.IGNORECASE).match
_fragment_of_path = re.compile(r"\\?#(?=mode=)", re.IGNORECASE).split
# bucket.s3.us-west-1.amazonaws.com, s3.us-west-1.amazonaws.com, both also without region; the specification has
# s2 for s3 once.
_amazon = re.compile(
    r"(?:(?P<bucket>.+)\.)?s[23](?:[.-](?P<region>[a-z0-9-]+))?(?P<domain>\.amazonaws\.com(?:\.cn)?)", re.IGNORECASE
).fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The place of a dataset, and the settings in its URL.

    Attributes
    ----------
    place : str
        A path, or a URL without fragment, as `omnizarr.open` accepts it. S3 URLs have the path style.
    mode : {"nczarr", "zarr"}, optional
        Whether to use NCZarr's own metadata, or Zarr alone. None: as found, and "nczarr" for new datasets.
    zarr_format : {2, 3}, optional
    storage : {"file", "zip", "s3"}, optional
    xarray : bool
        Whether to name dimensions in xarray's way, too.
    consolidated : bool
        Whether to use consolidated metadata.
    options : mapping of str to str
        For S3: ``bucket``, ``key``, ``endpoint``, ``region`` and ``profile``, as far as known; ``user`` and
        ``password``; and every unknown pair of the fragment, unchanged.
    """

    place: str
    mode: Mode | None = None
    zarr_format: ZarrFormat | None = None
    storage: Storage | None = None
    xarray: bool = True
    consolidated: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # they may hold secrets

    @property
    def is_local(self) -> bool:
        """Whether `place` is a path."""
        return _scheme(self.place) is None

    @property
    def name(self) -> str:
        """The name of the dataset in CDL: the last part of the place, without its extension.

        >>> parse("file:///data/ref.v1.zarr#mode=zarr").name
        'ref.v1'
        """
        path = self.place if self.is_local else urllib_parse.unquote(urllib_parse.urlsplit(self.place).path)
        last = re.split(r"[/\\]" if os.name == "nt" else "/", path.rstrip("/"))[-1]
        return last.rpartition(".")[0] or last

    def open_store(self, mode: str = "r", storage_options: Mapping[str, Any] | None = None) -> tuple[Store, str]:
        """Return the store, and the path in it where the dataset begins, like `omnizarr.stores.resolve`.

        The storage in the URL determines what is created. Existing data is opened as what it is. Nothing is
        erased: for an archive that is to be replaced (mode "w"), the store is a folder in it for the new dataset.
        The S3 settings in the URL (server, region, profile, user) take precedence over `storage_options`. For
        Amazon's own servers only the region is passed on, so that ``AWS_ENDPOINT_URL`` may name another server.

        Raises
        ------
        StoreError
            If the URL means an unknown kind of store. Other errors are those of `omnizarr.stores.resolve`.
        """
        is_new = mode not in ("r", "r+") and self.is_local and not os.path.lexists(self.place)
        if is_new and self.storage == "file":
            return LocalStore(self.place), ""
        if self.storage == "zip" and mode not in ("r", "r+"):
            found = (archives.ZipStore(self.place, mode="a"), "") if is_new else self._resolved("a", storage_options)
            return self._for_netcdf_c(*found, mode)
        if self.storage == "s3":
            options = self.options
            said = {name: options.get(key) for name, key in _OF_S3.items()}
            if _amazon(urllib_parse.urlsplit(options["endpoint"]).netloc):
                said.pop("endpoint")
            given = {name: value for name, value in said.items() if value is not None}
            return resolve_root(
                f"s3://{options['bucket']}/{options['key']}", mode, {**(storage_options or {}), **given}
            )
        return self._resolved(mode, storage_options)

    def _resolved(self, mode: str, storage_options: Mapping[str, Any] | None) -> tuple[Store, str]:
        """Return the store at the place, opened in a mode that erases nothing."""
        return resolve_root(self.place, "a" if mode in ("w", "w-", "x") else mode, storage_options)

    def _for_netcdf_c(self, store: Store, path: str, mode: str) -> tuple[Store, str]:
        """Return where a dataset is, or should be, in an archive that netCDF-C can open.

        netCDF-C takes the first folder in the path of the first entry for the root of the dataset. When it
        creates an archive, it names the folder after the archive.
        """
        if isinstance(store, archives.ZipStore):
            is_empty = next(store.list(), None) is None
            if not is_empty and mode in ("w-", "x"):
                raise NodeExistsError(
                    "the archive exists already", store=self.place, remedy='overwrite it, in mode "w"'
                )
            if is_empty or mode == "w":
                return PrefixStore(store, _folder(self.name)), path
        return store, path


def _folder(name: str) -> str:
    """Return a name for the only folder of an archive: one that neither Zarr nor programs that pack archives use.

    >>> _folder("tides"), _folder("zarr.json"), _folder("__MACOSX")
    ('tides', 'dataset', 'dataset')
    """
    is_text = name.isascii() or not any("\ud800" <= each <= "\udfff" for each in name)
    is_free = is_key(name) and is_text and not name.startswith((".", "__")) and name not in _DOCUMENTS
    return name if is_free else "dataset"


def parse(text: str | os.PathLike[str]) -> Location:
    r"""Return the location for a path or URL.

    Parameters
    ----------
    text : str or path
        A path (``~`` is the home directory) or a URL, with or without ``#mode=...``. ``\#`` means ``#``, as in
        shells. After ``file:``, there can be none to three slashes; with none or two, the path is relative.

    Raises
    ------
    SettingError
        If the settings are contradictory or unknown.
    StoreError
        If the URL states that the data is not Zarr (``mode=bytes``, ``mode=dap4``).

    Examples
    --------
    >>> parse("file://x.zarr#mode=nczarr,zip")
    Location(place='x.zarr', mode='nczarr', zarr_format=None, storage='zip', xarray=True, consolidated=False)
    >>> parse("https://era.s3.eu-central-1.amazonaws.com/x.zarr#mode=zarr").place
    'https://s3.eu-central-1.amazonaws.com/era/x.zarr'
    """
    if not isinstance(text, str):
        return Location(place=os.fsdecode(text))
    if _file(text) or _scheme(text):
        place, _, fragment = text.replace("\\#", "#").partition("#")
    else:
        place, fragment = [*_fragment_of_path(text, 1), ""][:2]
    # For a repeated key, the first counts.
    words: list[str] = []
    options: dict[str, str] = {}
    for key, sign, value in _pairs(fragment):
        if key.lower() == "mode":
            words += _split(value)
        elif not sign and set(_split(key)) <= _WORDS | _OTHER:
            words += _split(key)
        else:
            options.setdefault(_OPTIONS.get(key.lower(), key), value)
    scheme = _scheme(place)
    if _file(place) or scheme is None:
        place = os.path.expanduser(_path(place) if _file(place) else place)  # noqa: PTH111 - a Path refuses "~" with an unknown user
    elif scheme[1].lower() not in _WITHOUT_HOST:
        place = _web(place, words, options)
    return _location(place, words, options)


def _pairs(fragment: str) -> Iterator[tuple[str, str, str]]:
    for pair in filter(None, fragment.split("&")):
        key, sign, value = pair.partition("=")
        yield urllib_parse.unquote(key).strip(), sign, urllib_parse.unquote(value).strip()


def _split(words: str) -> list[str]:
    return [word for each in words.split(",") if (word := each.strip().lower())]


def _path(url: str) -> str:
    """Return the path of a file URL. Relative paths are netCDF-C's extension."""
    rest, query, _ = url[len("file:") :].partition("?")
    if query:
        raise SettingError(
            "a query means nothing to a file", found=url, remedy="write %3F for a question mark in a name"
        )
    path = urllib_parse.unquote(rest.removeprefix("//"))
    if path.startswith("localhost/"):
        path = path.removeprefix("localhost")
    if not path:
        raise SettingError("the URL of a file has no path", found=url, expected="file:///path")
    # file:///C:/data: the drive is not a directory of the root
    return path[1:] if os.name == "nt" and re.match(r"/[A-Za-z]:", path) else path


def _web(url: str, words: list[str], options: dict[str, str]) -> str:
    """Return a URL without credentials, in the path style for S3. Its settings are added to the options."""
    parts = urllib_parse.urlsplit(url)
    for name, value in (("user", parts.username), ("password", parts.password)):
        if value is not None:
            options[name] = urllib_parse.unquote(value)
    parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    if not parts.netloc:
        raise SettingError("the URL has no host", found=url, expected=f"{parts.scheme}://host/path")
    known = _amazon(parts.netloc)
    is_s3 = known is not None or parts.netloc.lower() == _GOOGLE or parts.scheme in ("s3", "gs3")
    if not is_s3 and not {"s3", "gs3"} & set(words):
        return parts.geturl()
    words.append("s3")
    path = parts.path.lstrip("/")
    region = options.get("region")
    if known is not None:  # like https://s3.region.amazonaws.com/bucket/key
        region = known["region"] or region
        host = f"s3{'.' + region if region else ''}{known['domain']}".lower()
        bucket = known["bucket"]
    elif parts.scheme in ("s3", "gs3") and not {".", ":"} & set(parts.netloc):  # like s3://bucket/key
        host = _GOOGLE if parts.scheme == "gs3" else f"s3{'.' + region if region else ''}.amazonaws.com"
        bucket = parts.netloc
    else:  # another server than Amazon's: https://host/bucket/key
        host, bucket = parts.netloc, None
    key = path
    if bucket is None:
        bucket, _, key = path.partition("/")
    if not bucket:
        raise SettingError("the URL names no bucket", found=parts.geturl(), expected=f"https://{host}/bucket/key")
    scheme = "http" if parts.scheme == "http" else "https"
    options |= {"endpoint": f"{scheme}://{host}", "bucket": bucket, "key": urllib_parse.unquote(key)}
    if region:
        options["region"] = region
    return parts._replace(scheme=scheme, netloc=host, path=f"/{bucket}/{key}".rstrip("/")).geturl()


def _location(place: str, words: list[str], options: Mapping[str, str]) -> Location:
    said = ["s3" if word == "gs3" else word for word in dict.fromkeys(words)]
    if no_zarr := _OTHER & set(said):
        raise StoreError(
            "the mode in the URL states that the data is not Zarr",
            found=f"mode={','.join(sorted(no_zarr))}",
            remedy="copy the file to a local directory, and open it there",
        )
    if unknown := set(said) - _WORDS:
        raise SettingError(
            "the mode has a word that means nothing",
            found=", ".join(sorted(unknown)),
            expected=", ".join(sorted(_WORDS)),
            spec=_SPEC,
        )
    storage = _only(said, get_args(Storage))
    if storage == "s3" and _scheme(place) is None:
        raise SettingError("the mode is S3, but the location is a path", found=place, expected="s3://bucket/key")
    zarr_format = _only(said, tuple(_FORMATS))
    return Location(
        place=place,
        mode="zarr" if {"zarr", "xarray"} & set(said) else "nczarr" if "nczarr" in said else None,
        zarr_format=None if zarr_format is None else _FORMATS[zarr_format],
        storage=storage,  # type: ignore[arg-type]
        xarray="noxarray" not in said,
        consolidated="consolidated" in said,
        options=options,
    )


def _only(said: list[str], words: tuple[str, ...]) -> str | None:
    """Return the one of `words` that the mode contains."""
    found = [word for word in said if word in words]
    if len(set(found)) > 1:
        raise SettingError(
            "the mode contradicts itself", found=",".join(found), expected=f"one of {', '.join(words)}", spec=_SPEC
        )
    return found[0] if found else None
