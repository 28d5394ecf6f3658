"""Codecs of other packages: those of numcodecs' registry, and codec classes of zarr-python 3.

Wrappers enforce the contract: errors become CodecError or ChunkError, and decoded values are checked. The
memory that these codecs allocate is not bounded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np

from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.numbers import native_of
from omnizarr.codecs.streams import foreign, sized
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, OmnizarrError
from omnizarr.model import datatypes, plugins
from omnizarr.support.lazy import Lazy

_zarr: Any = Lazy("zarr")

Kind: TypeAlias = Literal["array to array", "array to bytes", "bytes to bytes", "array or bytes"]
Found: TypeAlias = tuple[Kind, Callable[[Any, Any], Any]]


@dataclass(frozen=True, slots=True)
class ForeignBytesToBytes:
    """Bytes to bytes."""

    run: Callable[[str, Any], Any]
    """("encode" or "decode", value) -> value."""
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size, within reason."""
        return foreign(self.decoded)

    def encode(self, data: Buffer) -> Buffer:
        """Return the encoded bytes."""
        return _bytes(_guarded(self.run, "encode", data, CodecError))

    def decode(self, data: Buffer) -> Buffer:
        """Return the decoded bytes."""
        return sized(_bytes(_guarded(self.run, "decode", data, ChunkError)), self.decoded)


@dataclass(frozen=True, slots=True)
class ForeignArrayToBytes:
    """Array to bytes."""

    run: Callable[[str, Any], Any]
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size, within reason."""
        return foreign(self.decoded)

    def encode(self, array: AnyArray) -> Buffer:
        """Return the encoded bytes."""
        return _bytes(_guarded(self.run, "encode", np.ascontiguousarray(array).reshape(array.shape), CodecError))

    def decode(self, data: Buffer) -> AnyArray:
        """Return the decoded array."""
        return _shaped(_guarded(self.run, "decode", data, ChunkError), self.decoded)


@dataclass(frozen=True, slots=True)
class ForeignArrayToArray:
    """Array to array."""

    run: Callable[[str, Any], Any]
    decoded: ArraySpec
    encoded: ArraySpec

    def encode(self, array: AnyArray) -> AnyArray:
        """Return the encoded array."""
        return _shaped(_guarded(self.run, "encode", array, CodecError), self.encoded)

    def decode(self, array: AnyArray) -> AnyArray:
        """Return the decoded array."""
        return _shaped(_guarded(self.run, "decode", array, ChunkError), self.decoded)


def _guarded(run: Callable[[str, Any], Any], verb: str, value: Any, kind: type[OmnizarrError]) -> Any:
    try:
        return run(verb, value)
    except OmnizarrError:
        raise
    except Exception as error:  # foreign code may raise anything
        raise kind(f"cannot {verb}: {type(error).__name__}: {error}") from error


def _bytes(value: Any) -> Buffer:
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    return memoryview(value).cast("B") if not isinstance(value, bytes) else value


def _shaped(value: Any, spec: ArraySpec) -> AnyArray:
    """Return the result of a codec as the expected array."""
    array = np.asarray(value) if isinstance(value, np.ndarray) else np.frombuffer(value, np.uint8)
    # Bytes, or integers in place of floats, are reinterpreted. A different byte order is converted.
    is_raw = array.nbytes == spec.nbytes and native_of(array.dtype) != native_of(spec.dtype)
    if is_raw and not array.dtype.hasobject:
        array = np.ascontiguousarray(array).reshape(-1).view(spec.dtype)
    if array.size != np.prod(spec.shape, dtype=np.int64):
        raise ChunkSizeError("the codec made another number of elements", found=array.size, expected=spec.shape)
    return array.astype(spec.dtype, copy=False).reshape(spec.shape)


# numcodecs


def from_numcodecs(name: str, codec_id: str) -> Found | None:
    """Return the codec that numcodecs, or a package that extends it, has for an id; None if there is none."""
    try:
        registry = import_module("numcodecs.registry")
    except ModuleNotFoundError:
        return None
    if codec_id not in registry.codec_registry and codec_id not in plugins.entry_points("numcodecs.codecs"):
        return None

    def bind(configuration: Configuration, decoded: ArraySpec | BytesSpec) -> Any:
        try:
            codec = registry.get_codec({"id": codec_id, **configuration})
        except Exception as error:  # foreign code may raise anything
            raise CodecError(f"cannot be set up: {error}", codec=name) from error

        def run(verb: str, value: Any) -> Any:
            return getattr(codec, verb)(value)

        # numcodecs does not state what a codec accepts: in the place of an array codec, it gets the array and
        # must return bytes.
        if isinstance(decoded, BytesSpec):
            return ForeignBytesToBytes(run, decoded)
        return ForeignArrayToBytes(run, decoded)

    return "array or bytes", bind


# zarr-python


def from_zarr_python(name: str, codec_class: Any) -> Found:
    """Return the codec of a class of zarr-python's codec interface.

    Raises CodecError for another class.
    """
    abc = _zarr.abc.codec
    kinds: list[tuple[type[Any], Kind]] = [
        (abc.ArrayArrayCodec, "array to array"),
        (abc.ArrayBytesCodec, "array to bytes"),
        (abc.BytesBytesCodec, "bytes to bytes"),
    ]
    for base, kind in kinds:
        if isinstance(codec_class, type) and issubclass(codec_class, base):
            return kind, _binder(name, codec_class, kind)
    raise CodecError("the entry point is not a codec class of zarr-python", codec=name, found=repr(codec_class))


def _binder(name: str, codec_class: Any, kind: Kind) -> Callable[[Any, Any], Any]:
    def bind(configuration: Configuration, decoded: ArraySpec | BytesSpec) -> Any:
        try:
            codec = codec_class.from_dict({"name": name, "configuration": dict(configuration)})
            spec_module = _zarr.core.array_spec
            prototype = _zarr.core.buffer.default_buffer_prototype()
            native = _zarr.core.dtype.get_data_type_from_native_dtype
            if isinstance(decoded, BytesSpec):
                size = decoded.item_size
                dtype = np.dtype(f"V{size}") if size not in (1, 2, 4, 8) else np.dtype(f"u{size}")
                shape: tuple[int, ...] = ((decoded.nbytes or 0) // size,)
                fill = np.zeros((), dtype)[()]
            else:
                dtype, shape, fill = decoded.dtype, decoded.shape, decoded.fill_value
            spec = spec_module.ArraySpec(
                shape=shape,
                dtype=native(dtype),
                fill_value=fill,
                config=spec_module.ArrayConfig.from_dict({}),
                prototype=prototype,
            )
            codec = codec.evolve_from_array_spec(spec)
        except Exception as error:  # foreign code may raise anything
            raise CodecError(f"cannot be set up: {error}", codec=name) from error
        run = _runner(codec, spec, kind)
        if isinstance(decoded, BytesSpec):
            return ForeignBytesToBytes(run, decoded)
        if kind == "array to bytes":
            return ForeignArrayToBytes(run, decoded)
        return ForeignArrayToArray(run, decoded, _our_spec(codec.resolve_metadata(spec), decoded))

    return bind


def _runner(codec: Any, spec: Any, kind: Kind) -> Callable[[str, Any], Any]:
    """Return a function that encodes or decodes with a codec of zarr-python, directly or in its event loop."""
    sync = _zarr.core.sync.sync
    buffers = spec.prototype
    takes_array = {"encode": kind != "bytes to bytes", "decode": kind == "array to array"}

    def run(verb: str, value: Any) -> Any:
        if takes_array[verb]:
            wrapped = buffers.nd_buffer.from_numpy_array(np.asarray(value))
        else:
            wrapped = buffers.buffer.from_bytes(bytes(value))
        at_once = getattr(codec, f"_{verb}_sync", None)
        result = at_once(wrapped, spec) if at_once is not None else getattr(codec, f"_{verb}_single")(wrapped, spec)
        if inspect.isawaitable(result):
            result = sync(result)
        if result is None:
            raise ChunkError("the codec returned nothing")
        return result.as_numpy_array() if hasattr(result, "as_numpy_array") else result.to_bytes()

    return run


def _our_spec(spec: Any, decoded: ArraySpec) -> ArraySpec:
    dtype = spec.dtype.to_native_dtype()
    data_type = decoded.data_type if dtype == decoded.dtype else datatypes.parse(dtype)
    return ArraySpec(tuple(spec.shape), data_type, np.asarray(spec.fill_value, dtype)[()], decoded.policy)
