"""Where the tiles and strips of pages lie: the chunks of an array.

Data that are not compressed, and whose strips follow one another, are divided into chunks of a few megabytes, whatever
the strips are. All other chunks are the tiles or strips of the file, of which the last strip of a page may be lower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.readers.tiff.directories import Directory
from omnizarr.readers.tiff.forms import Form
from omnizarr.stores.manifests.manifest import NOT_STORED, AnyManifest, Manifest, Strided, strided

_BLOCK: Final = 1 << 16
_AT_ONCE: Final = 256


@dataclass(frozen=True)
class Pages:
    """The pages of an array, in its order.

    Attributes
    ----------
    form : Form
    directories : sequence of Directory or None
        None: a page that is not in the file.
    virtual : int
        How many pages lie behind one another where the only directory says that there is one; 0 for others.
    """

    form: Form
    directories: Sequence[Directory | None]
    virtual: int = 0

    def __len__(self) -> int:
        return self.virtual or len(self.directories)

    def __call__(self) -> AnyManifest:
        """Return the manifest of tiles or strips."""
        form = self.form
        count = form.segments
        offsets = np.zeros(len(self.directories) * count, np.uint64)
        lengths = np.full(len(offsets), NOT_STORED, np.uint64)
        most = _sizes(form) if form.is_raw else None
        for first in range(0, len(self.directories), _AT_ONCE):
            self._expect(self.directories[first : first + _AT_ONCE])
            for number, page in enumerate(self.directories[first : first + _AT_ONCE], first):
                if page is None:
                    continue
                own, sizes = places(page, form)
                is_stored = (own != 0) & (sizes != 0)
                if most is not None:  # what writers store behind the elements does not count
                    sizes = np.minimum(sizes, most)
                part = slice(number * count, (number + 1) * count)
                offsets[part] = np.where(is_stored, own, 0)
                lengths[part] = np.where(is_stored, sizes, np.uint64(NOT_STORED))
        return Manifest(offsets, lengths)

    def _expect(self, pages: Sequence[Directory | None]) -> None:
        """Fetch the places of several pages at once."""
        wanted: list[int] = []
        source = None
        for page in pages:
            if page is None:
                continue
            source = page.source
            for tag in _tags(page):
                if tag in page:
                    start, size = page.span(tag)
                    if 0 < size < _BLOCK:
                        wanted += (start, start + size - 1)
        if source is not None and wanted:
            source.expect(wanted)


def _tags(page: Directory) -> tuple[int, int]:
    return (324, 325) if 324 in page else (273, 279)


def _sizes(form: Form) -> NDArray[np.uint64]:
    """Return how many bytes each tile or strip has that is stored as it is."""
    each = np.full(form.segments, prod(form.segment) * form.itemsize, np.uint64)
    short = form.height % form.rows
    if short and not form.is_tiled:
        rows = -(-form.height // form.rows)
        each[rows - 1 :: rows] = short * form.columns * form.together * form.itemsize
    return each


def places(page: Directory, form: Form) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return offsets and sizes of the tiles or strips of a page. Raises MetadataError."""
    at, size = _tags(page)
    offsets = page.numbers(at).astype(np.uint64)[: form.segments]
    sizes = page.numbers(size).astype(np.uint64)[: form.segments]
    if len(offsets) < form.segments:
        raise page.broken("a page has fewer tiles or strips than its shape needs", found=len(offsets),
                          expected=form.segments)  # fmt: skip
    if len(sizes) < form.segments:
        if not form.is_raw:
            raise page.broken("a page has no size of some tiles or strips", found=len(sizes), expected=form.segments)
        sizes = _sizes(form)
    if len(offsets) and int((offsets | sizes).max()) >> 62:
        raise page.broken("a tile or strip lies beyond 2**62 bytes", found=int(offsets.max()))
    return offsets, sizes


def start(page: Directory, form: Form) -> int | None:
    """Return where the elements of a page begin, if they follow one another; None if they do not."""
    if not form.is_raw or form.is_tiled:
        return None
    offsets, sizes = places(page, form)
    expected = _sizes(form)
    if not bool((sizes >= expected).all()) or not bool(offsets.all()):
        return None
    if len(offsets) > 1 and not bool((offsets[1:] == offsets[:-1] + expected[:-1]).all()):
        return None
    return int(offsets[0])


def lay(lead: Sequence[int], pages: Pages) -> tuple[dict[str, Any], AnyManifest | Pages]:
    """Return the grid of chunks, for the document, and the manifest of an array.

    Parameters
    ----------
    lead : sequence of int
        The lengths of the dimensions before those of a page.
    pages : Pages
    """
    form = pages.form
    found = _contiguous(tuple(lead), pages)
    if found is not None:
        return _regular(found[0]), found[1]
    segment = form.segment
    rows = 1 if form.is_separate else 0
    short = form.height % form.rows
    if form.is_tiled or not short or form.rows >= form.height:
        return _regular((*(1 for _ in lead), *segment)), pages
    shapes: list[Any] = [1 for _ in lead]
    for axis, length in enumerate(segment):
        shapes.append([[form.rows, form.height // form.rows], short] if axis == rows else length)
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}}, pages


def _regular(shape: Sequence[int]) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": list(shape)}}


def _contiguous(lead: tuple[int, ...], pages: Pages) -> tuple[tuple[int, ...], Strided] | None:
    """Return chunk shape and manifest of pages whose elements lie at regular distances."""
    form = pages.form
    size = prod(form.shape) * form.itemsize
    first = pages.directories[0]
    begin = None if first is None else start(first, form)
    if begin is None:
        return None
    step = size
    if not pages.virtual and len(pages) > 1:
        second = pages.directories[1]
        following = None if second is None else start(second, form)
        if following is None or following - begin < size:
            return None
        step = following - begin
        for number, page in enumerate(pages.directories):
            if page is None or start(page, form) != begin + number * step:
                return None
    if step == size:
        return strided((*lead, *form.shape), form.itemsize, begin)
    if len(lead) == 1:
        return strided((*lead, *form.shape), form.itemsize, begin, step)
    chunks, within = strided(form.shape, form.itemsize, begin)
    steps = [step * prod(lead[axis + 1 :]) for axis in range(len(lead))]
    return (*(1 for _ in lead), *chunks), Strided(
        (*lead, *within.grid), begin, (*steps, *within.steps), len(lead) + within.axis, within.units, within.per_chunk,
        within.unit, within.stride,
    )  # fmt: skip
