"""Datasets as arrays of Zarr: a document, and where the chunks lie or what makes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.errors import ChunkError, OmnizarrError
from omnizarr.model import JSON
from omnizarr.readers.hdf5 import chunks, elements, filters, forms
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.forms import Form, Unshown
from omnizarr.stores.manifests.manifest import NOT_STORED, AnyManifest, Manifest, strided

_MOST_BYTES: Final = 1 << 22  # of stored elements from which the reader makes one chunk
_DENSE: Final = 1 << 22  # chunks of a grid for which a manifest has rows; those of larger grids are looked up


@dataclass(slots=True)
class Shown:
    """A dataset as an array.

    Attributes
    ----------
    document : dict
        The document, without attributes and names of dimensions.
    dtype : dtype or None
        Of its elements, if they are numbers or bytes.
    manifest : callable or None
        Returns where the chunks lie. None: the reader makes them.
    numbers : callable
        Returns the numbers of the chunks that the reader makes.
    make : callable
        Returns the bytes of a chunk, by its number.
    grid : tuple of int
        The number of chunks along each dimension.
    notes : list of str
    """

    document: dict[str, JSON]
    dtype: np.dtype[Any] | None
    grid: tuple[int, ...]
    manifest: Callable[[], AnyManifest] | None = None
    numbers: Callable[[], range | list[int]] = list
    make: Callable[[int], bytes] = lambda _: b""
    notes: list[str] = field(default_factory=list)


def show(dataset: Dataset, name_of: Callable[[int], str]) -> Shown | Unshown:
    """Return a dataset as an array, or why it is not shown.

    Parameters
    ----------
    dataset : Dataset
    name_of : callable
        Returns the path of an object by its address, for references.
    """
    form = _checked(dataset)
    if isinstance(form, Unshown):
        return form
    codecs: list[JSON] = []
    is_made = form.made != ""
    size = dataset.datatype.size
    if dataset.layout.storage == "chunked":
        found = [filters.codec(each, size) for each in dataset.filters]
        if any(each is None for each in found):
            is_made = True
            if not filters.can_decode(dataset.filters, size):
                names = [filters.title(each) for each in dataset.filters if filters.codec(each, size) is None]
                return Unshown(f"no codec is known for the filter {', '.join(names)}")
            if package := filters.lacking(dataset.filters):
                return Unshown(f"its filters need the package {package}")
        elif not is_made:
            codecs = [
                {"name": each.name, "configuration": dict(each.configuration)} for each in found if each is not None
            ]
    serializer: JSON = {"name": "bytes", "configuration": {"endian": form.order}} if form.order else {"name": "bytes"}
    if form.made == "text":
        serializer = {"name": "vlen-utf8"}
    shape, chunk_shape, made = _places(dataset, form, is_made=is_made)
    document: dict[str, JSON] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": form.data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": _fill(dataset, form, name_of),
        "codecs": [serializer, *codecs],
    }
    grid = tuple(-(-length // step) for length, step in zip(shape, chunk_shape, strict=True))
    shown = Shown(document, None if form.dtype is None else form.dtype.base, grid)
    if made is not None:
        shown.manifest = made
    elif dataset.layout.storage == "chunked":
        _chunked(shown, dataset, form, name_of, is_made=is_made)
    else:
        _whole(shown, dataset, form, name_of, chunk_shape)
    return shown


def _checked(dataset: Dataset) -> Form | Unshown:
    source, layout = dataset.header.source, dataset.layout
    if dataset.dataspace.shape is None:
        return Unshown("it has no elements, not even a shape (a null dataspace)")
    if dataset.is_external:
        return Unshown("its elements are in other files (external storage)")
    if layout.storage == "virtual":
        return Unshown("its elements are in other datasets (a virtual dataset)")
    size = dataset.dataspace.count * dataset.datatype.size
    if layout.storage == "compact" and len(layout.data) < size:
        return Unshown("its elements are fewer than its shape says")
    if (
        layout.storage == "contiguous"
        and layout.address is not None
        and layout.address + source.base + size > source.size
    ):
        return Unshown("its elements end after the file")
    return forms.of(dataset.datatype)


def _places(
    dataset: Dataset, form: Form, *, is_made: bool
) -> tuple[tuple[int, ...], tuple[int, ...], Callable[[], AnyManifest] | None]:
    """Return the shape, the shape of chunks, and where chunks of contiguous elements lie, if that is known."""
    layout, inner = dataset.layout, form.shape
    shape = (*dataset.shape, *inner)
    whole = tuple(max(1, each) for each in shape)
    if layout.storage == "chunked":
        return shape, (*layout.chunk_shape, *inner), None
    if layout.storage == "compact" or not prod(shape):
        return shape, whole, None
    if layout.address is None:
        empty = Manifest(np.zeros(1, np.uint64), np.full(1, NOT_STORED, np.uint64))
        return shape, whole, lambda: empty
    if is_made:
        size = dataset.datatype.size * prod(shape[1:])
        rows = max(1, min(whole[0], _MOST_BYTES // max(1, size))) if shape else 1
        return shape, (rows, *whole[1:]) if shape else (), None
    item = dataset.datatype.size // prod(inner)
    chunk_shape, manifest = strided(shape, item, layout.address + dataset.header.source.base)
    return shape, chunk_shape, lambda: manifest


def _fill(dataset: Dataset, form: Form, name_of: Callable[[int], str]) -> JSON:
    raw = dataset.fill.raw
    if raw is None:
        return forms.fill(form, None)
    if form.made == "text":
        try:
            return str(elements.values(dataset.header.source, dataset.datatype, raw, name_of).ravel()[0])
        except OmnizarrError:
            return ""
    if form.made == "packed" or form.shape:
        return forms.fill(form, None if form.made else raw)
    return forms.fill(form, raw)


# -- chunks -------------------------------------------------------------------------


def _chunked(shown: Shown, dataset: Dataset, form: Form, name_of: Callable[[int], str], *, is_made: bool) -> None:
    index: list[chunks.Chunks] = []
    # an index of chunks counts without the dimensions within elements, along which there is one chunk
    source = dataset.header.source

    def table() -> chunks.Chunks:
        if not index:
            index.append(chunks.read(dataset))
        return index[0]

    def make(number: int) -> bytes:
        known = table()
        at = int(np.searchsorted(known.numbers, number))
        if at >= len(known) or known.numbers[at] != number:
            raise KeyError(number)
        skipped = 0 if known.skipped is None else int(known.skipped[at])
        data = source.read(int(known.offsets[at]) - source.base, int(known.lengths[at]))
        if not is_made:
            if skipped:
                raise ChunkError("a chunk of a very large grid skips filters, which is not supported", found=skipped)
            return data
        raw = filters.decode(dataset.filters, skipped, data, dataset.datatype.size, chunks.chunk_bytes(dataset))
        return _made(dataset, form, bytes(raw), name_of)

    def manifest() -> AnyManifest:
        return dense(table())

    def numbers() -> list[int]:
        found: list[int] = table().numbers.tolist()
        return found

    shown.make, shown.numbers = make, numbers
    if not is_made and prod(shown.grid) <= _DENSE:
        shown.manifest = manifest


def dense(table: chunks.Chunks) -> Manifest:
    """Return a manifest of all chunks of a grid."""
    count = prod(table.grid)
    if len(table) == count:
        return Manifest(table.offsets, table.lengths, None, table.skipped)
    offsets, lengths = np.zeros(count, np.uint64), np.full(count, NOT_STORED, np.uint64)
    offsets[table.numbers], lengths[table.numbers] = table.offsets, table.lengths
    skipped = None
    if table.skipped is not None:
        skipped = np.zeros(count, np.uint32)
        skipped[table.numbers] = table.skipped
    return Manifest(offsets, lengths, None, skipped)


def _whole(
    shown: Shown, dataset: Dataset, form: Form, name_of: Callable[[int], str], chunk_shape: tuple[int, ...]
) -> None:
    """Make chunks of elements that are not divided in the file: each has whole rows."""
    layout, source = dataset.layout, dataset.header.source
    size = dataset.dataspace.count * dataset.datatype.size
    if not size or not prod(shown.grid):
        return
    inner = prod(form.shape)
    step = prod(chunk_shape) // inner * dataset.datatype.size

    def make(number: int) -> bytes:
        start = number * step
        length = min(step, size - start)
        if layout.storage == "compact":
            raw = layout.data[start : start + length]
        else:
            raw = source.read((layout.address or 0) + start, length)
        return _made(dataset, form, raw.ljust(step, b"\0"), name_of)

    shown.numbers = lambda: range(prod(shown.grid))
    shown.make = make


def _made(dataset: Dataset, form: Form, raw: bytes, name_of: Callable[[int], str]) -> bytes:
    if not form.made:
        return raw
    if form.made == "packed":
        stored = dataset.datatype if not form.shape else dataset.datatype.base
        dtype = None if stored is None else stored.dtype()
        return np.frombuffer(raw, dtype).astype(form.dtype).tobytes()
    texts = elements.values(dataset.header.source, dataset.datatype, raw, name_of).ravel().tolist()
    parts = [len(texts).to_bytes(4, "little")]
    for each in texts:
        encoded = str(each).encode("utf-8", "replace")
        parts += (len(encoded).to_bytes(4, "little"), encoded)
    return b"".join(parts)


def rendered(document: dict[str, JSON]) -> bytes:
    """Return the bytes of a document."""
    return json.dumps(document).encode()
