"""The compressors and checksums of Zarr v3 that most programs read, in place of those that few read.

Chunks decode to equal bytes. The records of codecs say what replaces them; a shuffle and the compressor behind it
become Blosc, which does both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from omnizarr.codecs import blosc, registry
from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.record import Record
from omnizarr.errors import CodecError, OmnizarrError
from omnizarr.model import Named

_SHUFFLED: Final = 4
"""Size of the items of a shuffle that states none."""


def replaced(
    codecs: Sequence[Named], item_size: int, nbytes: int = 0
) -> Iterator[tuple[tuple[Named, ...], tuple[Named, ...]]]:
    """Yield one codec after the other, or a shuffle and a compressor, with what replaces it: itself, another, nothing.

    Parameters
    ----------
    codecs : sequence of Named
    item_size : int
        Bytes in an element; a shuffle can state another size.
    nbytes : int, optional
        Bytes in a chunk, of which Blosc takes no more than 2 GiB.

    Examples
    --------
    >>> shuffled = [Named("numcodecs.shuffle", {"elementsize": 4}), Named("numcodecs.zlib", {"level": 4})]
    >>> [[(codec.name, codec.configuration.get("clevel")) for codec in new] for _, new in replaced(shuffled, 4)]
    [[('blosc', 4)]]
    >>> list(replaced([Named("crc32c"), Named("numcodecs.zlib", {"level": 0})], 4))[1][1]
    ()
    """
    rest = list(codecs)
    fits = nbytes <= blosc.LARGEST
    while rest:
        codec = rest.pop(0)
        record = registry.bare_record(codec.name)
        if fits and record is not None and record.id == "shuffle" and rest:
            size = codec.configuration.get("elementsize", _SHUFFLED)
            size = size if type(size) is int and size > 0 else item_size
            other = registry.bare_record(rest[0].name)
            in_blosc = None if other is None or _replacement(rest[0], other, 1) == () else other.in_blosc
            if in_blosc is not None and 1 < size <= blosc.MAX_TYPESIZE:
                following = rest.pop(0)
                cname, level = in_blosc(following.configuration)
                yield (codec, following), (blosc.named(cname, level, "shuffle", size),)
                continue
        yield (codec,), _replacement(codec, record, item_size if fits else 0)


def _replacement(codec: Named, record: Record | None, item_size: int) -> tuple[Named, ...]:
    if record is None or record.replaced_by is None:
        return (codec,)
    found = record.replaced_by(codec.configuration, item_size)
    return () if found is None else (found,)


def that_cannot_encode(codecs: Sequence[Named]) -> str:
    """Return the name of a compressor that only decompresses here, as Blosc with Snappy; "" if there is none.

    Unknown codecs are skipped.
    """
    for codec in codecs:
        try:
            entry = registry.find(codec.name)
            if entry.kind == "bytes to bytes":
                entry.bind(codec.configuration, BytesSpec(8, 1)).encode(bytes(8))
        except CodecError:
            return codec.name
        except OmnizarrError:
            continue
    return ""
