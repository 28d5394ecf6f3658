"""What programs make of archives whose files differ: ``python -m benchmarks.archives``.

Each case writes two hierarchies with zarr-python and xarray, along one time axis. Each program joins them and reads
`temp`. It is right, refuses, or gives other values than the hierarchies have. Some differences have no right answer;
the table shows which programs report them. TensorStore joins arrays in the order of their paths, and knows no
attributes: its numbers are decoded by the attributes of the first array.

It runs where the benchmarks run, as all programs are there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

LENGTH: Final = 60
_DATA: Final = 280 + np.arange(3 * LENGTH * 4, dtype="f8").reshape(3 * LENGTH, 4) / 4


class Case(NamedTuple):
    """An archive.

    Attributes
    ----------
    name : str
        What differs.
    lay : callable
        Makes it in a directory, and returns the paths in the order of time.
    expected : ndarray or None
        What its elements mean; None if the archive has no right answer.
    """

    name: str
    lay: Callable[[Path], list[Path]]
    expected: NDArray[Any] | None = _DATA[: 2 * LENGTH]


CASES: Final[list[Case]] = []


def part(
    path: Path,
    number: int,
    *,
    start: int | None = None,
    length: int = LENGTH,
    epoch: str = "2020-01-01",
    zarr_format: int = 3,
    attributes: dict[str, Any] | None = None,
    **encoding: Any,
) -> Path:
    """Write one hierarchy: days from `start` on."""
    first = number * LENGTH if start is None else start
    days = np.arange(first, first + length)
    shift = (np.datetime64(epoch) - np.datetime64("2020-01-01")).astype(int)
    units = {"units": f"days since {epoch}"}
    dataset = xr.Dataset(
        {"temp": (("time", "x"), _DATA[first : first + length], {"units": "K", **(attributes or {})})},
        {"time": ("time", days - int(shift), units)},
    )
    encodings = {"temp": {"chunks": (20, 4), **encoding}}
    dataset.to_zarr(path, mode="w", zarr_format=zarr_format, consolidated=False, encoding=encodings)
    return path


def case(name: str, *, has_answer: bool = True, count: int = 2) -> Callable[[Callable[[Path], list[Path]]], None]:
    """Add an archive to the table."""

    def added(lay: Callable[[Path], list[Path]]) -> None:
        CASES.append(Case(name, lay, _DATA[: count * LENGTH] if has_answer else None))

    return added


@case("nothing")
def _(place: Path) -> list[Path]:
    return [part(place / f"{number}.zarr", number) for number in range(2)]


@case("codecs")
def _(place: Path) -> list[Path]:
    codecs = (zarr.codecs.ZstdCodec(), zarr.codecs.GzipCodec())
    return [part(place / f"{number}.zarr", number, compressors=[codec]) for number, codec in enumerate(codecs)]


@case("chunk shapes")
def _(place: Path) -> list[Path]:
    shapes = ((20, 4), (30, 2))
    return [part(place / f"{number}.zarr", number, chunks=shape) for number, shape in enumerate(shapes)]


@case("the last chunk of a file is partial")
def _(place: Path) -> list[Path]:
    return [part(place / f"{number}.zarr", number, chunks=(25, 4)) for number in range(2)]


@case("Zarr v2 and v3")
def _(place: Path) -> list[Path]:
    return [part(place / f"{number}.zarr", number, zarr_format=2 + number) for number in range(2)]


@case("byte order")
def _(place: Path) -> list[Path]:
    types = ("<f8", ">f8")
    return [part(place / f"{number}.zarr", number, zarr_format=2, dtype=dtype) for number, dtype in enumerate(types)]


@case("data types (float32, float64)")
def _(place: Path) -> list[Path]:
    return [part(place / f"{number}.zarr", number, dtype=dtype) for number, dtype in enumerate(("f4", "f8"))]


def packing(number: int) -> dict[str, Any]:
    """Return an encoding that differs from file to file."""
    return {"dtype": "i2", "scale_factor": (0.25, 0.125)[number], "add_offset": (300.0, 310.0)[number]}


@case("packing (`scale_factor`, `add_offset`)")
def _(place: Path) -> list[Path]:
    return [part(place / f"{number}.zarr", number, **packing(number)) for number in range(2)]


@case("packed and not packed")
def _(place: Path) -> list[Path]:
    return [part(place / "0.zarr", 0, **packing(0)), part(place / "1.zarr", 1)]


@case("shards")
def _(place: Path) -> list[Path]:
    return [part(place / "0.zarr", 0, shards=(40, 4)), part(place / "1.zarr", 1)]


@case("units of time (days since ...)")
def _(place: Path) -> list[Path]:
    epochs = ("2020-01-01", "2020-02-01")
    return [part(place / f"{number}.zarr", number, epoch=epoch) for number, epoch in enumerate(epochs)]


@case("names of files, not in the order of time")
def _(place: Path) -> list[Path]:
    return [part(place / f"{'ba'[number]}.zarr", number) for number in range(2)]


@case("units (K, degC)", has_answer=False)
def _(place: Path) -> list[Path]:
    units = ("K", "degC")
    return [part(place / f"{number}.zarr", number, attributes={"units": unit}) for number, unit in enumerate(units)]


@case("two files have the same days", has_answer=False)
def _(place: Path) -> list[Path]:
    return [part(place / "0.zarr", 0), part(place / "1.zarr", 1, start=LENGTH - 5)]


@case("a file is missing", has_answer=False)
def _(place: Path) -> list[Path]:
    return [part(place / "0.zarr", 0), part(place / "2.zarr", 2)]


# -- programs --------------------------------------------------------------------


def by_omnizarr(paths: list[Path]) -> NDArray[Any]:
    """Read it through xarray's engine of omnizarr."""
    with xr.open_dataset([os.fspath(path) for path in paths], engine="omnizarr", combine="time") as found:
        return found["temp"].values


def by_xarray(paths: list[Path]) -> NDArray[Any]:
    """Read it with `open_mfdataset`, as it is by default."""
    with xr.open_mfdataset(sorted(paths), engine="zarr", consolidated=False) as found:
        return found["temp"].values


def by_tensorstore(paths: list[Path]) -> NDArray[Any]:
    """Read it with `tensorstore.concat`, decoded by the attributes of the first array."""
    import tensorstore

    def opened(path: Path) -> Any:
        driver = "zarr3" if (path / "temp" / "zarr.json").exists() else "zarr"
        return tensorstore.open(
            {"driver": driver, "kvstore": {"driver": "file", "path": f"{path / 'temp'}/"}}
        ).result()  # fmt: skip

    stored = np.asarray(tensorstore.concat([opened(path) for path in sorted(paths)], axis=0).read().result())
    attributes = dict(zarr.open_array(min(paths) / "temp", mode="r").attrs)
    return stored * attributes.get("scale_factor", 1) + attributes.get("add_offset", 0)


def by_virtualizarr(paths: list[Path]) -> NDArray[Any]:
    """Read it with `open_virtual_mfdataset` and xarray."""
    import virtualizarr
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import manifests, parsers

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    urls = [f"file://{path}" for path in sorted(paths)]
    virtual = virtualizarr.open_virtual_mfdataset(
        urls, registry=registry, parser=parsers.ZarrParser(), combine="by_coords", loadable_variables=["time"]
    )
    group = manifests.ManifestGroup(arrays={"temp": virtual["temp"].data}, attributes={})
    stored = zarr.open_group(manifests.ManifestStore(group, registry=registry), mode="r")["temp"]
    return xr.conventions.decode_cf_variable(
        "temp", xr.Variable(("time", "x"), np.asarray(stored[...]), dict(virtual["temp"].attrs))
    ).values


PROGRAMS: Final[dict[str, Callable[[list[Path]], NDArray[Any]]]] = {
    "omnizarr": by_omnizarr,
    "xarray, dask": by_xarray,
    "TensorStore": by_tensorstore,
    "VirtualiZarr": by_virtualizarr,
}


def outcome(read: Callable[[list[Path]], NDArray[Any]], archive: Case, paths: list[Path]) -> str:
    """Return what a program makes of an archive."""
    try:
        found = read(paths)
    except Exception as error:  # noqa: BLE001 - whatever a program says
        return "refuses" if archive.expected is not None else f"says it ({type(error).__name__})"
    if archive.expected is None:
        return "**says nothing**"
    if found.shape != archive.expected.shape:
        return "**another shape**"
    return "right" if np.allclose(found, archive.expected, rtol=1e-6, atol=1e-3) else "**wrong values**"


def table() -> str:
    """Return the table in Markdown."""
    rows = [f"| what differs | {' | '.join(PROGRAMS)} |", f"|---|{'---|' * len(PROGRAMS)}"]
    for archive in CASES:
        place = Path(tempfile.mkdtemp())
        try:
            paths = archive.lay(place)
            cells = [outcome(read, archive, paths) for read in PROGRAMS.values()]
        finally:
            shutil.rmtree(place)
        rows.append(f"| {archive.name} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(table())
