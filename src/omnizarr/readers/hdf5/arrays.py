"""Datasets as arrays of Zarr: a document, and where the chunks lie or what makes them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ChunkError, OmnizarrError
from omnizarr.model import JSON
from omnizarr.readers.hdf5 import blocks, chunks, elements, filters, forms, jsonform, outside
from omnizarr.readers.hdf5.blocks import Blocks
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.datatypes import Datatype
from omnizarr.readers.hdf5.forms import Form, Unshown
from omnizarr.readers.hdf5.outside import Files, Outside
from omnizarr.readers.hdf5.seeking import Seeker
from omnizarr.readers.hdf5.virtual import Unsupported
from omnizarr.stores.manifests.manifest import NOT_STORED, AnyManifest, Index, Manifest, strided

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
    has : callable or None
        Returns whether it may make a chunk. None: those of `numbers`.
    grid : tuple of int
        The number of chunks along each dimension.
    is_v2 : bool
        Whether the document is one of Zarr v2.
    is_json : bool
        Whether its elements are texts of JSON.
    replaces_text : bool
        Whether a chunk that was made has U+FFFD in place of bytes that are not UTF-8.
    """

    document: dict[str, JSON]
    dtype: np.dtype[Any] | None
    grid: tuple[int, ...]
    manifest: Callable[[], AnyManifest] | None = None
    numbers: Callable[[], range | list[int]] = list
    make: Callable[[int], bytes] = lambda _: b""
    has: Callable[[int], bool] | None = None
    is_v2: bool = False
    is_json: bool = False
    replaces_text: bool = False
    _made: set[int] = field(default_factory=set)

    def of(self, number: int, dataset: Dataset, form: Form, raw: bytes, name_of: Callable[[int], str]) -> bytes:
        """Return the bytes of a chunk, by its number, from those in the file."""
        if form.made in {"text", "json"}:
            element = _element(dataset, form)
            found = elements.values(dataset.header.source, element, raw, name_of)
            made = b"".join(self._texts(_json(found, element) if form.made == "json" else map(str, found), len(found)))
            self._made.add(number)
            return made
        return _made(dataset, form, raw, name_of)

    def _texts(self, texts: Iterable[str], count: int) -> Iterator[bytes]:
        yield count.to_bytes(4, "little")
        for each in texts:
            text = elements.unicode(each)
            self.replaces_text = self.replaces_text or text != each
            encoded = text.encode()
            yield len(encoded).to_bytes(4, "little")
            yield encoded

    def must_replace_text(self, *, looks: bool) -> bool:
        """Return whether elements have U+FFFD in place of bytes that are not UTF-8; see `verbs.replaces_text`."""
        if looks and self.manifest is None and not self.is_v2:
            for number in self.numbers():
                if self.replaces_text:
                    break
                if number not in self._made:
                    with suppress(KeyError, OmnizarrError):  # a broken chunk is an error of those who read it
                        self.make(number)
        return self.replaces_text


def show(
    dataset: Dataset, name_of: Callable[[int], str], files: Files | None = None, *, is_v3_only: bool = False
) -> Shown | Unshown:
    """Return a dataset as an array, or why it is not shown.

    Parameters
    ----------
    dataset : Dataset
    name_of : callable
        Returns the path of an object by its address, for references.
    files : Files, optional
        What the file may lead to. None: nothing.
    is_v3_only : bool, optional
        Whether elements are those of Zarr v3, not of v2 or JSON.
    """
    form = _checked(dataset)
    if is_v3_only and isinstance(form, Form) and (form.is_v2 or form.made == "json"):
        form = Unshown("Zarr v3 has no such data type")
    elsewhere = _elsewhere(dataset, files)
    codecs = _codecs(dataset, form)
    for each in (form, elsewhere, codecs):
        if isinstance(each, Unshown):
            return each
    assert isinstance(form, Form)  # noqa: S101 - as all are shown
    assert not isinstance(elsewhere, Unshown)  # noqa: S101
    assert not isinstance(codecs, Unshown)  # noqa: S101
    is_made = codecs is None
    serializer: JSON = {"name": "bytes", "configuration": {"endian": form.order}} if form.order else {"name": "bytes"}
    if form.made in {"text", "json"}:
        serializer = {"name": "vlen-utf8"}
    shape, chunk_shape, made = _places(dataset, form, is_made=is_made)
    if elsewhere is not None and files is not None:
        shape, chunk_shape, made = _places_elsewhere(dataset, form, elsewhere, files)
    document: dict[str, JSON] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": form.data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": _fill(dataset, form, name_of),
        "codecs": [serializer, *(codecs or [])],
    }
    if form.is_v2:
        document = _document_v2(dataset, form, shape, chunk_shape)
    grid = tuple(-(-length // step) for length, step in zip(shape, chunk_shape, strict=True))
    dtype = None if form.dtype is None or form.made == "ragged" else form.dtype.base
    shown = Shown(document, dtype, grid, is_v2=form.is_v2, is_json=form.made == "json")
    if made is not None:
        shown.manifest = made
    elif elsewhere is not None:
        _of_blocks(shown, dataset, form, name_of, elsewhere)
    elif dataset.layout.storage == "chunked":
        _chunked(shown, dataset, form, name_of, is_made=is_made)
    else:
        _whole(shown, dataset, form, name_of, chunk_shape)
    return shown


def _elsewhere(dataset: Dataset, files: Files | None) -> Blocks | Unshown | None:
    """Return the elements if they are in other files or datasets; None if they are not."""
    if not dataset.is_external and dataset.layout.storage != "virtual":
        return None
    if files is None:
        return Unshown("its elements are in other files or datasets")
    try:
        return blocks.of(dataset, files)
    except Unsupported as error:
        return Unshown(str(error))
    except Outside as error:
        return Unshown(f"it leads to {str(error)!r}, which is not in the directory of the file")


def _codecs(dataset: Dataset, form: Form | Unshown) -> list[JSON] | Unshown | None:
    """Return the codecs of chunks; None if the reader makes the chunks."""
    is_made = isinstance(form, Form) and form.made != ""
    if dataset.layout.storage != "chunked":
        return None if is_made else []
    size = dataset.datatype.size
    found = [filters.codec(each, size) for each in dataset.filters]
    if all(each is not None for each in found):
        named = [each for each in found if each is not None and not is_made]
        return None if is_made else [{"name": each.name, "configuration": dict(each.configuration)} for each in named]
    why = filters.why_not(dataset.filters, size)
    return Unshown(why) if why else None


def _checked(dataset: Dataset) -> Form | Unshown:
    source, layout = dataset.header.source, dataset.layout
    if dataset.dataspace.shape is None:
        return Unshown("it has no elements, not even a shape (a null dataspace)")
    size = dataset.dataspace.count * dataset.datatype.size
    if layout.storage == "compact" and len(layout.data) < size:
        return Unshown("its elements are fewer than its shape says")
    if (
        layout.storage == "contiguous"
        and not dataset.is_external
        and layout.address is not None
        and layout.address + source.base + size > source.size
    ):
        return Unshown("its elements end after the file")
    form = forms.of(dataset.datatype)
    if isinstance(form, Form) and form.made == "ragged" and any(dataset.fill.raw or b""):
        return Unshown("its fill value is a list, and Zarr has none such")
    return form


def _document_v2(dataset: Dataset, form: Form, shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> dict[str, JSON]:
    """Return the document of elements that only Zarr v2 has, which the reader makes."""
    assert form.dtype is not None  # noqa: S101 - texts are in v3
    dtype: JSON = "|O"
    fill: JSON = None
    filters_: list[JSON] | None = [{"id": "vlen-array", "dtype": form.dtype.str}]
    if form.made == "packed":
        dtype, filters_ = _typestr(form.dtype), None
        raw = dataset.fill.raw or bytes(dataset.datatype.size)
        # Without a fill value there is none in the document: what is not stored reads as zeros.
        fill = (
            None
            if not any(raw)
            else base64.b64encode(elements.packed(_element(dataset, form), raw, form.dtype)[:1].tobytes()).decode(
                "ascii"
            )
        )
    return {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(chunk_shape),
        "dtype": dtype,
        "fill_value": fill,
        "order": "C",
        "compressor": None,
        "filters": filters_,
        "dimension_separator": "/",
    }


def _typestr(dtype: np.dtype[Any]) -> JSON:
    """Return a type as in documents of Zarr v2."""
    if dtype.fields is None or dtype.names is None:
        return dtype.str
    found: list[JSON] = []
    for name in dtype.names:
        each = dtype.fields[name][0]
        found.append([name, _typestr(each.base), *([list(each.shape)] if each.shape else [])])
    return found


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


def _places_elsewhere(
    dataset: Dataset, form: Form, elsewhere: Blocks, files: Files
) -> tuple[tuple[int, ...], tuple[int, ...], Callable[[], AnyManifest] | None]:
    """Return the shape, the shape of chunks, and where they lie, if they are all in one other file."""
    shape, chunk_shape = (*elsewhere.shape, *form.shape), (*elsewhere.chunk_shape, *form.shape)
    parts = outside.pieces(dataset)
    if form.made or len(parts) != 1 or not prod(shape):
        return shape, chunk_shape, None
    file = files.raw(parts[0].name)
    if file is None:
        return shape, chunk_shape, None
    item = dataset.datatype.size // prod(form.shape)
    chunk_shape, manifest = strided(shape, item, parts[0].offset, file=files.place_of(file))
    return shape, chunk_shape, lambda: manifest


def _of_blocks(shown: Shown, dataset: Dataset, form: Form, name_of: Callable[[int], str], elsewhere: Blocks) -> None:
    def make(number: int) -> bytes:
        raw = elsewhere.fetch(number)
        if raw is None:
            raise KeyError(number)
        return shown.of(number, dataset, form, raw, name_of)

    shown.make, shown.numbers, shown.has = make, elsewhere.numbers, elsewhere.has


def _fill(dataset: Dataset, form: Form, name_of: Callable[[int], str]) -> JSON:
    raw = dataset.fill.raw
    if form.made == "json":
        element = _element(dataset, form)
        return _json(elements.values(dataset.header.source, element, raw or bytes(element.size), name_of), element)[0]
    if form.is_v2:
        return None
    if raw is None:
        return forms.fill(form, None)
    if form.made == "text":
        try:
            return str(elements.values(dataset.header.source, dataset.datatype, raw, name_of).ravel()[0])
        except OmnizarrError:
            return ""
    if form.made == "packed":
        return forms.fill(form, elements.packed(_element(dataset, form), raw, _dtype(form))[:1].tobytes())
    return forms.fill(form, raw)


def _element(dataset: Dataset, form: Form) -> Datatype:
    """Return the datatype of an element, without the dimensions in it."""
    base = dataset.datatype.base
    return base if form.shape and base is not None else dataset.datatype


def _dtype(form: Form) -> np.dtype[Any]:
    assert form.dtype is not None  # noqa: S101 - callers ask for numbers
    return form.dtype


# -- chunks -------------------------------------------------------------------------


def _chunked(shown: Shown, dataset: Dataset, form: Form, name_of: Callable[[int], str], *, is_made: bool) -> None:
    index: list[chunks.Chunks] = []
    # an index of chunks counts without the dimensions within elements, along which there is one chunk
    source = dataset.header.source

    def table() -> chunks.Chunks:
        if not index:
            index.append(source.memo.get(("chunks", dataset.header.address)) or chunks.read(dataset))
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
        return shown.of(number, dataset, form, bytes(raw), name_of)

    def numbers() -> list[int]:
        found: list[int] = table().numbers.tolist()
        return found

    shown.make, shown.numbers = make, numbers
    if not is_made and prod(shown.grid) <= _DENSE:
        shown.manifest = _index(dataset)


def _index(dataset: Dataset) -> Callable[[], AnyManifest]:
    seeker = Seeker.of(dataset)

    def whole() -> AnyManifest:
        found = None if seeker is None else seeker.whole()
        return dense(chunks.read(dataset)) if found is None else found  # and the store keeps only that

    return whole if seeker is None else Index(whole, seeker.seek, seeker.near)


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
        return shown.of(number, dataset, form, raw.ljust(step, b"\0"), name_of)

    shown.numbers = lambda: range(prod(shown.grid))
    shown.make = make


def _made(dataset: Dataset, form: Form, raw: bytes, name_of: Callable[[int], str]) -> bytes:
    if not form.made:
        return raw
    element = _element(dataset, form)
    if form.made == "packed":
        return elements.packed(element, raw, _dtype(form)).tobytes()
    found = elements.values(dataset.header.source, element, raw, name_of)
    parts = [len(found).to_bytes(4, "little")]
    for each in found:
        vector = np.asarray(each).astype(form.dtype, copy=False).tobytes()
        parts += (len(vector).to_bytes(4, "little"), vector)
    return b"".join(parts)


def _json(found: NDArray[Any], datatype: Datatype) -> list[str]:
    """Return the JSON of elements. What is no number there, such as infinity, is as Python writes it."""
    return [json.dumps(jsonform.of_element(each, datatype), ensure_ascii=False) for each in found]


def rendered(document: dict[str, JSON]) -> bytes:
    """Return the bytes of a document."""
    return json.dumps(document).encode()
