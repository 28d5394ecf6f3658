"""Figures in pixels, and palettes. They need Pillow (the extra ``show``)."""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MissingDependencyError
from omnizarr.pictures.colours import Pixels
from omnizarr.pictures.figure import FONT, Bitmap, Figure, Line, Text
from omnizarr.pictures.pixels import stretched
from omnizarr.support import extras

_INK: Final = (34, 34, 34)
_FAINT: Final = (110, 110, 110)
_PAPER: Final = (255, 255, 255)
_DATA: Final = (31, 119, 180)
# Lines are drawn larger and made smaller again, which smooths them.
_SMOOTHING: Final = 2
_ANCHORS: Final = {"start": "ls", "middle": "ms", "end": "rs"}


def palette_of(pixels: Pixels, most: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return each pixel as the number of a colour, and at most `most` colours."""
    found = _pillow("Image").fromarray(np.ascontiguousarray(pixels[..., :3])).quantize(most)
    numbers = np.asarray(found)
    colours = np.array(found.getpalette(), np.uint8).reshape(-1, 3)
    return numbers, colours


def of_figure(figure: Figure, scale: float = 2.0) -> bytes:
    """Return a figure as a file, with `scale` pixels to a unit: twice as many as a screen had once."""
    width, height = round(figure.width * scale), round(figure.height * scale)
    # Lines first: they are smoothed with the whole sheet, which would blur images and letters.
    sheet = _with_lines(figure, scale, width, height)
    _put_images(figure, scale, sheet)
    drawing = _pillow("ImageDraw").Draw(sheet)
    for shape in figure.shapes:
        if isinstance(shape, Line) and not shape.is_data:
            drawing.line(_points(shape, scale), fill=_FAINT, width=max(1, round(scale / 2)))
    fonts = _pillow("ImageFont")
    font = fonts.load_default(FONT * scale)
    for shape in figure.shapes:
        if isinstance(shape, Text):
            drawing.text(
                (shape.x * scale, shape.y * scale),
                shape.text,
                fill=_FAINT if shape.is_faint else _INK,
                font=font,
                anchor=_ANCHORS[shape.anchor],
                stroke_width=scale * 0.15 if shape.is_bold else 0,
            )
    out = io.BytesIO()
    sheet.save(out, "PNG")
    return out.getvalue()


def _with_lines(figure: Figure, scale: float, width: int, height: int) -> Any:
    large = _pillow("Image").new("RGB", (width * _SMOOTHING, height * _SMOOTHING), _PAPER)
    drawing = _pillow("ImageDraw").Draw(large)
    for shape in figure.shapes:
        if isinstance(shape, Line) and shape.is_data:
            points = _points(shape, scale * _SMOOTHING)
            drawing.line(points, fill=_DATA, width=round(1.4 * scale * _SMOOTHING), joint="curve")
    return large.resize((width, height), _pillow("Image").Resampling.BOX)


def _put_images(figure: Figure, scale: float, sheet: Any) -> None:
    module = _pillow("Image")
    for shape in figure.shapes:
        if isinstance(shape, Bitmap):
            width, height = max(1, round(shape.width * scale)), max(1, round(shape.height * scale))
            image = module.fromarray(stretched(shape.pixels, width, height))
            sheet.paste(image, (round(shape.x * scale), round(shape.y * scale)), image)


def _points(line: Line, scale: float) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in line.points * scale]


def is_there() -> bool:
    """Return whether Pillow is installed."""
    try:
        _pillow("Image")
    except MissingDependencyError:
        return False
    return True


def _pillow(module: str) -> Any:
    try:
        return __import__(f"PIL.{module}", fromlist=[module])
    except ImportError as error:
        raise MissingDependencyError("pictures in pixels need Pillow", remedy=extras.remedy("show")) from error
