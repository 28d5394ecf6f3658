"""lz4: the decoded size as a little-endian 32-bit number, then one raw LZ4 block.

Configuration: ``acceleration``, default 1 (numcodecs treats values below 1 as 1).
Agrees with numcodecs.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from omnizarr.codecs import blosc
from omnizarr.codecs.compiled import Compiled, decompress_by
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration, Description
from omnizarr.codecs.record import B2B, ONE, Name, Record, with_level, zstandard
from omnizarr.codecs.streams import Compressor, check_size
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError

_LARGEST: Final = 0x7E000000  # LZ4_MAX_INPUT_SIZE
_INT32 = 2**31 - 1


def _of_native(native: Any) -> Any:
    def compress(data: Buffer, acceleration: int) -> Buffer:
        return native.encode(("lz4", acceleration), data)  # type: ignore[no-any-return]

    return SimpleNamespace(compress=compress, decompress=decompress_by(native, ("lz4", 1)))


lz4: Final[Any] = Compiled("lz4", _of_native)


@dataclass(frozen=True, slots=True)
class Lz4(Compressor):
    """One LZ4 block after its size."""

    acceleration: int
    decoded: BytesSpec

    def describe_native(self, _spec: BytesSpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        return "lz4", self.acceleration

    def encode(self, data: Buffer) -> Buffer:
        """Return size and block."""
        if len(data) > _LARGEST:
            raise CodecError(
                "LZ4 cannot encode this many bytes at once", found=f"{len(data)} bytes",
                expected=f"at most {_LARGEST} bytes", remedy="choose smaller chunks",
            )  # fmt: skip
        return lz4.compress(data, self.acceleration)  # type: ignore[no-any-return]

    def decode(self, data: Buffer) -> Buffer:
        """Return the decoded block."""
        size = self._size(data)
        if size == 0:
            return b""
        return _run(data, None)

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with the decoded block."""
        size = self._size(data)
        check_size(size, BytesSpec(len(out)))
        if size:
            _run(data, out)

    def _size(self, data: Buffer) -> int:
        if len(data) < 5:  # the size, and a block of at least one token
            raise ChunkSizeError("too short for LZ4", found=f"{len(data)} bytes", expected="at least 5 bytes")
        size = int.from_bytes(data[:4], "little")
        check_size(size, self.decoded)
        if size == 0 and data[4:] != b"\0":
            raise ChunkError("the LZ4 block is not empty, but its stored size is 0", found=bytes(data[4:9]).hex())
        # An LZ4 byte decodes to at most 255; a larger size is wrong, however large the bound is.
        if size > 255 * len(data):
            raise ChunkSizeError("the size before the LZ4 block cannot be true", found=f"{size} bytes",
                                 expected=f"at most {255 * len(data)} bytes")  # fmt: skip
        return size


def _run(data: Buffer, out: memoryview | None) -> Buffer:
    try:
        return lz4.decompress(data, out)  # type: ignore[no-any-return]
    except (RuntimeError, ValueError, TypeError) as error:
        raise ChunkError(f"the compressed bytes are broken: {error}") from error


def bind(configuration: Configuration, decoded: BytesSpec) -> Lz4:
    """Return the codec."""
    return Lz4(Fields(configuration, ("acceleration",)).integer("acceleration", 1, -_INT32 - 1, _INT32), decoded)


CODECS = (
    Record(
        id="lz4", kind=B2B, names={"numcodecs.lz4": Name(bind, ONE), "lz4": Name(bind)},
        parameters={"acceleration": int}, note="numcodecs", is_compiled=True, native=True, compresses=True,
        words=with_level("lz4, acceleration", "acceleration"), decodes_with={}, in_blosc=lambda _given: ("lz4", 1),
        replaced_by=lambda _given, item_size: (
            blosc.named("lz4", 1, "noshuffle", item_size)
            if item_size
            else zstandard(1)
        ),
    ),
)  # fmt: skip
