"""Compressors that Python does not include: those of numcodecs, or of the native engine if numcodecs is missing.

A `Compiled` has the functions of a module of numcodecs. The native engine has
the compressors built in, so an installation with it does not need numcodecs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

from omnizarr.codecs import registry
from omnizarr.codecs.contract import Buffer
from omnizarr.errors import MissingDependencyError
from omnizarr.settings import engines
from omnizarr.support import extras

_UNLIMITED: Final = 2**63 - 1
_FLETCHER32: Final = ("fletcher32", False)
_CRC32C: Final = ("crc32c", False)
_WIDTH: Final = 4


class Compiled:
    """A module of numcodecs, or its replacement in the native engine, looked up at first use."""

    __slots__ = ("_found", "_name", "_of_native")

    def __init__(self, name: str, of_native: Callable[[Any], Any]) -> None:
        self._name, self._of_native = name, of_native
        self._found: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._found is None:
            self._found = _module(self._name, self._of_native)
        return getattr(self._found, name)


def _module(name: str, of_native: Callable[[Any], Any]) -> Any:
    """Return the module. Raises MissingDependencyError if there is none."""
    try:
        return import_module(f"numcodecs.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "numcodecs":
            raise
    native = engines.module()
    if not hasattr(native, "decode_into"):
        raise _missing(name)
    return of_native(native)


@cache
def are_available() -> bool:
    """Return whether there is numcodecs or the native engine. This imports the native engine only."""
    if hasattr(engines.module(), "decode_into"):
        return True
    with suppress(ModuleNotFoundError):  # an importer may raise it
        return import_module("importlib.util").find_spec("numcodecs") is not None
    return False


def is_missing(name: str) -> bool:
    """Return whether a codec, by any of its names, is one of these and cannot be used in this installation."""
    record = None if are_available() else registry.bare_record(name)
    return record is not None and record.is_compiled


def refuse_missing(names: Iterable[str]) -> None:
    """Raise MissingDependencyError if one of the codecs of these names cannot be used."""
    if are_available():
        return
    for name in names:
        if is_missing(name):
            raise _missing(name)


def _missing(name: str) -> MissingDependencyError:
    remedy = f"{extras.remedy('numcodecs')}; gzip needs no package"
    return MissingDependencyError("this codec needs numcodecs, or the native engine", codec=name, remedy=remedy)


def _fletcher32(native: Any) -> Any:
    def checksum(data: Buffer) -> int:
        return int.from_bytes(native.encode(_FLETCHER32, data)[-_WIDTH:], "little")

    return SimpleNamespace(checksum=checksum)


def decompress_by(native: Any, codec: tuple[Any, ...]) -> Any:
    """Return the function ``decompress`` of numcodecs for a codec of the native engine."""

    def decompress(data: Buffer, out: memoryview | None = None) -> Buffer:
        if out is None:
            return native.decode(codec, data, _UNLIMITED)  # type: ignore[no-any-return]
        native.decode_into(codec, data, out)
        return out

    return decompress


@cache
def fletcher32() -> Any:
    """Return the function that computes the checksum Fletcher-32 of HDF5."""
    found = _module("fletcher32", _fletcher32)
    if hasattr(found, "checksum"):
        return found.checksum
    codec = found.Fletcher32()
    # numcodecs makes its C function available only through the codec
    return lambda data: int.from_bytes(codec.encode(data)[-_WIDTH:], "little")


@cache
def crc32c() -> Any:
    """Return the function that computes CRC-32C of bytes or an array.

    It is that of google-crc32c. That package is not compiled for Python without the GIL, where it warns and is slow, so
    the native engine computes there if it is built.
    """
    native = engines.module() if import_module("sysconfig").get_config_var("Py_GIL_DISABLED") else None
    return _crc32c(native) if hasattr(native, "encode") else import_module("google_crc32c").value


def _crc32c(native: Any) -> Any:
    return lambda data: int.from_bytes(native.encode(_CRC32C, data)[-_WIDTH:], "little")
