"""Tags of pages as attributes: texts, numbers, georeferences.

Spec: TIFF 6.0; OGC GeoTIFF 1.1; GDAL, "GTiff driver".
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from omnizarr.errors import MetadataError
from omnizarr.model import JSON
from omnizarr.readers.tiff.directories import STRUCTURE, Directory, parse
from omnizarr.readers.tiff.forms import Form

_MOST_TEXT: Final = 1 << 24
_MOST_BYTES: Final = 1 << 20
_MOST_NUMBERS: Final = 1 << 16

_NAMES: Final = {
    263: "Threshholding", 264: "CellWidth", 265: "CellLength", 269: "DocumentName", 270: "ImageDescription",
    271: "Make", 272: "Model", 274: "Orientation", 280: "MinSampleValue", 281: "MaxSampleValue", 282: "XResolution",
    283: "YResolution", 285: "PageName", 286: "XPosition", 287: "YPosition", 290: "GrayResponseUnit",
    291: "GrayResponseCurve", 296: "ResolutionUnit", 297: "PageNumber", 301: "TransferFunction", 305: "Software",
    306: "DateTime", 315: "Artist", 316: "HostComputer", 318: "WhitePoint", 319: "PrimaryChromaticities",
    320: "ColorMap", 321: "HalftoneHints", 332: "InkSet", 333: "InkNames", 336: "DotRange", 340: "SMinSampleValue",
    341: "SMaxSampleValue", 529: "YCbCrCoefficients", 531: "YCbCrPositioning", 532: "ReferenceBlackWhite",
    700: "XMP", 33432: "Copyright", 33723: "IPTC", 34377: "Photoshop", 34665: "Exif", 34675: "ICCProfile",
    34853: "GPS", 37510: "UserComment", 42112: "GDAL_METADATA", 42113: "GDAL_NODATA", 50838: "IJMetadataByteCounts",
    50839: "IJMetadata", 51023: "MicroManagerMetadata",
}  # fmt: skip
_TEXTS: Final = (270, 700, 42112, 42113)
_DIRECTORIES: Final = (34665, 34853)
_PHOTOMETRIC: Final = {
    0: "white is zero", 1: "black is zero", 2: "rgb", 3: "palette", 4: "mask", 5: "cmyk", 6: "ycbcr", 8: "cielab",
    32803: "cfa", 34892: "linear raw",
}  # fmt: skip

_SCALE, _TIEPOINT, _TRANSFORMATION = 33550, 33922, 34264
_KEYS, _DOUBLES, _TEXT = 34735, 34736, 34737
_GEO: Final = (_SCALE, _TIEPOINT, _TRANSFORMATION, _KEYS, _DOUBLES, _TEXT)
_KEY_NAMES: Final = {
    1024: "GTModelTypeGeoKey", 1025: "GTRasterTypeGeoKey", 1026: "GTCitationGeoKey", 2048: "GeodeticCRSGeoKey",
    2049: "GeodeticCitationGeoKey", 2050: "GeodeticDatumGeoKey", 2051: "PrimeMeridianGeoKey",
    2052: "GeogLinearUnitsGeoKey", 2053: "GeogLinearUnitSizeGeoKey", 2054: "GeogAngularUnitsGeoKey",
    2055: "GeogAngularUnitSizeGeoKey", 2056: "EllipsoidGeoKey", 2057: "EllipsoidSemiMajorAxisGeoKey",
    2058: "EllipsoidSemiMinorAxisGeoKey", 2059: "EllipsoidInvFlatteningGeoKey", 2060: "GeogAzimuthUnitsGeoKey",
    2061: "PrimeMeridianLongitudeGeoKey", 3072: "ProjectedCRSGeoKey", 3073: "ProjectedCitationGeoKey",
    3074: "ProjectionGeoKey", 3075: "ProjMethodGeoKey", 3076: "ProjLinearUnitsGeoKey",
    3077: "ProjLinearUnitSizeGeoKey", 3078: "ProjStdParallel1GeoKey", 3079: "ProjStdParallel2GeoKey",
    3080: "ProjNatOriginLongGeoKey", 3081: "ProjNatOriginLatGeoKey", 3082: "ProjFalseEastingGeoKey",
    3083: "ProjFalseNorthingGeoKey", 3084: "ProjFalseOriginLongGeoKey", 3085: "ProjFalseOriginLatGeoKey",
    3086: "ProjFalseOriginEastingGeoKey", 3087: "ProjFalseOriginNorthingGeoKey", 3088: "ProjCenterLongGeoKey",
    3089: "ProjCenterLatGeoKey", 3090: "ProjCenterEastingGeoKey", 3091: "ProjCenterNorthingGeoKey",
    3092: "ProjScaleAtNatOriginGeoKey", 3093: "ProjScaleAtCenterGeoKey", 3094: "ProjAzimuthAngleGeoKey",
    3095: "ProjStraightVertPoleLongGeoKey", 4096: "VerticalGeoKey", 4097: "VerticalCitationGeoKey",
    4098: "VerticalDatumGeoKey", 4099: "VerticalUnitsGeoKey",
}  # fmt: skip
_PROJECTED, _GEODETIC, _RASTER_TYPE = 3072, 2048, 1025
_MODELS: Final = {_SCALE: "ModelPixelScale", _TIEPOINT: "ModelTiepoint", _TRANSFORMATION: "ModelTransformation"}
_USER_DEFINED: Final = 32767
_POINT: Final = 2


def name(tag: int) -> str:
    """Return the name of a tag."""
    return _NAMES.get(tag, f"tag_{tag}")


def is_georeferenced(page: Directory) -> bool:
    """Return whether a page has a place on the earth, or was written by GDAL."""
    return any(tag in page for tag in (_SCALE, _TRANSFORMATION, _KEYS, 42112, 42113))


def attributes(page: Directory, form: Form, notes: list[str], title: str) -> dict[str, JSON]:
    """Return the attributes of a page. What cannot be shown is added to the notes."""
    found = _plain(page, notes, title)
    if form.photometric in _PHOTOMETRIC:
        found["photometric"] = _PHOTOMETRIC[form.photometric]
    if form.has_extra:
        found["ExtraSamples"] = page.numbers(338).tolist()
    try:
        found |= _geo(page)
    except (MetadataError, ValueError, IndexError, OverflowError) as error:
        notes.append(f"{title}: its georeference cannot be read: {getattr(error, 'message', error)}")
    return found


def _plain(page: Directory, notes: list[str], title: str, *, depth: int = 0) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    for tag in page:
        if tag in STRUCTURE or tag in _GEO:
            continue
        called = name(tag)
        try:
            if tag in _DIRECTORIES and not depth:
                found[called] = _plain(parse(page.source, page.number(tag)), notes, title, depth=1)
            else:
                found[called] = _value(page, tag)
        except (MetadataError, ValueError) as error:
            notes.append(f"{title}: the tag {called} is not shown: {getattr(error, 'message', error)}")
    return found


def _value(page: Directory, tag: int) -> JSON:
    count = page.count(tag)
    is_text = page.is_text(tag) or tag in _TEXTS
    if count > (_MOST_TEXT if is_text else _MOST_BYTES):
        raise ValueError(f"it has {count} values")
    if is_text:
        return page.text(tag)
    numbers = page.numbers(tag)
    if numbers.dtype.itemsize == 1 and count > 16:
        return {"base64": base64.b64encode(numbers.tobytes()).decode()}
    if count > _MOST_NUMBERS:
        raise ValueError(f"it has {count} values")
    if page.is_fraction(tag):
        pairs = numbers.reshape(-1, 2).tolist()
        listed: list[JSON] = [above / below if below else None for above, below in pairs]
    else:
        listed = [_finite(each) for each in numbers.tolist()]
    return listed[0] if len(listed) == 1 else listed


def _finite(value: Any) -> JSON:
    return value if isinstance(value, int) or math.isfinite(value) else str(value)


# -- georeferences ------------------------------------------------------------------------


def geo_keys(page: Directory) -> dict[int, JSON]:
    """Return the keys of GeoTIFF by number."""
    found: dict[int, JSON] = {}
    directory = page.numbers(_KEYS).tolist()
    doubles = page.numbers(_DOUBLES)
    text = page.bytes(_TEXT).decode("utf-8", "replace")
    for at in range(4, len(directory) - 3, 4):
        key, where, count, value = directory[at : at + 4]
        if where == 0:
            found[key] = value
        elif where == _DOUBLES:
            numbers = [_finite(each) for each in doubles[value : value + count].tolist()]
            found[key] = numbers[0] if len(numbers) == 1 else list(numbers)
        elif where == _TEXT:
            found[key] = text[value : value + count].rstrip("|\0")
        elif where == _KEYS:
            found[key] = directory[value : value + count]
    return found


def _geo(page: Directory) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    keys = geo_keys(page)
    if keys:
        found["GeoKeys"] = {_KEY_NAMES.get(key, str(key)): value for key, value in keys.items()}
        code = keys.get(_PROJECTED) or keys.get(_GEODETIC)
        if isinstance(code, int) and 0 < code < _USER_DEFINED:
            found["crs"] = f"EPSG:{code}"
            found["_CRS"] = {"url": f"http://www.opengis.net/def/crs/EPSG/0/{code}"}
    for tag, called in _MODELS.items():
        if tag in page:
            found[called] = [_finite(each) for each in page.numbers(tag)[:1024].tolist()]
    transform = _transform(page, is_point=keys.get(_RASTER_TYPE) == _POINT)
    if transform is not None:
        found["geotransform"] = list(transform)
    return found


def _transform(page: Directory, *, is_point: bool) -> tuple[float, ...] | None:
    """Return the geotransform of GDAL: of the corners of pixels."""
    if page.count(_TRANSFORMATION) >= 16:
        m = page.numbers(_TRANSFORMATION).tolist()
        found = (m[3], m[0], m[1], m[7], m[4], m[5])
    elif page.count(_SCALE) >= 2 and page.count(_TIEPOINT) >= 6:
        scale, tie = page.numbers(_SCALE).tolist(), page.numbers(_TIEPOINT).tolist()
        column, row, _, x, y, _ = tie[:6]
        found = (x - column * scale[0], scale[0], 0.0, y + row * scale[1], 0.0, -scale[1])
    else:
        return None
    if is_point:
        found = (
            found[0] - (found[1] + found[2]) / 2, found[1], found[2], found[3] - (found[4] + found[5]) / 2, found[4],
            found[5],
        )  # fmt: skip
    return tuple(map(float, found)) if all(map(math.isfinite, found)) else None


def nodata(page: Directory, dtype: np.dtype[Any]) -> Any:
    """Return GDAL's value of missing elements as a number of Python; None if there is none that elements can have."""
    if page.count(42113) > 64:
        return None
    text = page.text(42113).strip(" \0")
    if not text or dtype.kind not in "iufc":
        return None
    try:
        if dtype.kind == "c":
            value = float(text)
            return value if math.isfinite(value) else None
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                return float(np.array(float(text), dtype))
        value = int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        return None
    info = np.iinfo(dtype)
    is_whole = isinstance(value, int) or value.is_integer()
    return int(value) if is_whole and info.min <= value <= info.max else None


def resolution(page: Directory) -> Mapping[str, float]:
    """Return how large a pixel is, in micrometers; nothing if the page does not say it."""
    unit = {2: 25400.0, 3: 10000.0}.get(page.number(296, 2) if 296 in page else 0)
    if unit is None:
        return {}
    found = {}
    for axis, tag in (("x", 282), ("y", 283)):
        if page.count(tag) == 1 and page.is_fraction(tag):
            above, below = page.numbers(tag).tolist()
            if above and below:
                found[axis] = unit * below / above
    return found
