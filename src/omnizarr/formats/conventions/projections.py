"""One coordinate reference system in the forms of ``proj:``, of GDAL's ``_CRS`` and of CF, where that is exact.

Texts and codes go from form to form as they are. What has to be computed, such as the attributes of CF from a code, is
left to PROJ, through the package pyproj. It takes defaults for what attributes do not say, so its results are compared
with what was given; a form that would say something else is not written, with the reason.

Spec: https://github.com/zarr-conventions/proj; GDAL, "Zarr driver", "SRS encoding"; CF conventions, section 5.6 and
appendix F, "Grid Mappings".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from omnizarr.formats.conventions import gdal
from omnizarr.formats.conventions.registered import cf, proj
from omnizarr.formats.conventions.registered.proj import Crs
from omnizarr.model import JSON, thawed

MAPPING: Final = "spatial_ref"
"""The usual name of a grid mapping, and GDAL's attribute for its WKT."""
_NAME: Final = "grid_mapping_name"
_SECOND: Final = re.compile(
    r"\s*(PROJ|GEOG|GEOD|GEODETIC|PROJECTED|GEOGRAPHIC|COMPOUND|BOUND|DERIVEDPROJ|VERT|VERTICAL|ENG|ENGINEERING)CRS\s*[\[(]"
)
"""How a text in WKT2 begins. WKT1 has GEOGCS, PROJCS and others."""
_WITHOUT: Final = "that takes the package pyproj, which is not installed"
_RADIUS: Final = "earth_radius"
_AXES: Final = ("semi_major_axis", "semi_minor_axis", "inverse_flattening")
_ELLIPSOID: Final = "reference_ellipsoid_name"
_ELLIPSOIDS: Final = (_ELLIPSOID, "horizontal_datum_name", "geographic_crs_name")
_MERIDIANS: Final = ("longitude_of_prime_meridian", "prime_meridian_name")
_UNNAMED: Final = frozenset({"", "unknown", "undefined"})
_ZERO: Final = frozenset({"false_easting", "false_northing", "longitude_of_prime_meridian"})
"""Attributes that are 0 where they are missing, as CF says."""
_NOT_OF_CF: Final = frozenset({"GeoTransform", "_FillValue", "_ARRAY_DIMENSIONS", "missing_value"})
_CLOSE: Final = 1e-11
"""How far two numbers may differ that are the same in decimals, relatively."""
_REFUSALS: Final = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What pyproj raises for texts and attributes of others that it does not understand."""
_PLANE: Final = ("X", "Y")
_IN_DEGREES: Final = re.compile("EPSG:(4326|4258|4269|4979)|OGC:CRS(84h?|83)")
_IN_METRES: Final = re.compile("EPSG:(32[67](0[1-9]|[1-5][0-9]|60)|258(2[89]|3[0-8])|3857|3035)")
"""Systems that are often used, whose unit is known without PROJ: WGS 84, its UTM zones, those of ETRS89, others."""
_METRES: Final = frozenset({"m", "metre", "metres", "meter", "meters"})
_DEGREES: Final = re.compile("(arc_?)?deg(ree)?s?(_?(north|east|n|e))?")


class Form(NamedTuple):
    """A system in one form.

    Attributes
    ----------
    attributes : dict of str to JSON
        Empty if it cannot be said exactly.
    remarks : tuple of str
        What to know about them.
    why : str
        Why it cannot be said.
    """

    attributes: dict[str, JSON]
    remarks: tuple[str, ...] = ()
    why: str = ""


class _Wkt(NamedTuple):
    """The text of a system in WKT2, or in WKT1 if that is good enough; or why there is none."""

    text: str | None
    remarks: tuple[str, ...] = ()
    why: str = ""


def as_proj(crs: Crs, mapping: Mapping[str, Any] | None = None) -> Form:
    """Return the attribute of ``proj:`` for a system; `mapping` are the attributes of CF, where these say it.

    >>> as_proj(Crs("EPSG:32633")).attributes
    {'proj:code': 'EPSG:32633'}
    """
    if crs.code is not None:
        return Form({proj.CODE: crs.code})
    if crs.projjson is not None and not _is_second(crs.wkt):
        return Form({proj.PROJJSON: thawed(crs.projjson)})
    found = _wkt(crs, mapping, second=True)
    return Form({} if found.text is None else {proj.WKT: found.text}, found.remarks, found.why)


def as_gdal(crs: Crs, mapping: Mapping[str, Any] | None = None) -> Form:
    """Return GDAL's attribute ``_CRS`` for a system; `mapping` are the attributes of CF, where these say it.

    >>> as_gdal(Crs("EPSG:32633")).attributes
    {'_CRS': {'url': 'http://www.opengis.net/def/crs/EPSG/0/32633'}}
    """
    said = gdal.attributes(crs)
    if said:
        return Form({gdal.CRS: thawed(said[gdal.CRS])})
    found = _wkt(crs, mapping, second=False)
    return Form({} if found.text is None else gdal.attributes(Crs(wkt=found.text)), found.remarks, found.why)


def as_mapping(crs: Crs) -> Form:
    """Return the attributes of a grid mapping of CF for a system.

    ``crs_wkt`` says all of it. The other attributes are written if they say the same, because CF prefers them.
    """
    found = _wkt(crs, None, second=True)
    if found.text is None:
        if crs.wkt is not None and proj.systems_of_proj() is None:
            return Form({MAPPING: crs.wkt}, ("its WKT is WKT1, so GDAL's attribute spatial_ref alone has it",))
        return Form({}, (), found.why)
    said: dict[str, JSON] = {cf.CRS_WKT: found.text, MAPPING: found.text}
    known = proj.systems_of_proj()
    if known is None:
        return Form(said, (*found.remarks, "without pyproj, crs_wkt alone says it, not the other attributes of CF"))
    named, why = _attributes_of_cf(known, found.text)
    remarks = (*found.remarks, f"{why}, so crs_wkt alone says it") if why else found.remarks
    return Form({**named, **said}, remarks)


def unit_of(crs: Crs | None) -> Literal["m", "degrees", "other"] | None:
    """Return the unit of both axes of a system; None if it is not known."""
    known = proj.systems_of_proj()
    given = None if crs is None else crs.code or crs.wkt or crs.projjson
    if given is None:
        return None
    try:
        names = {axis.unit_name for axis in known.from_user_input(thawed(given)).axis_info[:2]}
    except _REFUSALS:  # it is not installed, or does not understand a text of others
        code = (crs.code or crs.identifier or "") if crs is not None else ""
        wkt = ((crs.wkt if crs is not None else None) or "").lstrip().upper()
        if _IN_DEGREES.fullmatch(code) or wkt.startswith("GEOG"):
            return "degrees"
        return "m" if _IN_METRES.fullmatch(code) else None
    return "m" if names == {"metre"} else "degrees" if names == {"degree"} else "other"


def is_other_unit(units: object, crs: Crs | None) -> bool:
    """Return whether coordinates are certainly in another unit than the axes of their system.

    >>> is_other_unit("km", None), is_other_unit("degrees_east", None), is_other_unit(None, None)
    (True, False, False)
    """
    if not isinstance(units, str) or not units:
        return False
    is_metres, is_degrees = units.lower() in _METRES, _DEGREES.fullmatch(units.lower()) is not None
    wanted = unit_of(crs)
    if wanted == "other":
        return True
    if wanted is None:
        return not (is_metres or is_degrees)
    return not (is_metres if wanted == "m" else is_degrees)


def of_axis(crs: Crs | None, axis: Literal["X", "Y"]) -> dict[str, str]:
    """Return the attributes of CF for a coordinate of which nothing else is known.

    >>> of_axis(Crs(wkt='GEOGCRS["a"]'), "Y")
    {'axis': 'Y', 'standard_name': 'latitude', 'units': 'degrees_north'}
    """
    unit = unit_of(crs)
    wkt = ((crs.wkt if crs is not None else None) or "").lstrip().upper()
    if unit == "degrees" and "DERIVINGCONVERSION" in wkt:  # a rotated pole
        return {"axis": axis, "standard_name": f"grid_{'latitude' if axis == 'Y' else 'longitude'}", "units": "degrees"}
    if unit == "degrees":
        name, units = ("latitude", "degrees_north") if axis == "Y" else ("longitude", "degrees_east")
        return {"axis": axis, "standard_name": name, "units": units}
    is_projected = unit == "m" or wkt.startswith("PROJ")
    name = {"standard_name": f"projection_{axis.lower()}_coordinate"} if is_projected else {}  # type: ignore[assignment]
    return {"axis": axis, **name, **({"units": "m"} if unit == "m" else {})}  # type: ignore[dict-item]


# -- text --------------------------------------------------------------------------------------------------------------


def _is_second(wkt: str | None) -> bool:
    """Return whether a text is WKT2."""
    return wkt is not None and _SECOND.match(wkt.upper()) is not None


def _wkt(crs: Crs, mapping: Mapping[str, Any] | None, *, second: bool) -> _Wkt:
    if crs.wkt is not None and (_is_second(crs.wkt) or not second):
        return _Wkt(crs.wkt)
    known = proj.systems_of_proj()
    if known is None:
        what = "its WKT is WKT1, and" if crs.wkt is not None else "no WKT is known, and"
        return _Wkt(None, (), f"{what} {_WITHOUT}")
    given = crs.wkt or crs.code or crs.projjson
    if given is None:
        return _of_attributes(known, mapping or {})
    try:
        system = known.from_user_input(thawed(given))
        text = system.to_wkt()
        is_same = known.from_wkt(text) == system
    except _REFUSALS as error:  # whatever it has against a text of others
        return _Wkt(None, (), f"PROJ cannot read it: {error}")
    if not is_same:
        return _Wkt(None, (), "PROJ cannot write it in WKT2 without a change")
    return _Wkt(text, ("its WKT1 becomes WKT2",) if crs.wkt is not None else ())


# -- attributes of CF --------------------------------------------------------------------------------------------------


def _of_attributes(known: Any, mapping: Mapping[str, Any]) -> _Wkt:
    """Return WKT for the attributes of a grid mapping, if they say all of it, and PROJ understands all of them."""
    said = {name: thawed(value) for name, value in mapping.items() if name not in _NOT_OF_CF}
    name = said.get(_NAME)
    if not _says_ellipsoid(said):
        return _Wkt(None, (), f"the grid mapping {name} says nothing of the shape of the earth")
    try:
        system = known.from_cf(said)
        text, why = str(system.to_wkt()), _difference(said, system.to_cf())
    except _REFUSALS as error:  # whatever it has against attributes of others
        return _Wkt(None, (), f"PROJ does not know the grid mapping {name}: {error}")
    return _Wkt(None, (), why) if why else _Wkt(text, ("the attributes of its grid mapping become WKT2",))


def _difference(said: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """Return how the attributes that PROJ gives back differ from those that it was given; "" if they do not."""
    name = said.get(_NAME)
    if made.get(_NAME) != name:
        return f"PROJ takes the grid mapping {name} for {made.get(_NAME)}"
    for each, value in said.items():
        if not _is_number(value):
            continue
        there = made.get(each, made.get("semi_major_axis") if each == _RADIUS else None)
        if there is None:
            return f"PROJ does not take the attribute {each} of the grid mapping"
        if not _is_close(value, there):
            return f"PROJ takes another {each} than the grid mapping says: {there} for {value}"
    for each, value in made.items():
        if each in said or not _is_number(value) or each in _AXES or (each in _ZERO and not np.any(value)):
            continue
        return f"the grid mapping does not say {each}"
    return ""


def _says_ellipsoid(said: Mapping[str, Any]) -> bool:
    major, *others = (name in said for name in _AXES)
    if _RADIUS in said or (major and any(others)):
        return True
    # Beside a prime meridian, PROJ takes the ellipsoid of WGS 84 where it does not find that of a datum.
    names = (_ELLIPSOID,) if any(name in said for name in _MERIDIANS) else _ELLIPSOIDS
    return any(isinstance(text := said.get(name), str) and text.strip().lower() not in _UNNAMED for name in names)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) or (
        isinstance(value, (list, tuple)) and bool(value) and all(isinstance(each, (int, float)) for each in value)
    )


def _is_close(one: Any, other: Any) -> bool:
    first, second = np.atleast_1d(np.asarray(one, "f8")), np.atleast_1d(np.asarray(other, "f8"))
    return first.shape == second.shape and np.allclose(first, second, rtol=_CLOSE, atol=_CLOSE)


def _attributes_of_cf(known: Any, wkt: str) -> tuple[dict[str, JSON], str]:
    """Return the attributes of CF for a system, without its WKT; none, and why, if they would say another system."""
    try:
        system = known.from_wkt(wkt)
        said = {name: thawed(value) for name, value in system.to_cf().items() if name != cf.CRS_WKT}
        if said.get(_NAME, "unknown") == "unknown":
            return {}, "CF has no name for its projection"
        has_more = system.is_bound or len(system.axis_info) != len(_PLANE)
        if has_more or _facts(known.from_cf(said)) != _facts(system):
            return {}, "the attributes of CF cannot say all of it"
    except _REFUSALS as error:
        return {}, f"PROJ has no attributes of CF for it ({error})"
    return said, ""


def _facts(system: Any) -> tuple[Any, ...]:
    """Return what makes a system of pyproj what it is, in numbers that can be compared."""
    operation, ellipsoid, meridian = system.coordinate_operation, system.ellipsoid, system.prime_meridian
    parameters = () if operation is None else operation.params
    return (
        operation and operation.method_name,
        sorted((each.name, _rounded(each.value * each.unit_conversion_factor)) for each in parameters),
        ellipsoid and (_rounded(ellipsoid.semi_major_metre), _rounded(ellipsoid.inverse_flattening)),
        meridian and _rounded(meridian.longitude * meridian.unit_conversion_factor),
        sorted(_rounded(axis.unit_conversion_factor) for axis in system.axis_info),
        system.datum and system.datum.name,
    )


def _rounded(value: float) -> float:
    return float(f"{value:.11g}")
