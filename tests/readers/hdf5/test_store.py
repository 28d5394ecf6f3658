"""HDF5 and netCDF-4 files as hierarchies, compared with h5py, and with xarray's own engines."""

import os
import pickle
import shutil
import tracemalloc
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr import cli
from omnizarr.errors import ChecksumError, ChunkError, MetadataError, NodeNotFoundError, ReadOnlyError
from omnizarr.readers.hdf5.source import Source
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import LocalStore, MemoryStore, MetricsStore, resolve, verbs
from tests.readers.hdf5 import samples

DATA = Path(__file__).parents[2] / "netcdf" / "data" / "files"


def opened(path):
    return omnizarr.open_group(HDF5Store(LocalStore(path.parent, read_only=True), path.name), mode="r")


def values_of(dataset):
    """Return the elements of a dataset of h5py, texts as str."""
    found = dataset[...]
    if h5py.check_string_dtype(dataset.dtype) and found.dtype == object:
        return [each.decode() for each in np.ravel(found)]
    return found


def check_same(path):
    """Check that each dataset is shown with the elements that h5py reads, or has a note."""
    root = opened(path)
    named = {note.split(":")[0].lstrip("/") for note in root.store.notes}
    seen = set()
    with h5py.File(path) as theirs:
        for name, node in root.members(max_depth=None):
            seen.add(name)
            if isinstance(node, omnizarr.Array):
                expected, found = values_of(theirs[name]), node[...]
                if h5py.check_ref_dtype(theirs[name].dtype):
                    assert [theirs[each] for each in found.ravel()] == [theirs[each] for each in expected.ravel()]
                elif found.dtype == object:
                    pairs = zip(found.ravel(), expected.ravel(), strict=True)
                    assert all(ours.dtype == each.dtype and np.array_equal(ours, each) for ours, each in pairs), name
                elif isinstance(expected, list):
                    assert np.ravel(found).tolist() == expected, name
                else:
                    assert found.dtype == expected.dtype.newbyteorder("=") or found.dtype.names, name
                    for field in expected.dtype.names or (...,):
                        np.testing.assert_array_equal(found[field], expected[field], err_msg=name)

        def visit(name, each):
            is_dimension = each.attrs.get("NAME", b"").startswith(b"This is a netCDF dimension")
            assert is_dimension or name in seen | named, name

        theirs.visititems(visit)
    return root


@pytest.mark.parametrize("version", samples.VERSIONS, ids="-".join)
def test_elements_are_those_of_h5py(version, tmp_path):
    samples.write(tmp_path / "x.h5", version, userblock_size=1024 if version[0] == "v108" else 0)
    root = check_same(tmp_path / "x.h5")
    assert sorted(root.store.notes) == [
        "/enumeration: shown as numbers, of which the file names some: A = 1, B = 2",
        "/external: not shown: it leads to '/x' in the file 'other.h5'",
        "/group/circle: not shown: another name of the group /",
        "/nowhere: not shown: it leads to '/missing', which does not exist",
        "/null: not shown: it has no elements, not even a shape (a null dataspace)",
        "/soft: not shown: another name of the group /group/member 3",
        "/the group: not shown: another name of the group /group",
        "/type: not shown: a named datatype, which has no elements",
    ]
    assert root.attrs.asdict() == {
        "text": "Wärme",
        "numbers": [[0, 1, 2], [3, 4, 5]],
        "boolean": True,
        "complex": [1, 2],
        "empty": [],
        "texts": ["a", "bb", ""],
        "fixed text": "fixed",
        "none": [],
    }


@pytest.mark.parametrize("name", ["everything.nc", "h5netcdf.nc", "netcdf4_classic.nc", "plain.h5"])
def test_elements_of_netcdf_files_are_those_of_h5py(name):
    check_same(DATA / name)


FILTERS = {
    "zlib": {"compression": "gzip"},
    "shuffle": {"compression": "gzip", "shuffle": True},
    "checksum": {"fletcher32": True},
    "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "lzf and shuffle": {"compression": "lzf", "shuffle": True},
    "lzf and checksum": {"compression": "lzf", "shuffle": True, "fletcher32": True},
    "szip": {"compression": "szip"},
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("dtype", ["i2", ">f8", "S3"])
def test_filters_are_undone(name, dtype, tmp_path):
    if name == "szip":
        pytest.importorskip("imagecodecs", reason="szip needs imagecodecs")
        if dtype == "S3":
            pytest.skip("szip takes no elements of 3 bytes")
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        data = (np.arange(700) // 5).reshape(70, 10).astype(dtype)
        theirs.create_dataset("x", data=data, chunks=(16, 8), **FILTERS[name])
    check_same(tmp_path / "x.h5")


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
@pytest.mark.parametrize("fill", [None, 5])
@pytest.mark.parametrize("dtype", ["i2", ">i4", "i8", "u1", ">u8", "f4", ">f8"])
def test_scaleoffset_is_undone(dtype, fill, compression, tmp_path):
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        for width in (1, 100, 30000):
            data = (rng.random((40, 30)) * width).astype("u1" if dtype == "u1" else "i8").astype(dtype)
            data[3:5] = 5
            scale = 2 if "f" in dtype else 0
            theirs.create_dataset(
                f"{width}", data=data, chunks=(7, 30), scaleoffset=scale, fillvalue=fill, compression=compression
            )
    check_same(tmp_path / "x.h5")


@pytest.mark.parametrize("filters", [{"compression": "gzip", "shuffle": True}, {"compression": "lzf", "shuffle": True}])
def test_filters_that_chunks_skip_are_not_undone(filters, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        dataset = theirs.create_dataset("x", (6,), "i4", chunks=(2,), **filters)
        dataset.id.write_direct_chunk((0,), np.array([1, 2], "i4").tobytes(), filter_mask=0b11)
        dataset[2:] = [3, 4, 5, 6]
    check_same(tmp_path / "x.h5")


def test_changed_bytes_fail_the_checksum(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as theirs:
        theirs.create_dataset("x", data=np.arange(100), chunks=(50,), fletcher32=True)
        offset = theirs["x"].id.get_chunk_info(1).byte_offset
    raw = bytearray(path.read_bytes())
    raw[offset + 9] ^= 1
    path.write_bytes(raw)
    array = opened(path)["x"]
    assert array[:50].tolist() == list(range(50))
    with pytest.raises(ChecksumError, match="c/1"):
        array[50:]


def test_broken_lzf_is_an_error(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as theirs:
        theirs.create_dataset("x", data=np.zeros(1000), compression="lzf")
        info = theirs["x"].id.get_chunk_info(0)
    raw = bytearray(path.read_bytes())
    raw[info.byte_offset : info.byte_offset + info.size] = b"\xff" * info.size
    path.write_bytes(raw)
    with pytest.raises(ChunkError, match="lzf"):
        opened(path)["x"][...]


def test_compounds_with_gaps_or_two_orders_are_packed(tmp_path):
    dtype = np.dtype({"names": ["a", "b"], "formats": ["u1", ">i4"], "offsets": [0, 4], "itemsize": 16})
    mixed = [("a", "<i4"), ("b", ">i4")]
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        theirs["gaps"] = np.array([(1, 2), (3, 4)], dtype)
        theirs.create_dataset("mixed", data=np.array([(1, 2), (3, 4)], mixed), chunks=(1,), compression="gzip")
    root = check_same(tmp_path / "x.h5")
    assert root["gaps"].dtype.itemsize == 5


def test_times_of_h5py_are_times(tmp_path):
    times = np.array(["2020-01-01", "NaT"], "M8[s]")
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        theirs["t"] = times.astype(h5py.opaque_dtype(times.dtype))
    assert opened(tmp_path / "x.h5")["t"].dtype == "M8[s]"
    np.testing.assert_array_equal(opened(tmp_path / "x.h5")["t"][...], times)


def test_path_opens_for_every_door(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as theirs:
        theirs["a/b"] = np.arange(5.0)
        theirs["a/b"].attrs["units"] = "K"
    root = omnizarr.open(path)
    assert root["a/b"][1:3].tolist() == [1, 2]
    assert root["a/b"].attrs["units"] == "K"
    assert omnizarr.open_group(path, mode="r")["a"].name == "/a"
    assert omnizarr.open_array(path, path="a/b", mode="r").shape == (5,)
    assert pickle.loads(pickle.dumps(root))["a/b"][4] == 4
    path.rename(tmp_path / "strange")
    assert list(omnizarr.open(tmp_path / "strange")) == ["a"]
    with pytest.raises(ReadOnlyError, match="can only be read"):
        omnizarr.open(tmp_path / "strange", mode="r+")


def test_info_names_what_is_not_shown(tmp_path, capsys):
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        theirs["null"], theirs["x"] = h5py.Empty("i4"), [1, 2]
    assert cli.main(["info", str(tmp_path / "x.h5")]) == 0
    assert "note: /null: not shown: it has no elements" in capsys.readouterr().out


def test_url_opens(tmp_path, http_server):
    place = http_server.fresh()
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        theirs.create_dataset("x", data=np.arange(1000), chunks=(100,), compression="gzip")
    shutil.copy(tmp_path / "x.h5", place.directory)
    assert omnizarr.open(f"{place.url}/x.h5", mode="r")["x"][::333].tolist() == [0, 333, 666, 999]


def test_opening_takes_few_requests(tmp_path, http_server):
    place = http_server.fresh()
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        for number in range(20):
            theirs.create_dataset(f"{number}", data=np.arange(50000), chunks=(5000,)).attrs["n"] = number
    shutil.copy(tmp_path / "x.h5", place.directory)
    metrics = MetricsStore(resolve(place.url)[0])
    assert len(list(omnizarr.open_group(HDF5Store(metrics, "x.h5"), mode="r"))) == 20
    assert metrics.report().total.requests < 12


def test_dimensions_are_those_of_scales(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        theirs["x"], theirs["data"], theirs["other"] = np.arange(3), np.zeros((2, 3)), np.zeros((2, 3))
        theirs["x"].make_scale("x")
        theirs["data"].dims[1].attach_scale(theirs["x"])
        theirs["other"].dims[0].label = "row"
    root = opened(tmp_path / "x.h5")
    names = {name: array.dimension_names for name, array in root.members()}
    assert names == {"x": ("x",), "data": (None, "x"), "other": ("row", None)}
    assert all(not array.attrs.asdict() for _, array in root.members())


def test_file_that_changes_is_an_error(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as theirs:
        theirs["x"] = np.arange(5)
    array = opened(path)["x"]
    with h5py.File(path, "a") as theirs:
        theirs["y"] = np.arange(500)
    with pytest.raises(omnizarr.errors.StaleError):
        array[...]


def test_truncated_file_is_an_error(tmp_path):
    samples.write(tmp_path / "x.h5", ("earliest", "latest"))
    raw = (tmp_path / "x.h5").read_bytes()
    for length in (9, 100, len(raw) - 1):
        with pytest.raises(MetadataError):
            HDF5Store(MemoryStore({"x.h5": raw[:length]}), "x.h5")
    with pytest.raises(NodeNotFoundError):
        HDF5Store(MemoryStore({}), "x.h5")


def test_huge_grid_is_read_without_a_place_for_each_chunk(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        theirs.create_dataset("x", (10**9, 10**6), "u1", chunks=(1, 1))[5, 7] = 3
    array = opened(tmp_path / "x.h5")["x"]
    assert array[5, 6:9].tolist() == [0, 3, 0]


# -- xarray -------------------------------------------------------------------------

xarray = pytest.importorskip("xarray", reason="xarray is not installed")

UNLIKE = {"o", "r", "v", "x2"}
"""Variables of everything.nc that differ: a compound with a list, opaque bytes (which xarray's engines leave out),
lists of variable length, and one that netCDF4-python reads with the length of another dimension of the same name."""


def same(path, engine, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xarray.open_dataset(path, engine=engine, **options) as expected:
            expected.load()
        found = xarray.open_dataset(path, engine="omnizarr", **options).load()
    expected, found = (each.drop_vars(UNLIKE & set(each.variables)) for each in (expected, found))
    xarray.testing.assert_identical(expected, found)
    for name, each in expected.items():
        assert each.dtype == found[name].dtype or (each.dtype.kind in "OU" and found[name].dtype.kind in "OUT"), name


@pytest.mark.parametrize("decoded", [True, False])
@pytest.mark.parametrize("group", ["/", "/g", "/g/h"])
def test_netcdf_is_the_same_in_xarray(group, decoded):
    same(DATA / "everything.nc", "netcdf4", group=group, mask_and_scale=decoded, decode_times=decoded)


@pytest.mark.parametrize(
    ("name", "engine"), [("filters.nc", "netcdf4"), ("h5netcdf.nc", "netcdf4"), ("h5netcdf.nc", "h5netcdf")]
)
def test_files_of_every_engine_are_the_same_in_xarray(name, engine):
    same(DATA / name, engine)


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_what_xarray_writes_is_read_back(engine, tmp_path):
    times = np.array(["2020-01-01", "2020-01-02", "2020-02-01"], "M8[ns]")
    data = xarray.Dataset(
        {
            "t": (("time", "x"), np.array([[1.5, np.nan], [2, 3], [4, 5]], "f4"), {"units": "K", "levels": [1, 2]}),
            "packed": (("x",), np.array([1.5, 2.5])),
            "name": (("x",), np.array(["ab", "cde"], object)),
            "chars": (("x",), np.array([b"ab", b"cd"])),
            "flag": (("x",), np.array([True, False])),
            "scalar": ((), np.int16(3)),
        },
        {"time": times, "x": [10.0, 20.0], "label": ("x", ["a", "b"])},
        {"title": "Wärme", "numbers": np.arange(3, dtype="i2"), "one": np.float32(0.1)},
    )
    packing = {"scale_factor": np.float32(0.5), "add_offset": np.float32(1), "dtype": "i2", "_FillValue": -1}
    encoding = {"packed": packing, "t": {"zlib": True, "chunksizes": (2, 1)}}
    data.to_netcdf(tmp_path / "x.nc", engine=engine, encoding=encoding, unlimited_dims=["time"])
    for other in ("netcdf4", "h5netcdf"):
        for decoded in (True, False):
            same(tmp_path / "x.nc", other, mask_and_scale=decoded, decode_times=decoded)


def _versions(tmp_path):
    """Two files of one layout and size, with other values."""
    found = []
    for number in (1, 2):
        path = tmp_path / f"{number}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("a", data=np.full(40, number, "i4"), chunks=(10,))
        found.append(path.read_bytes())
    return found


@pytest.mark.parametrize("kind", ["object", "directory"])
def test_file_that_is_replaced_before_its_first_chunk_is_read_is_an_error(kind, tmp_path):
    first, second = _versions(tmp_path)
    assert len(first) == len(second)
    if kind == "object":
        obstore = pytest.importorskip("obstore", reason="no obstore")
        store = omnizarr.storage.ObjectStore(obstore.store.MemoryStore())
    else:
        store = LocalStore(tmp_path / "d")
    store.set("x.h5", first)
    array = omnizarr.open(HDF5Store(store, "x.h5"))["a"]
    assert omnizarr.open(HDF5Store(store, "x.h5"))["a"][0] == 1
    sent = pickle.dumps(array) if kind == "directory" else None
    store.set("x.h5", second)
    if kind == "directory":  # a file system may give both the same time
        os.utime(tmp_path / "d" / "x.h5", (1, 1))
    with pytest.raises(omnizarr.errors.StaleError):
        array[...]
    if sent is not None:
        with pytest.raises(omnizarr.errors.StaleError):
            pickle.loads(sent)[...]
    assert omnizarr.open(HDF5Store(store, "x.h5"))["a"][0] == 2


@pytest.mark.parametrize(
    ("libver", "maxshape"), [("earliest", None), ("latest", None), ("latest", (None, 200)), ("latest", (None, None))]
)
def test_an_index_of_chunks_takes_16_bytes_for_each(tmp_path, monkeypatch, libver, maxshape):
    monkeypatch.setattr("omnizarr.readers.hdf5.source._CACHED_NEAR", 0)
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("v", data=np.ones((200, 200), "u1"), chunks=(1, 1), maxshape=maxshape)
    store = omnizarr.open(path, mode="r").store
    tracemalloc.start()
    try:
        manifest = verbs.chunks(store, "v/").manifest
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(manifest) == 40_000
    assert manifest.nbytes == 16 * 40_000
    assert kept < 1.3 * manifest.nbytes + (1 << 17)  # and one or two blocks of the file


@pytest.mark.parametrize("is_local", [True, False])
def test_elements_are_read_while_another_thread_begins_new_blocks(tmp_path, monkeypatch, is_local):
    """A chunk whose bytes are not found would be read as one that is missing: its elements would be fill values."""
    texts = np.array([f"text {number}" for number in range(20_000)], dtype=object)
    with h5py.File(tmp_path / "x.h5", "w") as theirs:
        theirs.create_dataset("x", data=texts, chunks=(10_000,), dtype=h5py.string_dtype())
    store = LocalStore(tmp_path) if is_local else MemoryStore({"x.h5": (tmp_path / "x.h5").read_bytes()})
    array = omnizarr.open_group(HDF5Store(store, "x.h5"), mode="r")["x"]
    keep = Source._keep

    def keep_and_begin_anew(self, first, data):
        keep(self, first, data)
        self._blocks = {}

    monkeypatch.setattr(Source, "_keep", keep_and_begin_anew)
    assert (array[...] == texts).all()
