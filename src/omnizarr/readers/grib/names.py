"""Names of quantities and of levels: a compact part of the tables of WMO, under the names that ecCodes gives them.

A quantity that is not in the table is named by its numbers: ``param_0_19_7`` (discipline, category, number), or
``param_v128_121`` (version of the table of edition 1, number).

Spec: WMO, Manual on Codes, code tables 4.2, 4.5 of edition 2, and 2, 3 of edition 1.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Quantity(NamedTuple):
    """A quantity: its name, what it is in words, and its unit."""

    name: str
    words: str
    units: str


_Q: Final = {
    "t": ("Temperature", "K"), "q": ("Specific humidity", "kg kg**-1"), "r": ("Relative humidity", "%"),
    "u": ("U component of wind", "m s**-1"), "v": ("V component of wind", "m s**-1"),
    "w": ("Vertical velocity", "Pa s**-1"), "wz": ("Geometric vertical velocity", "m s**-1"),
    "z": ("Geopotential", "m**2 s**-2"), "gh": ("Geopotential height", "gpm"), "h": ("Geometric height", "m"),
    "vo": ("Vorticity (relative)", "s**-1"), "absv": ("Absolute vorticity", "s**-1"), "d": ("Divergence", "s**-1"),
    "ws": ("Wind speed", "m s**-1"), "wdir": ("Wind direction", "Degree true"),
    "gust": ("Wind speed (gust)", "m s**-1"),
    "pv": ("Potential vorticity", "K m**2 kg**-1 s**-1"), "pt": ("Potential temperature", "K"),
    "vptmp": ("Virtual potential temperature", "K"), "papt": ("Pseudo-adiabatic potential temperature", "K"),
    "dpt": ("Dew point temperature", "K"), "sp": ("Surface pressure", "Pa"), "pres": ("Pressure", "Pa"),
    "msl": ("Mean sea level pressure", "Pa"), "prmsl": ("Pressure reduced to MSL", "Pa"),
    "t2m": ("2 metre temperature", "K"), "d2m": ("2 metre dewpoint temperature", "K"),
    "u10": ("10 metre U wind component", "m s**-1"), "v10": ("10 metre V wind component", "m s**-1"),
    "u100": ("100 metre U wind component", "m s**-1"), "v100": ("100 metre V wind component", "m s**-1"),
    "r2": ("2 metre relative humidity", "%"), "sh2": ("2 metre specific humidity", "kg kg**-1"),
    "tmax": ("Maximum temperature", "K"), "tmin": ("Minimum temperature", "K"), "skt": ("Skin temperature", "K"),
    "mx2t": ("Maximum temperature at 2 metres", "K"), "mn2t": ("Minimum temperature at 2 metres", "K"),
    "tp": ("Total precipitation", "kg m**-2"), "prate": ("Precipitation rate", "kg m**-2 s**-1"),
    "cp": ("Convective precipitation", "kg m**-2"), "lsp": ("Large-scale precipitation", "kg m**-2"),
    "sf": ("Snowfall water equivalent", "kg m**-2"), "sd": ("Water equivalent of snow depth", "kg m**-2"),
    "sde": ("Snow depth", "m"), "pwat": ("Precipitable water", "kg m**-2"),
    "tcwv": ("Total column water vapour", "kg m**-2"),
    "tcw": ("Total column water", "kg m**-2"), "clwc": ("Cloud liquid water content", "kg kg**-1"),
    "clwmr": ("Cloud mixing ratio", "kg kg**-1"), "ciwc": ("Cloud ice water content", "kg kg**-1"),
    "rwmr": ("Rain mixing ratio", "kg kg**-1"), "snmr": ("Snow mixing ratio", "kg kg**-1"),
    "tcc": ("Total cloud cover", "%"), "lcc": ("Low cloud cover", "%"), "mcc": ("Medium cloud cover", "%"),
    "hcc": ("High cloud cover", "%"), "cc": ("Fraction of cloud cover", "%"), "vis": ("Visibility", "m"),
    "cape": ("Convective available potential energy", "J kg**-1"), "cin": ("Convective inhibition", "J kg**-1"),
    "lsm": ("Land-sea mask", "(0 - 1)"), "orog": ("Orography", "m"), "sr": ("Surface roughness", "m"),
    "al": ("Albedo", "%"), "blh": ("Boundary layer height", "m"), "siconc": ("Sea ice area fraction", "(0 - 1)"),
    "sst": ("Sea surface temperature", "K"), "st": ("Soil temperature", "K"),
    "vsw": ("Volumetric soil moisture", "m**3 m**-3"),
    "sm": ("Soil moisture", "kg m**-3"), "o3": ("Ozone mass mixing ratio", "kg kg**-1"), "tco3": ("Total ozone", "DU"),
    "sdswrf": ("Downward short-wave radiation flux", "W m**-2"),
    "suswrf": ("Upward short-wave radiation flux", "W m**-2"),
    "sdlwrf": ("Downward long-wave radiation flux", "W m**-2"),
    "sulwrf": ("Upward long-wave radiation flux", "W m**-2"),
    "ishf": ("Sensible heat net flux", "W m**-2"), "slhtf": ("Latent heat net flux", "W m**-2"),
    "refd": ("Derived radar reflectivity", "dB"), "refc": ("Maximum/Composite radar reflectivity", "dB"),
    "swh": ("Significant height of combined wind waves and swell", "m"), "mwd": ("Mean wave direction", "degrees"),
    "mwp": ("Mean wave period", "s"), "shww": ("Significant height of wind waves", "m"),
    "strf": ("Stream function", "m**2 s**-1"), "vp": ("Velocity potential", "m**2 s**-1"),
}  # fmt: skip
_EDITION2: Final = {
    (0, 0, 0): "t", (0, 0, 2): "pt", (0, 0, 3): "papt", (0, 0, 4): "tmax", (0, 0, 5): "tmin", (0, 0, 6): "dpt",
    (0, 0, 10): "slhtf", (0, 0, 11): "ishf", (0, 0, 15): "vptmp", (0, 0, 17): "skt", (0, 1, 0): "q", (0, 1, 1): "r",
    (0, 1, 3): "pwat", (0, 1, 7): "prate", (0, 1, 8): "tp", (0, 1, 9): "lsp", (0, 1, 10): "cp", (0, 1, 11): "sde",
    (0, 1, 13): "sd", (0, 1, 22): "clwmr", (0, 1, 24): "rwmr", (0, 1, 25): "snmr", (0, 1, 29): "sf", (0, 1, 51): "tcw",
    (0, 1, 64): "tcwv", (0, 1, 83): "clwc", (0, 1, 84): "ciwc", (0, 2, 0): "wdir", (0, 2, 1): "ws", (0, 2, 2): "u",
    (0, 2, 3): "v", (0, 2, 4): "strf", (0, 2, 5): "vp", (0, 2, 8): "w", (0, 2, 9): "wz", (0, 2, 10): "absv",
    (0, 2, 12): "vo", (0, 2, 13): "d", (0, 2, 14): "pv", (0, 2, 22): "gust", (0, 3, 0): "pres", (0, 3, 1): "prmsl",
    (0, 3, 4): "z", (0, 3, 5): "gh", (0, 3, 6): "h", (0, 3, 18): "blh", (0, 4, 7): "sdswrf", (0, 4, 8): "suswrf",
    (0, 5, 3): "sdlwrf", (0, 5, 4): "sulwrf", (0, 6, 1): "tcc", (0, 6, 3): "lcc", (0, 6, 4): "mcc", (0, 6, 5): "hcc",
    (0, 6, 32): "cc", (0, 7, 6): "cape", (0, 7, 7): "cin", (0, 14, 0): "tco3", (0, 14, 1): "o3", (0, 16, 4): "refd",
    (0, 16, 5): "refc", (0, 19, 0): "vis", (0, 19, 1): "al", (2, 0, 0): "lsm", (2, 0, 1): "sr", (2, 0, 2): "st",
    (2, 0, 9): "vsw", (2, 0, 22): "sm", (2, 3, 18): "st", (10, 0, 3): "swh", (10, 0, 5): "shww", (10, 0, 14): "mwd",
    (10, 0, 15): "mwp", (10, 2, 0): "siconc", (10, 3, 0): "sst",
}  # fmt: skip
_WMO1: Final = {
    1: "pres", 2: "prmsl", 6: "z", 7: "gh", 8: "h", 10: "tco3", 11: "t", 13: "pt", 14: "papt", 15: "tmax", 16: "tmin",
    17: "dpt", 20: "vis", 31: "wdir", 32: "ws", 33: "u", 34: "v", 35: "strf", 36: "vp", 39: "w", 40: "wz", 41: "absv",
    43: "vo", 44: "d", 51: "q", 52: "r", 54: "pwat", 59: "prate", 61: "tp", 62: "lsp", 63: "cp", 65: "sd", 66: "sde",
    71: "tcc", 73: "lcc", 74: "mcc", 75: "hcc", 80: "sst", 81: "lsm", 83: "sr", 84: "al", 85: "st", 86: "sm",
    91: "siconc",
}  # fmt: skip
_ECMWF128: Final = {
    129: "z", 130: "t", 131: "u", 132: "v", 133: "q", 134: "sp", 135: "w", 138: "vo", 151: "msl", 155: "d", 157: "r",
    156: "gh", 203: "o3", 164: "tcc", 165: "u10", 166: "v10", 167: "t2m", 168: "d2m", 172: "lsm", 235: "skt", 34: "sst",
    246: "clwc", 247: "ciwc", 248: "cc", 60: "pv", 59: "cape", 136: "tcw", 137: "tcwv", 159: "blh", 186: "lcc",
    187: "mcc", 188: "hcc", 201: "mx2t", 202: "mn2t",
}  # fmt: skip
_AT_HEIGHT: Final = {
    ("t", 2.0): "t2m", ("dpt", 2.0): "d2m", ("r", 2.0): "r2", ("q", 2.0): "sh2", ("u", 10.0): "u10", ("v", 10.0): "v10",
    ("u", 100.0): "u100", ("v", 100.0): "v100",
}  # fmt: skip
_ECMWF: Final = 98


def of_edition2(discipline: int, category: int, number: int) -> Quantity:
    """Return the quantity of a message of edition 2.

    >>> of_edition2(0, 0, 0)
    Quantity(name='t', words='Temperature', units='K')
    >>> of_edition2(3, 1, 2).name
    'param_3_1_2'
    """
    return _quantity(_EDITION2.get((discipline, category, number)), f"param_{discipline}_{category}_{number}")


def of_edition1(centre: int, version: int, number: int) -> Quantity:
    """Return the quantity of a message of edition 1.

    >>> of_edition1(98, 128, 130).name, of_edition1(7, 2, 11).name, of_edition1(98, 128, 1).name
    ('t', 't', 'param_v128_1')
    """
    if version == 128 and centre == _ECMWF:
        name = _ECMWF128.get(number)
    else:
        name = _WMO1.get(number) if version < 128 else None
    return _quantity(name, f"param_v{version}_{number}")


def _quantity(name: str | None, other: str) -> Quantity:
    return Quantity(other, "", "") if name is None else Quantity(name, *_Q[name])


def at_level(quantity: Quantity, kind: str, level: float) -> Quantity:
    """Return the quantity at a level, where that has a name of its own: temperature at 2 m, pressure at the surface."""
    name = _AT_HEIGHT.get((quantity.name, level)) if kind == "heightAboveGround" else None
    if quantity.name == "pres" and kind == "surface":
        name = "sp"
    return quantity if name is None else Quantity(name, *_Q[name])


class Level(NamedTuple):
    """A kind of level: its name, its unit, and by what stored numbers are multiplied."""

    name: str
    units: str = ""
    factor: float = 1.0


LEVELS2: Final = {
    1: Level("surface"), 2: Level("cloudBase"), 3: Level("cloudTop"), 4: Level("isothermZero"), 6: Level("maxWind"),
    7: Level("tropopause"), 8: Level("nominalTop"), 10: Level("atmosphere"), 20: Level("isothermal", "K"),
    100: Level("isobaricInhPa", "hPa", 0.01), 101: Level("meanSea"), 102: Level("heightAboveSea", "m"),
    103: Level("heightAboveGround", "m"), 104: Level("sigma"), 105: Level("hybrid"),
    106: Level("depthBelowLand", "m"), 107: Level("theta", "K"), 108: Level("pressureFromGround", "hPa", 0.01),
    109: Level("potentialVorticity", "K m**2 kg**-1 s**-1"), 111: Level("eta"), 151: Level("soilLayer"),
    160: Level("depthBelowSea", "m"), 168: Level("oceanModel"), 200: Level("atmosphereSingleLayer"),
}  # fmt: skip
"""Kinds of levels of edition 2."""
LEVELS1: Final = {
    1: Level("surface"), 2: Level("cloudBase"), 3: Level("cloudTop"), 4: Level("isothermZero"), 6: Level("maxWind"),
    7: Level("tropopause"), 8: Level("nominalTop"), 100: Level("isobaricInhPa", "hPa"), 102: Level("meanSea"),
    103: Level("heightAboveSea", "m"), 105: Level("heightAboveGround", "m"), 107: Level("sigma", "", 0.0001),
    109: Level("hybrid"), 111: Level("depthBelowLand", "m", 0.01), 113: Level("theta", "K"),
    115: Level("pressureFromGround", "hPa"), 117: Level("potentialVorticity", "K m**2 kg**-1 s**-1", 1e-9),
    160: Level("depthBelowSea", "m"), 200: Level("atmosphere"), 201: Level("ocean"),
}  # fmt: skip
"""Kinds of levels of edition 1 whose number has two bytes."""
LAYERS1: Final = {
    101: Level("isobaricLayer", "hPa", 10.0), 104: Level("heightAboveSeaLayer", "m", 100.0),
    106: Level("heightAboveGroundLayer", "m", 100.0), 108: Level("sigmaLayer", "", 0.01), 110: Level("hybridLayer"),
    112: Level("depthBelowLandLayer", "m", 0.01), 114: Level("thetaLayer", "K"),
    116: Level("pressureFromGroundLayer", "hPa"),
}  # fmt: skip
"""Kinds of layers of edition 1: one byte for the top, and one for the bottom."""
STATISTICS: Final = {
    0: "avg", 1: "accum", 2: "max", 3: "min", 4: "diff", 5: "rms", 6: "sd", 7: "cov", 8: "sdiff", 9: "ratio",
    10: "stdanom", 11: "sum",
}  # fmt: skip
"""What was done with values over time, in edition 2."""
