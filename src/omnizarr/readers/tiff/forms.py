"""What the pages of one array have in common: shape, type, tiles or strips, and the codecs of these.

Spec: TIFF 6.0; "TIFF Technical Note 2" (JPEG); Adobe Photoshop, "TIFF Technical Note 3" (floating-point predictor).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.readers.tiff.directories import Directory

_PLAIN, _DEFLATE, _ZSTD = (1,), (8, 32946), (34926, 50000)
_BYTES: Final = {5: "lzw", 32773: "packbits", 34925: "lzma"}
_JPEG: Final = (7, 33007, 34892)
_IMAGES: Final = {
    2: "ccittrle", 3: "ccittfax3", 4: "ccittfax4", 34887: "lerc", 50001: "webp", 34927: "webp", 50002: "jpegxl",
    52546: "jpegxl", 33003: "jpeg2000", 33004: "jpeg2000", 33005: "jpeg2000", 34712: "jpeg2000", 34933: "png",
    34934: "jpegxr", 22610: "jpegxr", **dict.fromkeys(_JPEG, "jpeg"),
}  # fmt: skip
"""Compressions of pictures: what they make has its own order of bytes, and no predictor."""
_FACSIMILES: Final = (2, 3, 4)
_OF_FEW_BITS: Final = ("jpeg", "jpeg2000", "jpegxr", "jpegxl", "ccittrle", "ccittfax3", "ccittfax4")
_HORIZONTAL, _FLOATING = 2, 3
_YCBCR: Final = 6
_MOST_BYTES: Final = 1 << 32  # of a tile or strip
_MOST_ELEMENTS: Final = 1 << 62
_COLOURS: Final = {2: "rgb", 5: "cmyk", 6: "ycbcr", 8: "cielab"}


class Unshown(Exception):  # noqa: N818 - a reason, which becomes a note
    """Why a page cannot be shown."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a page.

    Attributes
    ----------
    height, width, samples : int
    is_separate : bool
        Whether the samples follow one another as planes.
    dtype : str
        The type of elements in memory, of NumPy, without the order of bytes.
    elements : {"", "packed", "float24", "complex integers"}
        How elements are stored, if not as in memory.
    bits : int
        Bits of a sample.
    order : {"<", ">"}
        The order of bytes in the file.
    is_tiled : bool
    rows, columns : int
        Of a tile, or a strip.
    compression, predictor, fill_order, photometric : int
    has_extra : bool
        Whether there are samples that are no colours.
    tables : bytes
        The tables of JPEG.
    options : int
        Those of facsimiles.
    layered : int
        What is compressed again in LERC.
    """

    height: int
    width: int
    samples: int
    is_separate: bool
    dtype: str
    elements: str
    bits: int
    order: str
    is_tiled: bool
    rows: int
    columns: int
    compression: int
    predictor: int
    fill_order: int
    photometric: int
    has_extra: bool
    tables: bytes
    options: int
    layered: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a page, as it is stored."""
        if self.is_separate:
            return self.samples, self.height, self.width
        return (self.height, self.width) if self.samples == 1 else (self.height, self.width, self.samples)

    @property
    def axes(self) -> str:
        """The axes of that shape."""
        return "SYX" if self.is_separate else "YX" if self.samples == 1 else "YXS"

    @property
    def segment(self) -> tuple[int, ...]:
        """The shape of a tile or strip."""
        if self.is_separate:
            return 1, self.rows, self.columns
        return (self.rows, self.columns) if self.samples == 1 else (self.rows, self.columns, self.samples)

    @property
    def together(self) -> int:
        """Samples of a pixel that are stored together."""
        return 1 if self.is_separate else self.samples

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of segments along each axis."""
        return tuple(-(-length // part) for length, part in zip(self.shape, self.segment, strict=True))

    @property
    def segments(self) -> int:
        """The number of tiles or strips of a page."""
        return prod(self.grid)

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory."""
        return np.dtype(self.dtype).itemsize

    @property
    def is_raw(self) -> bool:
        """Whether the bytes in the file are those of the elements."""
        return not self.elements and self.compression in _PLAIN and self.fill_order == 1 and self.predictor == 1

    @property
    def endian(self) -> str:
        """The order of bytes that the last codec decodes."""
        return "little" if self.elements or self.compression in _IMAGES else {"<": "little", ">": "big"}[self.order]

    @property
    def kind(self) -> tuple[Any, ...]:
        """What levels of an image have in common."""
        return self.samples, self.is_separate, self.dtype

    def codecs(self) -> list[dict[str, Any]]:
        """Return the codecs of bytes, in the order of the document."""
        row = {"width": self.columns, "samples": self.together}
        stored = {"<": "little", ">": "big"}[self.order]
        found: list[dict[str, Any]] = []
        if self.compression in _IMAGES:
            return [_codec("tiff", {**row, "compression": _IMAGES[self.compression], **self._image()})]
        is_unpacked_later = bool(self.elements) and self.predictor > 1
        if is_unpacked_later:
            found.append(_codec("tiff", {**row, "compression": "none", **self._stored()}))
        if self.predictor > 1:
            size = f"{'float' if self.predictor == _FLOATING else 'uint'}{self.bits}"
            given = {**row, "predictor": self.predictor, "data_type": size, "endian": stored}
            found.append(_codec("tiff_predictor", given))
        is_unpacked = bool(self.elements) and not is_unpacked_later
        if is_unpacked or self.fill_order == 2 or self.compression in _BYTES:
            name = (
                "none"
                if self.compression in _PLAIN
                else "deflate"
                if self.compression in _DEFLATE
                else "zstd"
                if self.compression in _ZSTD
                else _BYTES[self.compression]
            )
            given = {**row, "compression": name}
            if is_unpacked:
                given |= self._stored()
            if self.fill_order == 2:
                given["fill_order"] = 2
            found.append(_codec("tiff", given))
        elif self.compression in _DEFLATE:
            found.append(_codec("numcodecs.zlib", {"level": 6}))
        elif self.compression in _ZSTD:
            found.append(_codec("zstd", {"level": 0, "checksum": False}))
        return found

    def _stored(self) -> dict[str, Any]:
        """Return how elements are stored that are others in memory."""
        given: dict[str, Any] = {"elements": self.elements, "bits": self.bits, "data_type": _name(self.dtype)}
        return given | {"endian": {"<": "little", ">": "big"}[self.order]}

    def _image(self) -> dict[str, Any]:
        given: dict[str, Any] = {"data_type": _name(self.dtype)}
        if self.compression in _JPEG:
            if not self.has_extra and self.photometric in _COLOURS and not self.is_separate:
                given["colours"] = _COLOURS[self.photometric]
            if self.tables:
                given["tables"] = base64.b64encode(self.tables).decode()
        if self.compression in _FACSIMILES:
            if self.fill_order == 2:
                given["fill_order"] = 2
            if self.options:
                given["options"] = self.options
        return given


def _codec(name: str, configuration: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


def _name(dtype: str) -> str:
    return np.dtype(dtype).name


def form_of(page: Directory) -> Form:
    """Return the form of a page. Raises Unshown, or MetadataError if its tags are broken."""
    height, width = page.number(257), page.number(256)
    samples = page.number(277, 1)
    is_tiled = 322 in page
    columns = page.number(322) if is_tiled else width
    rows = page.number(323) if is_tiled else min(page.number(278, height) or height, height)
    if min(height, width, samples, rows, columns) < 1 or height * width * samples >= _MOST_ELEMENTS:
        found = f"{height} rows, {width} columns, {samples} samples, in parts of {rows} by {columns}"
        raise page.broken("a page has an impossible shape", found=found, expected="at least 1, and less than 2**62")
    if max(page.number(32997, 1), page.number(32998, 1)) > 1:
        raise Unshown("it has several planes in depth")
    compression = page.number(259, 1)
    dtype, elements, bits = _type(page)
    is_separate = samples > 1 and page.number(284, 1) == 2
    predictor = page.number(317, 1) if compression not in _IMAGES else 1
    photometric = page.number(262, 1)
    form = Form(
        height, width, samples, is_separate, dtype, elements, bits, page.source.order, is_tiled, rows, columns,
        compression, predictor, page.number(266, 1), photometric, page.count(338) > 0,
        page.bytes(347) if compression in _JPEG else b"", page.number(292) if compression in _FACSIMILES else 0,
        int(page.numbers(50674)[1]) if page.count(50674) > 1 else 0,
    )  # fmt: skip
    _check(page, form)
    return form


def _type(page: Directory) -> tuple[str, str, int]:
    """Return the type of elements, how they are stored, and their bits."""
    each = set(page.numbers(258).tolist()) or {1}
    kinds = set(page.numbers(339).tolist()) or {1}
    if len(each) > 1 or len(kinds) > 1:
        raise Unshown(f"its samples have different types: {page.numbers(258)[:8].tolist()} bits")
    bits, kind = int(each.pop()), int(kinds.pop())
    if kind == 3:
        if bits == 24:
            return "f4", "float24", bits
        if bits in (16, 32, 64):
            return f"f{bits // 8}", "", bits
    elif kind == 6 and bits in (64, 128):
        return f"c{bits // 8}", "", bits
    elif kind == 5 and bits in (32, 64):
        return f"c{bits // 4}", "complex integers", bits
    elif kind == 2 and bits in (8, 16, 32, 64):
        return f"i{bits // 8}", "", bits
    elif kind in (1, 4):
        if bits == 1:
            return "?", "packed", bits
        if bits in (8, 16, 32, 64):
            return f"u{bits // 8}", "", bits
        if 1 < bits < 32:
            return f"u{1 if bits < 8 else 2 if bits < 16 else 4}", "packed", bits
    raise Unshown(f"no type of Zarr is like its samples: {bits} bits of format {kind}")


def _check(page: Directory, form: Form) -> None:
    """Raise Unshown for what is not supported, and MetadataError for missing parts."""
    compression = form.compression
    if compression not in (*_PLAIN, *_DEFLATE, *_ZSTD, *_BYTES, *_IMAGES):
        raise Unshown(f"its compression is number {compression}, which is not supported")
    if compression in _FACSIMILES and (form.bits, form.samples) != (1, 1):
        raise Unshown("its compression is for black and white, and its elements are not")
    if form.elements == "packed" and compression in _IMAGES and _IMAGES[compression] not in _OF_FEW_BITS:
        raise Unshown(f"elements of {form.bits} bits in compression {compression}")
    if form.predictor not in (1, _HORIZONTAL, _FLOATING):
        raise Unshown(f"its predictor is number {form.predictor}, which is not supported")
    if form.predictor == _FLOATING and (form.dtype[0] != "f" or form.elements):
        raise Unshown("its predictor is for floating-point numbers, and its elements are not")
    if form.predictor == _HORIZONTAL and form.bits not in (8, 16, 32, 64):
        raise Unshown(f"its predictor is for numbers of whole bytes, and its elements have {form.bits} bits")
    if form.photometric == _YCBCR and compression not in _IMAGES and form.samples == 3:
        factors = page.numbers(530).tolist() or [2, 2]
        if factors != [1, 1]:
            raise Unshown(f"its colours are stored for {factors[0]} by {factors[-1]} pixels together")
    if prod(form.segment) * form.itemsize > _MOST_BYTES and not (form.is_raw and not form.is_tiled):
        raise Unshown(f"a tile or strip of it has {prod(form.segment) * form.itemsize} bytes")
    tag = 324 if 324 in page else 273
    if page.count(tag) < form.segments:
        raise page.broken(
            "a page has fewer tiles or strips than its shape needs", found=page.count(tag), expected=form.segments
        )
