"""conditional: bytes-to-bytes codecs that each chunk may apply or not.

Configuration: ``codecs`` (bytes to bytes), ``header_bits`` (multiple of 8, at least one bit per codec; by default
just enough). A chunk begins with a little-endian mask: bit i is set if codec i was applied.
Writing applies a codec where it does not make the chunk longer.

Spec: zarr-extensions, "conditional".
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from omnizarr.codecs import registry
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, BytesToBytes, Configuration
from omnizarr.codecs.record import B2B, Name, Record
from omnizarr.codecs.streams import limit_of, sized
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, OmnizarrError
from omnizarr.model import JSON

_SPEC: Final = 'zarr-extensions, "conditional"'


@dataclass(frozen=True, slots=True)
class Conditional:
    """Optional codecs.

    Attributes
    ----------
    steps : tuple of (name, configuration)
        The definitions of the codecs. Their decoded representations depend on which codecs were applied before.
    header : int
        Bytes of the mask.
    decoded : BytesSpec
    """

    steps: tuple[tuple[str, Mapping[str, JSON]], ...]
    header: int
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        limit: int | None = limit_of(self.decoded)
        for codec in _bound(self.steps, self.decoded):
            here = limit_of(codec.encoded)
            limit = None if limit is None or here is None else max(limit, here)
        return BytesSpec(None, 1, None if limit is None else limit + self.header, self.decoded.remedy)

    def encode(self, data: Buffer) -> Buffer:
        """Return the mask and the encoded `data`."""
        mask, applied = 0, []
        for position, step in enumerate(self.steps):
            applied.append(step)
            tried = _bound(applied, BytesSpec(None, self.decoded.item_size))[-1].encode(data)
            if len(tried) <= len(data):
                data, mask = tried, mask | 1 << position
            else:
                applied.pop()
        return mask.to_bytes(self.header, "little") + data

    def decode(self, data: Buffer) -> Buffer:
        """Return the decoded bytes."""
        if len(data) < self.header:
            raise ChunkSizeError("too short for the mask", found=f"{len(data)} bytes",
                                 expected=f"at least {self.header} bytes")  # fmt: skip
        mask = int.from_bytes(data[: self.header], "little")
        if mask >> len(self.steps):
            raise ChunkError("the mask names missing codecs", found=f"{mask:#b}",
                             expected=f"{len(self.steps)} bits", spec=_SPEC)  # fmt: skip
        chosen = [step for position, step in enumerate(self.steps) if mask >> position & 1]
        data = memoryview(data)[self.header :]
        for (name, _), codec in zip(reversed(chosen), reversed(_bound(chosen, self.decoded)), strict=True):
            try:
                data = codec.decode(data)
            except OmnizarrError as error:
                raise error.add(codec=name)
        return sized(data, self.decoded)


def _bound(steps: Sequence[tuple[str, Mapping[str, JSON]]], decoded: BytesSpec) -> list[BytesToBytes]:
    """Return the codecs of these steps, each bound to the result of the one before it."""
    codecs: list[BytesToBytes] = []
    for name, configuration in steps:
        codec: BytesToBytes = registry.find(name)(configuration, decoded)
        codecs.append(codec)
        decoded = codec.encoded
    return codecs


def bind(configuration: Configuration, decoded: BytesSpec) -> Conditional:
    """Return the codec."""
    fields = Fields(configuration, ("codecs", "header_bits"), _SPEC)
    documents = fields.raw("codecs")
    if not isinstance(documents, list | tuple):
        raise fields.reject("codecs", "malformed list of codecs", documents, "a list of codecs")
    steps = tuple((codec.name, codec.configuration) for codec in itertools.starmap(fields.codec, enumerate(documents)))
    bits = fields.integer("header_bits", (len(steps) + 7) // 8 * 8, len(steps), 2**16)
    if bits % 8:
        raise fields.reject("header_bits", "'header_bits' is not a multiple of 8", bits, "a multiple of 8")
    for position, (name, inner) in enumerate(steps):
        if registry.find(name).kind not in ("bytes to bytes", "array or bytes"):
            raise CodecError("only bytes to bytes codecs can be conditional", found=name,
                             pointer=f"/configuration/codecs/{position}", spec=_SPEC)  # fmt: skip
        try:
            registry.find(name)(inner, decoded)
        except OmnizarrError as error:
            error.pointer = f"/configuration/codecs/{position}{error.pointer or ''}"
            raise
    return Conditional(steps, bits // 8, decoded)


CODECS = (
    Record(
        id="conditional", kind=B2B, names={"conditional": Name(bind, status="registered")},
        parameters={"codecs": list, "header_bits": int}, v2="-",
    ),
)  # fmt: skip
