"""Which program opens which format, by itself and through omnizarr: the table of docs/interop.md, cell by cell.

The data is what other programs wrote: a row of `SOURCES` is a case of the corpus, or a dataset by netCDF-C.
"""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import omnizarr
from omnizarr.interop.dask import from_zarr
from omnizarr.interop.zarr_python import to_zarr_python
from omnizarr.storage import LocalStore
from omnizarr.web.application import application
from omnizarr.web.keys import Keys
from omnizarr.web.serving import running
from tests.servers import need_package

zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "interop.md"
ITSELF, THROUGH = "itself", "through omnizarr"
"""What a cell of the table says."""
SOURCES = {
    "v0": ("corpus/zarr0/tree", "temperature"),
    "v1": ("corpus/zarr1/tree", "temperature"),
    "v2": ("corpus/zarr2/groups", "a/b c/ü/x"),
    "draft 2019": ("corpus/zarrita/2020-10-16_1e82e9e", "compressed"),
    "draft 2020": ("corpus/draft_zarr/groups", "x.array/array"),
    "v3": ("corpus/zarr3/groups", "a/b c/ü/x"),
    "NCZarr": ("netcdf/data/layouts/D-4.9.3", "d"),
}
"""Of each format, where a hierarchy is and which array is read."""
ZARRITA = """
const { open, get, root, FetchStore } = await import(process.argv[1]);
const [url, path, kind] = process.argv.slice(2);
const at = root(new FetchStore(url)).resolve(path);
const array = await (kind === "any" ? open : open[kind])(at, { kind: "array" });
const { data, shape } = await get(array);
console.log(JSON.stringify({ data: Array.from(data, Number), shape }));
"""

GDAL = """
import json, sys, rasterio
with rasterio.open(sys.argv[1]) as dataset:
    print(json.dumps(dataset.read(1).tolist()))
"""


def by_xarray(place, path, engine):
    import xarray

    group, _, name = path.rpartition("/")
    with xarray.open_dataset(place, engine=engine, group=group or None, mask_and_scale=False) as dataset:
        return dataset[name].values


def by_anndata(group, path):
    from anndata.io import read_elem

    return read_elem(group[path])


def by_ome_zarr(place, path):
    from ome_zarr.io import ZarrLocation

    return np.asarray(ZarrLocation(place).load(path))


def by_tensorstore(kvstore, path, driver):
    tensorstore = pytest.importorskip("tensorstore", reason="tensorstore is not installed")
    kvstore = {**kvstore, "path": f"{kvstore.get('path', '')}/{path}/"}
    return tensorstore.open({"driver": driver, "kvstore": kvstore}, open=True, read=True).result().read().result()


def by_gdal(place, path=None):
    """Return what GDAL reads, in a process of its own: rasterio does not let other threads, such as a server, run."""
    pytest.importorskip("rasterio", reason="rasterio is not installed")
    command = [sys.executable, "-W", "ignore", "-c", GDAL, f'ZARR:"{place}"' + (f":/{path}" if path else "")]
    return np.array(json.loads(answer_of(command)))


def by_zarrita(url, path, kind):
    module = need_package("zarrita") / "dist" / "src" / "index.js"
    command = ["node", "--input-type=module", "-e", ZARRITA, str(module), url, f"/{path}", kind]
    found = json.loads(answer_of(command))
    return np.array(found["data"]).reshape(found["shape"])


def answer_of(command):
    """Return what a program prints; raise OSError if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise OSError(done.stderr)
    return done.stdout


def raw_zarrita(place, path):
    """Return what zarrita.js reads of a directory unchanged; it gets no information about the format."""
    with running(Keys(LocalStore(place))) as url:
        return by_zarrita(url, path, "any")


def viewed(reader, *, zarr_format=3):
    """Return a reader of the live view of a hierarchy, over HTTP."""

    def read(place, path):
        with running(application(place, zarr_format=zarr_format)) as url:
            return reader(url, path)

    return read


READERS = {
    "xarray": (
        lambda place, path: by_xarray(place, path, "zarr"),
        lambda place, path: by_xarray(place, path, "omnizarr"),
    ),
    "zarr-python": (
        lambda place, path: zarr.open_group(place, mode="r")[path][...],
        lambda place, path: to_zarr_python(omnizarr.open_group(place, mode="r"))[path][...],
    ),
    "dask": (
        lambda place, path: dask_array().from_zarr(place, component=path).compute(),
        lambda place, path: from_zarr(omnizarr.open_group(place, mode="r")[path]).compute(),
    ),
    "anndata": (
        lambda place, path: by_anndata(zarr.open_group(place, mode="r"), path),
        lambda place, path: by_anndata(to_zarr_python(omnizarr.open_group(place, mode="r")), path),
    ),
    "ome-zarr": (by_ome_zarr, viewed(by_ome_zarr)),
    "TensorStore": (
        lambda place, path: by_tensorstore({"driver": "file", "path": place}, path, "auto"),
        viewed(lambda url, path: by_tensorstore({"driver": "http", "base_url": url}, path, "zarr3")),
    ),
    "GDAL": (by_gdal, viewed(lambda url, path: by_gdal(f"/vsicurl/{url}/{quote(path)}"), zarr_format=2)),
    "zarrita.js": (raw_zarrita, viewed(lambda url, path: by_zarrita(url, path, "v3"))),
}
"""How each program reads an array, given the directory of the hierarchy and a path: by itself, and through omnizarr."""


def dask_array():
    return pytest.importorskip("dask.array", reason="dask is not installed")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Return a function that unpacks a hierarchy, once."""
    places = {}

    def unpack(name):
        if name not in places:
            case = TESTS / SOURCES[name][0]
            archive = case / "store.zip" if case.is_dir() else case.with_name(f"{case.name}.zip")
            place = tmp_path_factory.mktemp("source")
            with zipfile.ZipFile(archive) as files:
                files.extractall(place)
            places[name] = str(place)
        return places[name]

    return unpack


def values_of(name):
    """Return the values that the program wrote."""
    case, path = SOURCES[name]
    if name == "NCZarr":
        return np.array([1.0, 2.0, 3.0])  # `d` in typed.cdl
    with np.load(TESTS / case / "expected.npz") as arrays:
        return arrays[f"{path}/values"]


def table():
    """Return the cells of the table in the manual, by program and format."""
    text = PAGE.read_text(encoding="utf-8").partition("## Who opens what")[2].partition("\n## ")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line
    ]
    return {(row[0], name): cell for row in rows for name, cell in zip(head[1:], row[1:], strict=True)}


def test_the_table_has_every_program_and_format():
    assert set(table()) == {(reader, name) for reader in READERS for name in SOURCES}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.sampled(3)
def test_a_program_opens_a_format_as_the_table_says(reader, name, unpacked):
    itself, through = READERS[reader]
    place, path, values = unpacked(name), SOURCES[name][1], values_of(name)
    np.testing.assert_array_equal(np.asarray(through(place, path)).reshape(values.shape), values)
    assert table()[reader, name] == (ITSELF if reads(itself, place, path, values) else THROUGH)


def reads(reader, place, path, values):
    """Return whether a program opens an array, and reads its values."""
    try:
        found = reader(place, path)
    except pytest.skip.Exception:
        raise
    except Exception:  # noqa: BLE001 - each program has its own
        return False
    return np.array_equal(np.asarray(found).reshape(values.shape), values)
