"""Repair shards and chunks, or give up those that cannot be repaired.

A shard to which a writer was adding still has the previous index at its former end. If its checksum is right there, all
that it points to is before it, and every inner chunk can be decoded, then the shard ended there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.codecs.contract import Buffer, ChunkPolicy
from omnizarr.codecs.sharding import Sharding
from omnizarr.engine import Binding
from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.nodes import bindings, detection, wording
from omnizarr.tools.check import chunks
from omnizarr.tools.check.report import Finding
from omnizarr.tools.repair.report import Action
from omnizarr.tools.repair.transaction import RepairState

_MISSING: Final = 2**64 - 1
_OUTSIDE: Final = "shard-index-outside"
_DELETED: Final = {"empty-chunk", "wrong-chunk-size", "undecodable-chunk", "checksum-mismatch", "chunk-beyond-grid"}
_DELETE: Final = "delete"
_TORN: Final = "restore the shard from a copy, or write it again: it does not show where its index was"
_INNER: Final = "write the inner chunk again: the others of the shard can be read"
_CHANGED: Final = "run the check again: this is not found any more"


class _Place(NamedTuple):
    """One stored chunk."""

    binding: Binding
    coords: tuple[int, ...] | None
    """None: beyond the grid."""
    key: str
    data: Buffer


class _Cut(NamedTuple):
    """The new value of a chunk, and a description of the effect."""

    data: bytes | None
    what: str


class _CannotBeMendedError(Exception):
    """A finding was not repaired; the message gives the reason and a remedy."""


def mend_chunks(state: RepairState, findings: list[Finding]) -> None:
    """Mend shards, and delete the chunks that the user gives up."""
    kinds = CODES & state.codes
    by_key: dict[tuple[str, str | None], list[Finding]] = {}
    for finding in findings:
        if finding.code in kinds:
            by_key.setdefault((_DELETE if finding.code in _DELETED else finding.code, finding.key), []).append(finding)
    for same in by_key.values():
        finding = same[0]
        mender = _MENDERS[finding.code]
        try:
            place = _place(state, finding)
            cut = mender(place, finding)
        except (_CannotBeMendedError, OmnizarrError) as error:
            if isinstance(error, StoreError):
                raise
            for one in same:
                state.refuse(one, str(error))
            continue
        _put(state, place, cut, same)


def _put(state: RepairState, place: _Place, cut: _Cut, findings: list[Finding]) -> None:
    after = "" if cut.data is None else wording.plural(len(cut.data), "byte")
    before = wording.plural(len(place.data), "byte")
    actions = [
        Action(code=one.code, path=one.path, key=place.key, what=cut.what, before=before, after=after)
        for one in findings
    ]
    if state.change(place.key, place.data, cut.data, actions, lock=place.key, is_chunk=True):
        for one in findings:
            state.settle(one)


def _place(state: RepairState, finding: Finding) -> _Place:
    """Return the chunk that a finding is about, as it is now."""
    key = str(finding.key)
    found = detection.open_array(state.where.at(finding.path))
    binding = bindings.bind(found.where, found.metadata, ChunkPolicy())
    data = state.store.get(key)
    coords = binding.keys.decode(key.removeprefix(binding.prefix), len(found.metadata.shape))
    if data is None or coords is None:
        raise _CannotBeMendedError(_CHANGED)
    grid = binding.grid.grid_shape
    inside = all(number < length for number, length in zip(coords, grid, strict=True))
    return _Place(binding, coords if inside else None, key, data)


# Giving up


def _delete(place: _Place, finding: Finding) -> _Cut:
    """Delete a chunk; of a shard only if it is the whole of it that is wrong."""
    if finding.code == "chunk-beyond-grid":
        if place.coords is not None:
            raise _CannotBeMendedError(_CHANGED)
        return _Cut(None, "delete the chunk beyond the shape")
    if place.coords is None:
        raise _CannotBeMendedError(_CHANGED)
    chain = place.binding.chain_for(place.coords)
    if isinstance(chain.serializer[1], Sharding) and len(place.data):
        raise _CannotBeMendedError(_INNER)
    if finding.code not in {trouble.code for trouble in _troubles(place)}:
        raise _CannotBeMendedError(_CHANGED)
    return _Cut(None, "delete the chunk: it reads as the fill value then")


def _troubles(place: _Place) -> Iterator[chunks.Trouble]:
    if place.coords is not None:
        yield from chunks.check_size(len(place.data), chunks.exact_size(place.binding, place.coords))
        yield from chunks.check_data(place.binding, place.coords, place.data)


# Shards


def _sharding(place: _Place) -> Sharding:
    """Return the codec of a shard that is stored unchanged."""
    if place.coords is None:
        raise _CannotBeMendedError(_CHANGED)
    chain = place.binding.chain_for(place.coords)
    serializer = chain.serializer[1]
    if not isinstance(serializer, Sharding) or chain.compressors:
        raise _CannotBeMendedError(_TORN)
    return serializer


def _blank(place: _Place, _: Finding) -> _Cut:
    """Enter in the index that the inner chunks are missing which are outside the shard."""
    shard = _sharding(place)
    data, size = bytes(place.data), shard.index_size
    if len(data) < size:
        raise _CannotBeMendedError(_TORN)
    start = len(data) - size if shard.index_at_end else 0
    decoded = np.array(shard.index.decode(data[start : start + size]))
    rows = decoded.reshape(-1, 2)
    lost = [
        number
        for number, (offset, nbytes) in enumerate(rows.tolist())
        if not offset == nbytes == _MISSING and offset + nbytes > len(data)
    ]
    if not lost:
        raise _CannotBeMendedError(_CHANGED)
    rows[lost] = _MISSING
    index = bytes(shard.index.encode(rows.reshape(decoded.shape)))
    what = f"enter {wording.plural(len(lost), 'inner chunk')} as missing: they read as the fill value then"
    return _Cut(data[:start] + index + data[start + size :], what)


def _shorten(place: _Place, _: Finding) -> _Cut:
    """Cut a shard off behind the index that it had when it was whole."""
    shard = _sharding(place)
    # An inner chunk that is a shard ends with an index as well, which says nothing about the outer one.
    stop = None if isinstance(shard.inner.serializer[1], Sharding) else chunks.intact_size(shard, place.data)
    if stop is None or stop >= len(place.data) or not _is_shard(shard, memoryview(place.data)[:stop]):
        raise _CannotBeMendedError(_TORN)
    lost = wording.plural(len(place.data) - stop, "byte")
    return _Cut(bytes(place.data[:stop]), f"cut off {lost} after the index of the shard")


def _is_shard(shard: Sharding, data: memoryview) -> bool:
    """Whether these bytes are a whole shard: index, spans and every inner chunk."""
    inside = len(data) - shard.index_size
    try:
        rows = np.asarray(shard.index.decode(data[inside:])).reshape(-1, 2).tolist()
        spans = sorted(
            (offset, offset + nbytes, coords)
            for coords, (offset, nbytes) in zip(shard.grid.coords(), rows, strict=True)
            if not offset == nbytes == _MISSING
        )
        if not spans or spans[-1][1] > inside or max(stop for _, stop, _ in spans) > inside:
            return False
        if any(stop > start for (_, stop, _), (start, _, _) in pairwise(spans)):
            return False
        for start, stop, coords in spans:
            shard.inner_at(coords).decode(data[start:stop])
    except OmnizarrError:
        return False
    return True


_MENDERS: Final[Mapping[str, Callable[[_Place, Finding], _Cut]]] = {
    "shard-tail-torn": _shorten,
    _OUTSIDE: _blank,
    **dict.fromkeys(sorted(_DELETED), _delete),
}
CODES: Final = frozenset(_MENDERS)


def mend_scalars(state: RepairState, findings: list[Finding]) -> None:
    """Give the chunks of scalars in the draft of 2020 the key of the text."""
    for finding in findings:
        if finding.code != "draft-scalar-key" or finding.code not in state.codes:
            continue
        found = detection.open_array(state.where.at(finding.path))
        used = bindings.bind(found.where, found.metadata, ChunkPolicy())
        old = used.prefix + used.keys.encode(())
        new = used.prefix + "c"
        data = state.store.get(old)
        if data is None or old == new or state.store.exists(new):
            state.refuse(finding, _CHANGED)
            continue
        fields: dict[str, Any] = {"code": finding.code, "path": finding.path}
        size = wording.plural(len(data), "byte")
        written = Action(key=new, what="give the chunk the key of the text", after=size, **fields)
        deleted = Action(key=old, what="delete the chunk under its other key", before=size, **fields)
        if state.change(new, None, data, [written], lock=new, is_chunk=True) and state.change(
            old, data, None, [deleted], lock=old, is_chunk=True
        ):
            state.settle(finding)
