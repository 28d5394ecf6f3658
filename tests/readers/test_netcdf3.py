"""netCDF-3 files, opened in place: netCDF4-python and SciPy say what is in them."""

import itertools
import pickle
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.cli import main
from omnizarr.errors import MetadataError, ReadOnlyError, StaleError, StoreError
from omnizarr.readers import netcdf3
from omnizarr.stores.kinds import OFFERED_READERS
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.opening import Contents
from tests import static

nc4 = pytest.importorskip("netCDF4", reason="netCDF4-python writes the files, and says what is in them")

FILES = Path(__file__).parents[1] / "netcdf" / "data" / "files"
CLASSIC = [FILES / name for name in ("classic.nc", "data64.nc", "offset64.nc", "scipy.nc")]
FORMATS = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]
TYPES = {"NETCDF3_64BIT_DATA": ["i1", "S1", "i2", "i4", "f4", "f8", "u1", "u2", "u4", "i8", "u8"]}
OLD_TYPES = ["i1", "S1", "i2", "i4", "f4", "f8"]


def values_of(dtype, shape, seed):
    random = np.random.default_rng(seed)
    if dtype == "S1":
        return random.integers(65, 91, shape).astype("u1").view("S1").reshape(shape)
    if dtype.startswith("f"):
        return random.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def written(path, file_format, variables, *, records=5, fill=True):
    """Write a file. `variables`: for each name its data type and dimensions, "t" is that of records."""
    with nc4.Dataset(path, "w", format=file_format) as file:
        for name, size in {"t": None, "x": 3, "y": 4, "z": 2}.items():
            file.createDimension(name, size)
        file.title = "a file"
        file.setncattr("numbers", np.array([1, -2], "i2"))
        for number, (name, (dtype, dimensions)) in enumerate(variables.items()):
            variable = file.createVariable(name, dtype, dimensions)
            variable.set_auto_maskandscale(False)
            variable.setncattr("factor", np.float32(0.1))
            shape = tuple(records if each == "t" else {"x": 3, "y": 4, "z": 2}[each] for each in dimensions)
            if records or "t" not in dimensions:
                variable[...] = values_of(dtype, shape, number)
    return path


def assert_same(path, **keywords):
    """Compare all variables with what netCDF4-python reads."""
    group = omnizarr.open_group(path, **keywords)
    with nc4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        assert sorted(group.array_keys()) == sorted(file.variables)
        for name, variable in file.variables.items():
            array = group[name]
            expected = np.asarray(variable[...])
            assert array.shape == variable.shape
            assert array.metadata.dimension_names == variable.dimensions
            found = np.asarray(array[...])
            assert found.astype(expected.dtype, casting="equiv").tobytes() == expected.tobytes(), name
            for selection in (slice(None, None, 2), -1, slice(1, 2)) if variable.ndim and variable.shape[0] else ():
                assert np.array_equal(array[selection], expected[selection]), (name, selection)
    return group


@pytest.mark.parametrize("path", CLASSIC, ids=lambda path: path.name)
def test_files_of_other_programs_have_the_same_elements(path):
    assert_same(path)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("records", [0, 1, 5])
def test_all_types_with_records_and_without(tmp_path, file_format, records):
    names = TYPES.get(file_format, OLD_TYPES)
    variables = {
        f"{dtype}_{'_'.join(dims) or 'scalar'}": (dtype, dims)
        for dtype, dims in itertools.product(names, [(), ("x",), ("t",), ("t", "x"), ("x", "y"), ("t", "y", "z")])
    }
    assert_same(written(tmp_path / "a.nc", file_format, variables, records=records))


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("dtype", ["i1", "S1", "i2", "f8"])
def test_the_only_variable_with_records_has_no_padding(tmp_path, file_format, dtype):
    path = written(tmp_path / "a.nc", file_format, {"a": (dtype, ("t", "x")), "b": ("f4", ("y",))}, records=7)
    assert_same(path)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_large_variables_are_divided_into_chunks(tmp_path, monkeypatch, engine):
    monkeypatch.setattr("omnizarr.stores.manifests.manifest._MOST_BYTES", 32)
    variables = {"a": ("f4", ("t", "x", "y")), "b": ("i2", ("t",)), "c": ("f8", ("x", "y", "z")), "d": ("i1", ("y",))}
    group = assert_same(written(tmp_path / "a.nc", "NETCDF3_CLASSIC", variables), config={"engine": engine})
    assert group["a"].chunks == (1, 2, 4)
    assert group["c"].chunks == (1, 2, 2)


def test_scipy_sees_the_same(tmp_path):
    scipy_io = pytest.importorskip("scipy.io", reason="SciPy is the other reader of netCDF-3")
    path = written(tmp_path / "a.nc", "NETCDF3_CLASSIC", {"a": ("i2", ("t", "x")), "b": ("f8", ("t",))})
    group = omnizarr.open_group(path)
    with scipy_io.netcdf_file(path, mmap=False) as file:
        for name, variable in file.variables.items():
            assert np.array_equal(group[name][...], variable[...])
        assert file.version_byte == 1


def test_the_number_of_records_may_be_left_open(tmp_path):
    path = written(tmp_path / "a.nc", "NETCDF3_CLASSIC", {"a": ("i2", ("t", "x")), "b": ("f8", ("t",))})
    expected = {name: omnizarr.open_group(path)[name][...] for name in "ab"}
    data = bytearray(path.read_bytes())
    data[4:8] = b"\xff" * 4
    path.write_bytes(data)
    group = omnizarr.open_group(path)
    for name in "ab":
        assert np.array_equal(group[name][...], expected[name])


def test_names_attributes_and_dimensions_are_those_of_the_file(tmp_path):
    path = written(tmp_path / "a.nc", "NETCDF3_CLASSIC", {"a": ("i2", ("t", "x"))})
    group = omnizarr.open(path)
    assert group.attrs["title"] == "a file"
    assert group.attrs["numbers"] == [1, -2]
    with netcdf.Dataset(path) as dataset:
        assert dataset.dimensions["t"].isunlimited()
        assert [len(each) for each in dataset.dimensions.values()] == [5, 3, 4, 2]
        assert dataset.numbers.dtype == "i2"
        assert dataset["a"].factor.dtype == "f4"


def test_xarray_gets_the_chunks_in_which_variables_are_read():
    xarray = pytest.importorskip("xarray", reason="xarray opens them")
    path = next(each for each in CLASSIC if each.name == "classic.nc")
    chunks = {name: each.chunks for name, each in omnizarr.open_group(path, mode="r").arrays() if each.ndim}
    with xarray.open_dataset(path, engine="omnizarr") as dataset:
        assert {name: dataset[name].encoding["chunks"] for name in chunks} == chunks


@pytest.mark.parametrize("path", CLASSIC, ids=lambda path: path.name)
def test_xarray_sees_the_same_by_netcdf4(path):
    xarray = pytest.importorskip("xarray", reason="xarray opens them")
    with xarray.open_dataset(path, engine="netcdf4") as theirs, xarray.open_dataset(path, engine="omnizarr") as ours:
        for dataset in (theirs, ours):
            dataset.load()
            # netCDF4-python takes NULs out of texts.
            dataset.attrs = {name: _without_nuls(each) for name, each in dataset.attrs.items()}
        assert ours.identical(theirs)
        assert {name: each.dtype for name, each in ours.variables.items()} == {
            name: each.dtype for name, each in theirs.variables.items()
        }
        assert ours.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"]


def _without_nuls(value):
    return value.replace("\0", "") if isinstance(value, str) else value


def test_names_end_at_their_first_nul(tmp_path):
    """Old versions of netCDF-C wrote NULs after names: ref_nctest_classic.nc of its own tests has some."""
    path = tmp_path / "x.nc"
    with nc4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("dimension", 2)
        file.createVariable("variable", "i4", ("dimension",))[:] = [1, 2]
    raw = path.read_bytes()
    for name in (b"dimension", b"variable"):
        raw = raw.replace(name, name[:3] + bytes(len(name) - 3))
    path.write_bytes(raw)
    with nc4.Dataset(path) as theirs:
        assert (list(theirs.dimensions), list(theirs.variables)) == (["dim"], ["var"])
    root = omnizarr.open(path)
    assert list(root) == ["var"]
    assert root["var"].dimension_names == ("dim",)
    assert_same(path)


def test_a_file_is_opened_by_its_content_if_its_name_says_nothing(tmp_path):
    path = written(tmp_path / "a.nc", "NETCDF3_CLASSIC", {"a": ("i2", ("x",))})
    other = path.rename(tmp_path / "data.bin")
    assert list(omnizarr.open_group(other).array_keys()) == ["a"]


def test_it_can_only_be_read(tmp_path):
    path = written(tmp_path / "a.nc", "NETCDF3_CLASSIC", {"a": ("i2", ("x",))})
    before = path.read_bytes()
    for mode in ("r+", "a", "w"):
        with pytest.raises(ReadOnlyError, match="can only be read"):
            omnizarr.open_group(path, mode=mode)
    assert path.read_bytes() == before
    assert np.array_equal(pickle.loads(pickle.dumps(omnizarr.open(path)["a"]))[...], omnizarr.open(path)["a"][...])


def test_commands_read_it(tmp_path, capsys):
    path = written(tmp_path / "a.nc", "NETCDF3_CLASSIC", {"a": ("i2", ("t", "x")), "b": ("f8", ("t",))})
    assert main(["tree", str(path)]) == 0
    assert "a (5, 3) int16" in capsys.readouterr().out
    assert main(["convert", str(path), str(tmp_path / "a.zarr")]) == 0
    capsys.readouterr()
    main(["diff", str(path), str(tmp_path / "a.zarr")])
    found = capsys.readouterr().out
    assert "20 elements compared" in found
    assert "/a" not in found.replace(str(tmp_path), "")  # the marks of the group differ, and nothing else


def test_it_is_read_over_http_by_ranges(tmp_path):
    path = written(tmp_path / "a.nc", "NETCDF3_CLASSIC", {"a": ("i2", ("t", "x")), "b": ("f8", ("t",))})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, static.__file__, str(tmp_path), str(port)]
    with subprocess.Popen(command) as server:
        try:
            _wait_for(port)
            group = omnizarr.open_group(f"http://127.0.0.1:{port}/a.nc")
            for name in ("a", "b"):
                assert np.array_equal(group[name][...], omnizarr.open(path)[name][...])
            written(tmp_path / "a.nc", "NETCDF3_CLASSIC", {"a": ("i2", ("t", "x")), "b": ("f4", ("t",))})
            with pytest.raises(StaleError, match=r"a\.nc has changed since it was opened"):
                group["a"][...]
        finally:
            server.kill()


def _wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
        else:
            return


# -- files that are broken --------------------------------------------------------------


def test_a_file_without_all_its_data_is_an_error(tmp_path):
    path = written(tmp_path / "a.nc", "NETCDF3_CLASSIC", {"b": ("f8", ("x",)), "a": ("i2", ("t", "x"))}, records=50)
    data = path.read_bytes()
    path.write_bytes(data[:-200])
    group = omnizarr.open_group(path)
    assert group["b"][...].shape == (3,)
    with pytest.raises(StoreError, match="ends before its data do"):
        group["a"][...]
    path.write_bytes(data)
    with pytest.raises(StaleError, match="has changed"):
        group["b"][...]


def test_every_cut_of_a_header_is_an_error(tmp_path):
    data = (FILES / "classic.nc").read_bytes()
    header = netcdf3.read_header(File.at(FILES / "classic.nc"))
    end = min(variable.begin for variable in header.variables)
    path = tmp_path / "cut.nc"
    for stop in range(4, end - 3):
        path.write_bytes(data[:stop])
        with pytest.raises(MetadataError, match=r"NetCDF Classic Format"):
            omnizarr.open_group(path)


def test_no_changed_byte_of_a_header_does_harm(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "mutated.nc"
    for source in CLASSIC:
        data = source.read_bytes()
        for _ in range(500):
            changed = bytearray(data)
            for place in random.integers(4, min(len(data), 2000), random.integers(1, 4)):
                changed[place] = random.integers(256)
            path.write_bytes(changed)
            try:
                group = omnizarr.open_group(path)
                for name in group.array_keys():
                    array = group[name]
                    if 0 < array.size < 10_000:
                        array[...]
                    assert len(list(itertools.islice(array.store.list_prefix(f"{name}/"), 5000))) < 5000
            except (MetadataError, StoreError):
                pass


def test_a_header_with_false_counts_costs_nothing(tmp_path):
    path = tmp_path / "a.nc"
    for version, wide in ((1, ">I"), (5, ">Q")):
        most = (1 << (8 * struct.calcsize(wide))) - 2
        path.write_bytes(
            b"CDF" + bytes([version]) + struct.pack(wide, 0) + struct.pack(">I", 10) + struct.pack(wide, most)
        )
        with pytest.raises(MetadataError, match="parts, which are not there"):
            omnizarr.open_group(path)


def test_packages_add_readers(tmp_path):
    def read(file):
        (head,) = file.read([(0, min(file.size, 3))])
        document = b'{"zarr_format": 3, "node_type": "group", "attributes": {"made": "by a package"}}'
        return Contents({"zarr.json": document}, {}) if bytes(head) == b"XYZ" else None

    OFFERED_READERS.register(".xyz", read)
    try:
        (tmp_path / "a.xyz").write_bytes(b"XYZ...")
        assert omnizarr.open(tmp_path / "a.xyz").attrs["made"] == "by a package"
    finally:
        OFFERED_READERS._registered.clear()
