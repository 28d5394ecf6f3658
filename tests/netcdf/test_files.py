"""Files of netCDF-3 and netCDF-4; expected values are those of ncdump, netCDF4-python and h5py."""

import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import h5py
import netCDF4
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from omnizarr.errors import (
    BoundsCheckError,
    ChunkError,
    MetadataError,
    MissingDependencyError,
    NodeExistsError,
    NodeNotFoundError,
    NotRepresentableError,
    SettingError,
    StoreError,
)
from omnizarr.netcdf import Attribute, UserType, files, types
from omnizarr.netcdf.files import writing
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, Source, VariableHeader
from tests.netcdf import generated

DATA = Path(__file__).parent / "data" / "files"
FILES = ["everything.nc", "classic.nc", "offset64.nc", "data64.nc", "netcdf4_classic.nc", "filters.nc", "scipy.nc"]
FILES += ["h5netcdf.nc", "plain.h5"]
FORMATS = get_args(files.Format)
CLASSIC_FILES = [each for each in FORMATS if each.startswith("NETCDF3")]


# Helpers: what a source holds, in forms that compare exactly


def exact(attributes):
    """Types and values of attributes in order; text with its NULs, numbers by their bits."""
    return [(name, each.type.name, bits(each.value)) for name, each in attributes.items()]


def as_asked(items):
    """Leave out the four parameters of blosc that netCDF-C sets itself."""
    return [
        (name, of, re.sub(r"\b32001(,\d+){4}", "32001", value) if name == "_Filter" else value)
        for name, of, value in items
    ]


def bits(values):
    if isinstance(values, str):
        return values
    if values.dtype == object:
        return [each if isinstance(each, str) else each.tolist() for each in values.ravel()]
    return values.dtype, values.shape, values.tobytes()


def everything(source, name):
    sizes = source.root.sizes()
    header = dict(generated.variables(source.root))[name]
    return source.read(name, tuple(slice(0, sizes[each].size) for each in header.dimensions))


def variable(root, name):
    return dict(generated.variables(root))[name]


def dataset(*headers, data=None, dimensions=(), **members):
    """Return a source of variables at the root, with zeros for data that is not given."""
    root = GroupHeader(
        dimensions={each.name: each for each in dimensions},
        variables={each.name: each for each in headers},
        **members,
    )
    return in_memory(root, data or {})


def in_memory(root, data):
    sizes = root.sizes()

    def read(name, selection):
        header = variable(root, name)
        shape = tuple(sizes[each].size for each in header.dimensions)
        values = data.get(name.rpartition("/")[2], np.zeros(shape, header.type.dtype))
        return np.asarray(values, header.type.dtype).reshape(shape)[(..., *selection)]

    return Source(root, read)


def strings(*items):
    values = np.empty(len(items), object)
    values[:] = items
    return values


def number(name="n", nc_type=types.INT, dimensions=(), attributes=None, **special):
    special = {f"_{key}": Attribute.of(value) for key, value in special.items()}
    return VariableHeader(name=name, type=nc_type, dimensions=dimensions, attributes=attributes or {}, special=special)


X = DimensionHeader("x", 3)


# Recognizing


@pytest.mark.parametrize("name", FILES)
def test_files_of_all_formats_are_recognized(name):
    assert files.is_netcdf(DATA / name)


@pytest.mark.parametrize(
    "content",
    [b"", b"C", b"CDF", b"CDF\x00", b"CDF\x03abc", b"\x0e\x03\x13\x01", b"\x89HDF\r\n", b"x" * 2000, b"{}"],
    ids=["empty", "C", "CDF", "version 0", "version 3", "HDF4", "cut", "text", "JSON"],
)
def test_other_files_are_not_recognized_and_not_opened(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    assert not files.is_netcdf(path)
    with pytest.raises(MetadataError, match="not a netCDF file") as caught, files.open_file(path):
        pass
    assert caught.value.store == str(path)
    assert caught.value.found == content[:8]


@pytest.mark.parametrize("offset", [0, 512, 1024, 2048, 4096])
def test_hdf5_is_recognized_behind_a_block_of_the_user(tmp_path, offset):
    path = tmp_path / "user.h5"
    path.write_bytes(b"\0" * offset + b"\x89HDF\r\n\x1a\n")
    assert files.is_netcdf(path)


def test_a_signature_elsewhere_is_none(tmp_path):
    path = tmp_path / "user.h5"
    path.write_bytes(b"\0" * 256 + b"\x89HDF\r\n\x1a\n" + b"\0" * 1000)
    assert not files.is_netcdf(path)


def test_missing_data_and_what_is_no_file_is_not_recognized(tmp_path):
    assert not files.is_netcdf(tmp_path / "missing.nc")
    assert not files.is_netcdf(tmp_path)


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NodeNotFoundError), files.open_file(tmp_path / "missing.nc"):
        pass


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(MetadataError, match="this is not a file"), files.open_file(tmp_path):
        pass


@pytest.mark.parametrize("module", ["netCDF4", "h5py"])
def test_a_missing_library_is_reported_with_the_extra(monkeypatch, module, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"{module}.*omnizarr\[netcdf\]"):
        files.write_file(tmp_path / "new.nc", dataset())


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_without_the_libraries(name):
    program = (
        "import sys\n"
        "sys.modules['netCDF4'] = sys.modules['h5py'] = None\n"
        "from omnizarr.netcdf.files import open_file\n"
        "with open_file(sys.argv[1]) as source:\n"
        "    sizes = source.root.sizes()\n"
        "    for path, group in source.root.walk():\n"
        "        for name, each in group.variables.items():\n"
        "            source.read(f'{path}/{name}', tuple(slice(0, sizes[one].size) for one in each.dimensions))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(DATA / name)], check=True)


# Reading, as ncdump shows it

SPECIAL = re.compile(r"^\s*(?:\w+ )?([\w.]*):(_\w+) = (.*) ;$")


def shown_by_ncdump(name):
    """Special attributes in the order of a dump: (variable or "", attribute, text)."""
    text = (DATA / name).with_suffix(".dump").read_text()
    found = [match.groups() for match in map(SPECIAL.match, text.splitlines()) if match]
    return [each for each in found if each[1] != "_FillValue"]


def as_ncdump_shows(owner, special):
    for name, each in special.items():
        yield owner, name, f'"{each.value}"' if isinstance(each.value, str) else ", ".join(map(str, each.value))


@pytest.mark.parametrize("name", [each for each in FILES if each != "data64.nc"])
def test_special_attributes_are_those_of_ncdump(name):
    with files.open_file(DATA / name) as source:
        ours = list(as_ncdump_shows("", source.root.special))
        for full_name, header in generated.variables(source.root):
            ours += as_ncdump_shows(full_name.rpartition("/")[2], header.special)
    assert sorted(ours) == sorted(shown_by_ncdump(name))


@pytest.mark.parametrize("name", ["everything.nc", "netcdf4_classic.nc", "h5netcdf.nc"])
def test_special_attributes_come_in_the_order_of_ncdump(name):
    with files.open_file(DATA / name) as source:
        for full_name, header in generated.variables(source.root):
            owner = full_name.rpartition("/")[2]
            shown = [attribute for variable, attribute, _ in shown_by_ncdump(name) if variable == owner]
            assert list(header.special) == shown or full_name == "/g/x"


def test_a_file_of_64_bit_data_has_its_format_as_only_special_attribute():
    with files.open_file(DATA / "data64.nc") as source:
        assert list(as_ncdump_shows("", source.root.special)) == [("", "_Format", '"cdf5"')]
        assert not any(each.special for each in source.root.variables.values())


def test_attributes_keep_their_types():
    with files.open_file(DATA / "everything.nc") as source:
        attributes = source.root.variables["s"].attributes
        assert exact(attributes) == [
            ("names", "string", ["a", "", "é"]),
            ("one", "string", ["only"]),
            ("text", "char", "only"),
            ("empty", "char", "\0"),  # ncgen 4.9.0 writes one NUL for ""
        ]
        assert exact(source.root.attributes) == [
            ("title", "char", "All é"),
            ("n", "byte", bits(np.array([5], "i1"))),
            ("u", "ubyte", bits(np.array([7], "u1"))),
            ("arr", "double", bits(np.array([1.5, np.nan]))),
            ("e", "byte", bits(np.array([1], "i1"))),
        ]
        assert exact(source.root.variables["t"].attributes)[0] == (
            "scale_factor",
            "float",
            bits(np.array([0.1], "f4")),
        )
        assert source.root.variables["u8"].attributes["big"].value.tolist() == [2**64 - 1]


def test_an_attribute_of_a_user_defined_type_has_a_note():
    with files.open_file(DATA / "everything.nc") as source:
        assert [(each.pointer, "enum" in each.message) for each in source.root.notes] == [("/attributes/e", True)]


@pytest.mark.parametrize("name", ["classic.nc", "offset64.nc", "data64.nc", "netcdf4_classic.nc"])
def test_all_formats_of_the_classic_model_hold_the_same(name):
    with files.open_file(DATA / name) as source:
        root = source.root
        assert root.dimensions == {"t": DimensionHeader("t", 2, unlimited=True), "x": X}
        assert {key: (each.type.name, each.dimensions) for key, each in root.variables.items()} == {
            "t": ("int", ("/t",)),
            "a": ("short", ("/t", "/x")),
            "b": ("byte", ("/x",)),
            "c": ("char", ("/x",)),
            "f": ("float", ()),
            "d": ("double", ("/t",)),
        }
        assert exact(root.attributes) == [("title", "char", "x\0y"), ("n", "byte", bits(np.array([1, 2], "i1")))]
        assert exact(root.variables["a"].attributes) == [("_FillValue", "short", bits(np.array([-1], "i2")))]
        assert bits(everything(source, "/a")) == bits(np.arange(1, 7, dtype="i2").reshape(2, 3))
        assert bits(everything(source, "/c")) == bits(np.array([b"a", b"b", b"c"]))
        assert bits(everything(source, "/f")) == bits(np.array(1.5, "f4"))


def test_text_of_netcdf_3_keeps_its_nul():
    with files.open_file(DATA / "scipy.nc") as source:
        assert source.root.attributes["title"].value == "Made by SciPy\0"
        assert everything(source, "/c").tolist() == [b"a", b"", b"\xff"]
    with netCDF4.Dataset(DATA / "scipy.nc") as peer:
        assert peer.title == "Made by SciPy"  # the reason why it is read in another way


def test_values_are_raw():
    with files.open_file(DATA / "everything.nc") as source:
        assert bits(everything(source, "/t")) == bits(np.array([[1, 2, 3], [4, 5, -9], [-9, -9, -9]], "i2"))
        assert everything(source, "/u8").tolist() == [2**64 - 1, 0, 1]
        assert everything(source, "/s").tolist() == ["a", "", "é\n"]
        assert everything(source, "/c").tolist() == [[b"a", b"b", b"c", b"d"], [b"e", b"f", b"", b""], [b""] * 4]
        assert bits(everything(source, "/ub")) == bits(np.array(255, "u1"))


def test_what_is_missing_along_an_unlimited_dimension_is_fill_values():
    with files.open_file(DATA / "everything.nc") as source:
        assert everything(source, "/late").tolist() == [7, -32767, -32767]
        assert everything(source, "/ls").tolist() == ["one", "gone", "gone"]


def test_user_defined_types_are_read():
    with files.open_file(DATA / "everything.nc") as source:
        found = source.root.types
        assert found["cloud_t"] == UserType(
            "cloud_t", "enum", np.dtype("i1"), {"Clear": 0, "Cu": 1, "St": -3}, types.BYTE
        )
        assert found["raw_t"] == UserType("raw_t", "opaque", np.dtype("V5"))
        assert found["row_t"] == UserType("row_t", "vlen", np.dtype(object), base=types.INT)
        assert (found["obs_t"].kind, found["obs_t"].dtype.names) == ("compound", ("t", "n", "c"))
        assert {name: source.root.variables[name].type.name for name in ("cl", "r", "v", "o")} == {
            "cl": "cloud_t",
            "r": "raw_t",
            "v": "row_t",
            "o": "obs_t",
        }
        assert everything(source, "/cl").tolist() == [0, 1, -3]
        assert everything(source, "/r").tobytes() == b"\x01\x02\x03\x04\x05\0\0\0\0\0\xff\0\xff\0\xff"
        assert [each.tolist() for each in everything(source, "/v")] == [[1], [], [1, 2, 3]]
        values = everything(source, "/o")
        assert values["t"].tolist() == [1.5, 2.5, -0.0]
        assert values["n"].tolist() == [[1, 2], [3, 4], [5, 6]]
        assert values["c"].tolist() == [b"x", b"y", b"z"]


def test_variables_stand_in_the_order_of_definition():
    with files.open_file(DATA / "everything.nc") as source:
        names = "time t s c ub u8 i8 nf comp q cl r v o late ls"
        assert list(source.root.variables) == names.split()


def test_a_dimension_that_another_of_its_name_hides_is_found():
    with files.open_file(DATA / "everything.nc") as source:
        assert source.root.groups["g"].variables["x2"].dimensions == ("/x",)
        assert everything(source, "/g/x2").tolist() == [-2147483647] * 3
        assert source.root.groups["g"].variables["y"].dimensions == ("/g/x", "/len")
        assert source.root.groups["g"].groups["h"].variables["z"].dimensions == ("/g/h/time",)


def test_plain_hdf5_is_seen_as_netcdf_c_sees_it():
    with files.open_file(DATA / "plain.h5") as source:
        root = source.root
        assert {name: each.size for name, each in root.dimensions.items()} == {
            "phony_dim_0": 2,
            "phony_dim_1": 3,
            "phony_dim_2": 1,
        }
        assert root.variables["numbers"].attributes["fixed"].value.tolist() == ["ab", "c"]
        assert root.variables["numbers"].attributes["scalar"].value.tolist() == [0.5]
        assert bits(everything(source, "/numbers")) == bits(np.arange(6, dtype="i4").reshape(2, 3))
        assert everything(source, "/names").tolist() == ["abc", "de"]
        assert root.variables["flag"].type.members == {"FALSE": 0, "TRUE": 1}
        assert bits(everything(source, "/flag")) == bits(np.array([1, 0], "i1"))
        assert everything(source, "/pair").tolist() == [(1.0, 2.0)]
        assert bits(everything(source, "/half")) == bits(np.zeros(2, "f4"))


def test_a_file_of_h5netcdf_is_read():
    with files.open_file(DATA / "h5netcdf.nc") as source:
        assert exact(source.root.attributes) == [
            ("text", "string", ["Größe"]),
            ("number", "short", bits(np.array([7], "i2"))),
        ]
        assert everything(source, "/g/v").tolist() == [1, 4294967295]
        assert everything(source, "/grow").tolist() == [0.5, 1.5, -1.0]


def test_values_behind_every_filter_are_read():
    with files.open_file(DATA / "filters.nc") as source:
        for name in ("zlib", "plain_zlib", "zstd", "bzip2", "blosc", "szip"):
            assert everything(source, f"/{name}").tolist() == (np.arange(128) // 16).tolist()
        with netCDF4.Dataset(DATA / "filters.nc") as peer:
            for name in ("groom", "round"):
                assert bits(everything(source, f"/{name}")) == bits(peer[name][:].data)


@pytest.mark.parametrize("name", FILES)
def test_parts_are_the_parts_of_the_whole(name):
    with files.open_file(DATA / name) as source:
        for full_name, _ in generated.variables(source.root):
            whole = everything(source, full_name)
            for part in [
                tuple(slice(0, 0) for _ in whole.shape),
                tuple(slice(size - 1, size) for size in whole.shape),
                tuple(slice(size // 2, size) for size in whole.shape),
            ]:
                found = source.read(full_name, part)
                assert bits(found) == bits(whole[(..., *part)])
                assert found.shape == whole[(..., *part)].shape


@pytest.mark.parametrize(
    "selection", [(), (slice(0, 4),), (slice(-1, 2),), (slice(2, 1),), (slice(0, 1), slice(0, 1))], ids=str
)
def test_a_selection_that_leaves_the_variable_is_an_error(selection):
    with files.open_file(DATA / "classic.nc") as source, pytest.raises(BoundsCheckError) as caught:
        source.read("/b", selection)
    assert caught.value.path == "b"


def test_a_variable_that_is_missing_is_not_found():
    with files.open_file(DATA / "classic.nc") as source, pytest.raises(NodeNotFoundError):
        source.read("/missing", ())


def test_bytes_that_are_no_utf_8_are_kept(tmp_path):
    path = tmp_path / "bytes.nc"
    with netCDF4.Dataset(path, "w") as made:
        made.createDimension("x", 1)
        made.createVariable("s", str, ("x",))
        made.setncattr("latin", b"Gr\xf6\xdfe")
    with h5py.File(path, "r+") as made:
        made["s"][0] = b"\xff\xfe"
    with files.open_file(path) as source:
        assert source.root.attributes["latin"].value == "Gr\udcf6\udcdfe"
        assert everything(source, "/s").tolist() == ["\udcff\udcfe"]
    assert files.write_file(tmp_path / "copy.nc", _read(path)) == ()
    with h5py.File(tmp_path / "copy.nc") as copy:
        assert copy["s"][0] == b"\xff\xfe"


def _read(path):
    """A dataset of a file, as it is when the file is closed again."""
    with files.open_file(path) as source:
        data = {name: everything(source, name) for name, _ in generated.variables(source.root)}
    return Source(source.root, lambda name, selection: data[name][(..., *selection)])


# Broken files


@pytest.mark.parametrize("name", ["classic.nc", "offset64.nc", "data64.nc", "everything.nc", "h5netcdf.nc"])
def test_a_truncated_file_is_an_error_or_reads_as_far_as_it_goes(tmp_path, name):
    raw = (DATA / name).read_bytes()
    paths = [tmp_path / f"{part}.nc" for part in (5, 30, 60, 90)]
    for path in paths:
        path.write_bytes(raw[: max(8, len(raw) * int(path.stem) // 100)])
    code = (
        "import sys\n"
        "from omnizarr.errors import MetadataError, ChunkError\n"
        "from omnizarr.netcdf.files import open_file\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        with open_file(path) as source:\n"
        "            for name, each in source.root.variables.items():\n"
        "                sizes = source.root.sizes()\n"
        "                try:\n"
        "                    source.read('/' + name, tuple(slice(0, sizes[one].size) for one in each.dimensions))\n"
        "                except ChunkError:\n"
        "                    pass\n"
        "    except MetadataError as error:\n"
        "        assert error.store == path and error.found\n"
        "    print('survived')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *paths], capture_output=True, text=True, check=False, timeout=100
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "survived\n" * 4)


def test_values_that_cannot_be_read_are_an_error_of_their_variable(tmp_path):
    path = tmp_path / "checksum.nc"
    with netCDF4.Dataset(path, "w") as made:
        made.createDimension("x", 100)
        made.createVariable("v", "f8", ("x",), fletcher32=True, chunksizes=(100,))[:] = 1.25
    raw = path.read_bytes()
    assert raw.count(np.float64(1.25).tobytes() * 100) == 1
    path.write_bytes(raw.replace(np.float64(1.25).tobytes() * 100, np.float64(1.5).tobytes() * 100))
    with files.open_file(path) as source, pytest.raises(ChunkError) as caught:
        everything(source, "/v")
    assert caught.value.path == "v"


# Writing


def test_netcdf4_python_reads_what_is_written(tmp_path):
    path = tmp_path / "new.nc"
    header = number("t", types.SHORT, ("/time", "/x"), {"_FillValue": Attribute.of(np.int16(-9))}, ChunkSizes=[2, 3])
    time = DimensionHeader("time", 2, unlimited=True)
    values = np.arange(6, dtype="i2").reshape(2, 3)
    assert files.write_file(path, dataset(header, data={"t": values}, dimensions=(time, X))) == ()
    with netCDF4.Dataset(path) as made:
        made.set_auto_mask(False)
        assert made.data_model == "NETCDF4"
        assert made["t"][:].tolist() == values.tolist()
        assert made["t"].chunking() == [2, 3]
        assert made["t"].get_fill_value() == -9
        assert made.dimensions["time"].isunlimited()


ATTRIBUTES = {
    "empty": Attribute(types.CHAR, ""),
    "nul": Attribute(types.CHAR, "\0"),
    "behind": Attribute(types.CHAR, "ab\0\0"),
    "within": Attribute(types.CHAR, "a\0b"),
    "bytes": Attribute(types.CHAR, "\udcff"),
    "umlaut": Attribute(types.CHAR, "Größe"),
    "long": Attribute(types.CHAR, "z" * 100_000),
    "no strings": Attribute(types.STRING, strings()),
    "one string": Attribute(types.STRING, strings("x")),
    "strings": Attribute(types.STRING, strings("", "é")),
    **{
        f"{each.name} {len(values)}": Attribute(each, np.array(values, each.dtype))
        for each in generated.NUMBERS
        for values in ([], [each.default_fill], [1, 2])
    },
    "payload": Attribute(types.DOUBLE, np.array([0x7FF80000DEADBEEF, 0xFFF8000000000001], "u8").view("f8")),
}


@pytest.mark.parametrize("name", list(ATTRIBUTES))
def test_an_attribute_of_netcdf_4_comes_back_as_it_was(tmp_path, name):
    path = tmp_path / "new.nc"
    attributes = {name: ATTRIBUTES[name]}
    source = dataset(number(attributes=attributes), attributes=attributes)
    assert files.write_file(path, source) == ()
    with files.open_file(path) as made:
        assert exact(made.root.attributes) == exact(attributes)
        assert exact(made.root.variables["n"].attributes) == exact(attributes)


def test_hdf5_holds_attributes_in_the_forms_of_netcdf_c(tmp_path):
    chosen = {"text": Attribute.of("é"), "empty": Attribute.of(""), "strings": Attribute.of(["a"])}
    chosen["numbers"] = Attribute.of(np.array([1, 2], "i2"))
    files.write_file(tmp_path / "ours.nc", dataset(attributes=chosen))
    with netCDF4.Dataset(tmp_path / "theirs.nc", "w") as made:
        made.setncattr("text", "é".encode())
        made.setncattr_string("strings", "a")
        made.setncattr("numbers", np.array([1, 2], "i2"))
    with h5py.File(tmp_path / "ours.nc") as ours, h5py.File(tmp_path / "theirs.nc") as theirs:
        for name in ("text", "strings", "numbers"):
            mine, other = ours.attrs.get_id(name), theirs.attrs.get_id(name)
            assert mine.get_type().equal(other.get_type())
            assert mine.get_space().get_simple_extent_type() == other.get_space().get_simple_extent_type()
            assert mine.shape == other.shape
        assert ours.attrs.get_id("empty").get_space().get_simple_extent_type() == h5py.h5s.NULL
    with netCDF4.Dataset(tmp_path / "ours.nc") as made:
        assert made.getncattr("empty") == ""
        assert made.getncattr("strings") == "a"


def test_attributes_keep_their_order_with_the_fill_value_among_them(tmp_path):
    attributes = {"units": Attribute.of("m"), "_FillValue": Attribute.of(np.int32(5)), "a": Attribute.of(1.0)}
    files.write_file(tmp_path / "new.nc", dataset(number(attributes=attributes)))
    with netCDF4.Dataset(tmp_path / "new.nc") as made:
        assert made["n"].ncattrs() == ["units", "_FillValue", "a"]


@pytest.mark.parametrize("data_model", CLASSIC_FILES)
@pytest.mark.parametrize(
    ("text", "kept"), [("", "\0"), ("ab\0\0", "ab"), ("a\0b", "a\0b"), ("Größe", "Größe"), ("\0", "\0")], ids=repr
)
def test_text_that_netcdf_3_cannot_get_is_reported(tmp_path, data_model, text, kept):
    lost = files.write_file(tmp_path / "new.nc", dataset(attributes={"a": Attribute.of(text)}), format=data_model)
    assert [(each.pointer, each.kept) for each in lost] == ([] if text == kept else [("/attributes/a", repr(kept))])
    with files.open_file(tmp_path / "new.nc") as made:
        assert made.root.attributes["a"].value == kept


@pytest.mark.parametrize("data_model", FORMATS)
@pytest.mark.parametrize("nc_type", list(types.TYPES.values()), ids=lambda each: each.name)
def test_a_variable_is_written_exactly_or_reported(tmp_path, data_model, nc_type):
    header = VariableHeader(name="v", type=nc_type, dimensions=("/x",))
    values = strings("a", "", "é") if nc_type is types.STRING else np.array([1, 0, 2]).astype(nc_type.dtype)
    lost = files.write_file(
        tmp_path / "new.nc", dataset(header, data={"v": values}, dimensions=(X,)), format=data_model
    )
    unable = {"NETCDF4": set(), "NETCDF3_64BIT_DATA": {"string"}}
    others = {"ubyte", "ushort", "uint", "int64", "uint64", "string"}
    is_lost = nc_type.name in unable.get(data_model, others)
    assert [(each.path, each.what) for each in lost] == ([("v", "variable")] if is_lost else [])
    with files.open_file(tmp_path / "new.nc") as made:
        assert ("v" in made.root.variables) is not is_lost
        if not is_lost:
            assert made.root.variables["v"].type is nc_type
            assert bits(everything(made, "/v")) == bits(values)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.int64(5), ("short", [5])),
        (np.int64(70000), ("int", [70000])),
        (np.uint64(2**64 - 1), None),
        (["one"], ("char", "one")),
        (["one", "two"], None),
    ],
    ids=str,
)
def test_an_attribute_keeps_its_value_in_a_smaller_type_or_is_reported(tmp_path, given, kept):
    path = tmp_path / "new.nc"
    lost = files.write_file(path, dataset(attributes={"a": Attribute.of(given)}), format="NETCDF3_CLASSIC")
    assert [each.kept for each in lost] == [kept[0] if kept else ""]
    with files.open_file(path) as made:
        found = [(each.type.name, bits(each.value)) for each in made.root.attributes.values()]
    expected = kept and (kept[0], kept[1] if kept[0] == "char" else bits(np.array(kept[1], types.TYPES[kept[0]].dtype)))
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize("order", ["little", "big"])
def test_byte_order_is_kept(tmp_path, order):
    header = number(dimensions=("/x",), Endianness=order)
    assert files.write_file(tmp_path / "new.nc", dataset(header, data={"n": [1, 2, 3]}, dimensions=(X,))) == ()
    with netCDF4.Dataset(tmp_path / "new.nc") as made:
        assert made["n"].endian() == order
        assert made["n"][:].tolist() == [1, 2, 3]


def test_filters_are_kept(tmp_path):
    path = tmp_path / "new.nc"
    lost = files.write_file(path, _read(DATA / "filters.nc"))
    assert lost == ()
    with netCDF4.Dataset(path) as made, netCDF4.Dataset(DATA / "filters.nc") as given:
        for name in given.variables:
            assert made[name].filters() == given[name].filters()
            assert made[name].quantization() == given[name].quantization()
            assert made[name].chunking() == given[name].chunking()
            assert np.array_equal(made[name][:], given[name][:])


@pytest.mark.parametrize(
    ("special", "what"),
    [
        ({"Filter": "32015,3", "Shuffle": "true", "ChunkSizes": [3]}, "_Shuffle"),
        ({"Filter": "40000,1", "ChunkSizes": [3]}, "_Filter 40000,1"),
        ({"Filter": "307,3|32015,3", "ChunkSizes": [3]}, "_Filter 32015,3"),
        ({"Filter": "nonsense", "ChunkSizes": [3]}, "_Filter nonsense"),
        ({"DeflateLevel": np.int32(0), "ChunkSizes": [3]}, "_DeflateLevel"),
        ({"Codecs": "[]", "ChunkSizes": [3]}, "_Codecs"),
        ({"Storage": "compact"}, "compact storage"),
        ({"ChunkSizes": [5]}, "chunks of [5]"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_storage_that_netcdf4_python_cannot_ask_for_is_reported(tmp_path, special, what):
    source = dataset(number(dimensions=("/x",), **special), data={"n": [1, 2, 3]}, dimensions=(X,))
    assert [each.what for each in files.write_file(tmp_path / "new.nc", source)] == [what]
    with netCDF4.Dataset(tmp_path / "new.nc") as made:
        assert made["n"][:].tolist() == [1, 2, 3]


def test_storage_that_netcdf_3_does_not_have_is_reported(tmp_path):
    source = dataset(number(dimensions=("/x",), ChunkSizes=[3], DeflateLevel=np.int32(1)), dimensions=(X,))
    lost = files.write_file(tmp_path / "new.nc", source, format="NETCDF3_CLASSIC")
    assert [each.what for each in lost] == ["_ChunkSizes, _DeflateLevel"]


def test_no_fill_is_kept(tmp_path):
    assert files.write_file(tmp_path / "new.nc", dataset(number(NoFill="true"), number("m"))) == ()
    with netCDF4.Dataset(tmp_path / "new.nc") as made:
        assert made["n"].get_fill_value() is None
        assert made["m"].get_fill_value() == -2147483647


@pytest.mark.parametrize("count", [0, 2])
def test_a_fill_value_that_is_none_is_reported(tmp_path, count):
    attributes = {"_FillValue": Attribute(types.INT, np.zeros(count, "i4")), "other": Attribute.of("kept")}
    lost = files.write_file(tmp_path / "new.nc", dataset(number(attributes=attributes)))
    assert [each.pointer for each in lost] == ["/attributes/_FillValue"]
    with netCDF4.Dataset(tmp_path / "new.nc") as made:
        assert made["n"].ncattrs() == ["other"]


def test_user_defined_types_are_written_but_opaque_ones(tmp_path):
    path = tmp_path / "copy.nc"
    given = _read(DATA / "everything.nc")
    lost = files.write_file(path, given)
    assert [(each.path, each.pointer, each.what) for each in lost] == [
        ("comp", "", "compact storage"),
        ("r", "", "variable"),
        ("", "/types/raw_t", "type raw_t"),
    ]
    with files.open_file(path) as made:
        for name in ("cl", "v"):
            assert made.root.variables[name].type == given.root.variables[name].type
            assert bits(everything(made, f"/{name}")) == bits(everything(given, f"/{name}"))
        for field in ("t", "n", "c"):
            assert bits(everything(made, "/o")[field]) == bits(everything(given, "/o")[field])
    with netCDF4.Dataset(path) as made:
        assert made["cl"].datatype.enum_dict == {"Clear": 0, "Cu": 1, "St": -3}
        assert [each.tolist() for each in made["v"][:]] == [[1], [], [1, 2, 3]]


def test_a_type_that_no_group_defines_is_defined_at_the_root(tmp_path):
    boolean = UserType("bool", "enum", np.dtype("i1"), {"false": 0, "true": 1}, types.BYTE)
    header = VariableHeader(name="flag", type=boolean, dimensions=("/x",))
    assert files.write_file(tmp_path / "new.nc", dataset(header, data={"flag": [1, 0, 7]}, dimensions=(X,))) == ()
    with netCDF4.Dataset(tmp_path / "new.nc") as made:
        assert made.enumtypes["bool"].enum_dict == {"false": 0, "true": 1}
        assert made["flag"][:].tolist() == [1, 0, 7]  # 7 has no name: netCDF4-python would refuse it


@pytest.mark.parametrize("name", ["everything.nc", "netcdf4_classic.nc", "h5netcdf.nc", "classic.nc", "data64.nc"])
def test_a_file_goes_through_a_source_and_stays_what_it_is(tmp_path, name):
    given = _read(DATA / name)
    kinds = {"classic": "NETCDF3_CLASSIC", "cdf5": "NETCDF3_64BIT_DATA", "netCDF-4": "NETCDF4"}
    kind = kinds.get(given.root.special["_Format"].value, "NETCDF4_CLASSIC")
    lost = {f"/{each.path}" for each in files.write_file(tmp_path / name, given, format=kind) if not each.pointer}
    with files.open_file(tmp_path / name) as made:
        for (path, before), (_, after) in zip(given.root.walk(), made.root.walk(), strict=True):
            assert after.dimensions == before.dimensions
            assert exact(after.attributes) == exact(before.attributes)
            for key, header in before.variables.items():
                if f"{path}/{key}" in lost - {"/comp"}:
                    continue
                assert exact(after.variables[key].attributes) == exact(header.attributes)
                assert after.variables[key].dimensions == header.dimensions
                if f"{path}/{key}" != "/comp":
                    assert exact(after.variables[key].special) == exact(header.special)
                if header.type.name != "obs_t":
                    assert bits(everything(made, f"{path}/{key}")) == bits(everything(given, f"{path}/{key}"))


# Dimensions


def test_only_the_first_unlimited_dimension_stays_so_in_a_classic_file(tmp_path):
    first, second = DimensionHeader("t", 2, unlimited=True), DimensionHeader("u", 3, unlimited=True)
    header = number(dimensions=("/t", "/u"))
    lost = files.write_file(tmp_path / "n.nc", dataset(header, dimensions=(first, second)), format="NETCDF3_CLASSIC")
    assert [(each.pointer, each.kept) for each in lost] == [("/dimensions/u", "length 3")]
    with netCDF4.Dataset(tmp_path / "n.nc") as made:
        assert {name: (each.size, each.isunlimited()) for name, each in made.dimensions.items()} == {
            "t": (2, True),
            "u": (3, False),
        }


def test_an_unlimited_dimension_that_is_not_the_first_becomes_fixed_in_a_classic_file(tmp_path):
    header = number(dimensions=("/x", "/t"))
    source = dataset(header, dimensions=(X, DimensionHeader("t", 2, unlimited=True)))
    lost = files.write_file(tmp_path / "n.nc", source, format="NETCDF4_CLASSIC")
    assert [each.pointer for each in lost] == ["/dimensions/t"]


@pytest.mark.parametrize("data_model", FORMATS)
def test_a_fixed_dimension_of_length_0_becomes_unlimited(tmp_path, data_model):
    source = dataset(number(dimensions=("/none",)), dimensions=(DimensionHeader("none", 0),))
    lost = files.write_file(tmp_path / "n.nc", source, format=data_model)
    assert [each.pointer for each in lost] == ["/dimensions/none"]
    with netCDF4.Dataset(tmp_path / "n.nc") as made:
        assert made["n"].shape == (0,)


def test_a_variable_whose_dimension_cannot_be_is_reported(tmp_path):
    dimensions = (DimensionHeader("t", 2, unlimited=True), DimensionHeader("none", 0))
    source = dataset(number(dimensions=("/none",)), number("m", dimensions=("/t",)), dimensions=dimensions)
    lost = files.write_file(tmp_path / "n.nc", source, format="NETCDF3_CLASSIC")
    assert [(each.path, each.pointer) for each in lost] == [("", "/dimensions/none"), ("n", "")]
    with netCDF4.Dataset(tmp_path / "n.nc") as made:
        assert list(made.variables) == ["m"]


@pytest.mark.parametrize("unlimited", [False, True])
def test_a_dimension_of_length_0_that_is_not_the_first_cannot_be_in_a_classic_file(tmp_path, unlimited):
    source = dataset(number(dimensions=("/none", "/none")), dimensions=(DimensionHeader("none", 0, unlimited),))
    lost = files.write_file(tmp_path / "n.nc", source, format="NETCDF3_CLASSIC")
    assert {(each.path, each.pointer) for each in lost} == {("", "/dimensions/none"), ("n", "")}
    with netCDF4.Dataset(tmp_path / "n.nc") as made:
        assert not made.variables


def test_the_length_of_an_unlimited_dimension_that_nothing_uses_is_reported(tmp_path):
    lost = files.write_file(tmp_path / "n.nc", dataset(dimensions=(DimensionHeader("t", 4, unlimited=True),)))
    assert [(each.pointer, each.kept) for each in lost] == [("/dimensions/t", "length 0")]


def test_groups_are_reported_where_there_are_none(tmp_path):
    below = GroupHeader(name="g", dimensions={"x": X}, variables={"v": number("v", dimensions=("/g/x",))})
    source = dataset(number(), groups={"g": below})
    lost = files.write_file(tmp_path / "n.nc", source, format="NETCDF4_CLASSIC")
    assert [(each.path, each.what) for each in lost] == [("g", "group with all in it")]


def test_a_dimension_that_another_of_its_name_hides_is_written(tmp_path):
    below = GroupHeader(
        name="g",
        dimensions={"x": DimensionHeader("x", 2)},
        variables={
            "far": number("far", dimensions=("/x",), DeflateLevel=np.int32(2)),
            "near": number("near", dimensions=("/g/x",)),
        },
    )
    source = dataset(dimensions=(X,), groups={"g": below}, data={"far": [1, 2, 3], "near": [4, 5]})
    assert files.write_file(tmp_path / "n.nc", source) == ()
    with h5py.File(tmp_path / "n.nc") as made:
        assert made["g/far"][:].tolist() == [1, 2, 3]
        assert made["g/far"].dims[0][0].name == "/x"
        assert made["g/near"].dims[0][0].name == "/g/x"
    with files.open_file(tmp_path / "n.nc") as made:
        assert everything(made, "/g/far").tolist() == [1, 2, 3]


def test_a_group_that_is_called_as_a_dimension_beside_it_is_refused(tmp_path):
    source = dataset(dimensions=(X,), groups={"x": GroupHeader(name="x")})
    with pytest.raises(NotRepresentableError, match="dimensions and groups"):
        files.write_file(tmp_path / "n.nc", source)
    assert not list(tmp_path.iterdir())


# Strings


def test_strings_with_nuls_are_cut_and_reported(tmp_path):
    header = VariableHeader(name="s", type=types.STRING, dimensions=("/x",))
    source = dataset(
        header,
        data={"s": strings("a\0b", "\0", "c")},
        dimensions=(X,),
        attributes={"names": Attribute(types.STRING, strings("x\0y", "z"))},
    )
    lost = files.write_file(tmp_path / "n.nc", source)
    assert [(each.path, each.pointer) for each in lost] == [("", "/attributes/names"), ("s", "")]
    with netCDF4.Dataset(tmp_path / "n.nc") as made:
        assert made["s"][:].tolist() == ["a", "", "c"]
        assert made.names == ["x", "z"]


# The file itself


def test_existing_data_is_replaced_only_if_asked(tmp_path):
    path = tmp_path / "n.nc"
    path.write_bytes(b"mine")
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        files.write_file(path, dataset())
    assert path.read_bytes() == b"mine"
    files.write_file(path, dataset(), overwrite=True)
    assert files.is_netcdf(path)


def test_a_directory_is_never_replaced(tmp_path):
    with pytest.raises(NodeExistsError):
        files.write_file(tmp_path, dataset(), overwrite=True)


@pytest.mark.parametrize("data_model", FORMATS)
def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, data_model):
    path = tmp_path / "n.nc"
    path.write_bytes(b"mine")

    def read(name, selection):
        raise ChunkError("broken", path=name[1:])

    source = dataset(number(dimensions=("/x",)), dimensions=(X,))
    with pytest.raises(ChunkError, match="broken"):
        files.write_file(path, source._replace(read=read), format=data_model, overwrite=True)
    assert path.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a\x01b", " a", "a ", ".a", "-", "u\u0308"])
def test_what_has_a_name_that_netcdf_refuses_or_changes_is_lost(name, tmp_path):
    source = dataset(
        *(number(name), number("good"), number("with", dimensions=(f"/{name}",))),
        dimensions=(DimensionHeader(name, 2),),
    )
    lost = files.write_file(tmp_path / "n.nc", source)
    assert {(each.path, each.pointer) for each in lost} == {("", f"/dimensions/{name}"), ("with", ""), (name, "")}
    with netCDF4.Dataset(tmp_path / "n.nc") as found:
        assert (list(found.variables), list(found.dimensions)) == (["good"], [])
    root = replace(dataset().root, groups={each: GroupHeader(name=each) for each in (name, "g")})
    lost = files.write_file(tmp_path / "g.nc", dataset()._replace(root=root))
    assert [(each.path, each.what) for each in lost] == [(name, "group with all in it")]
    with netCDF4.Dataset(tmp_path / "g.nc") as found:
        assert list(found.groups) == ["g"]


def test_a_place_that_is_missing_is_an_error_of_the_file(tmp_path):
    with pytest.raises(StoreError):
        files.write_file(tmp_path / "missing" / "n.nc", dataset())


def test_a_format_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(SettingError, match="NETCDF3_CLASSIC"):
        files.write_file(tmp_path / "n.nc", dataset(), format="NETCDF5")


def test_progress_is_reported_in_bytes(tmp_path):
    calls = []

    class Bar:
        def __init__(self, **options):
            calls.append(options)

        def update(self, count):
            calls.append(count)

        def close(self):
            calls.append("closed")

    source = dataset(number(dimensions=("/x",)), dimensions=(X,))
    files.write_file(tmp_path / "n.nc", source, progress=Bar)
    assert calls == [{"total": 12, "desc": "writing n.nc", "unit": "B", "unit_scale": True}, 12, "closed"]


def test_values_are_read_in_blocks_of_whole_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(writing.blocks, "__defaults__", (4 * 4 * 100,))
    seen = []
    source = dataset(number(dimensions=("/y", "/x"), ChunkSizes=[4, 50]), dimensions=(
        DimensionHeader("y", 10), DimensionHeader("x", 120),
    ))  # fmt: skip

    def read(name, selection):
        seen.append(selection)
        return source.read(name, selection)

    files.write_file(tmp_path / "n.nc", source._replace(read=read))
    assert [[(each.start, each.stop) for each in selection] for selection in seen] == [
        [rows, columns] for rows in [(0, 4), (4, 8), (8, 10)] for columns in [(0, 100), (100, 120)]
    ]


@given(
    shape=st.lists(st.integers(0, 7), max_size=3),
    chunks=st.lists(st.integers(1, 4), min_size=3, max_size=3),
    limit=st.integers(8, 400),
)
def test_blocks_cover_every_element_once_and_stay_below_the_limit(shape, chunks, limit):
    chunks = chunks[: len(shape)]
    seen = np.zeros(shape, int)
    chunk_bytes = math.prod(map(min, chunks, shape)) * 8
    for selection in writing.blocks(shape, chunks, 8, limit):
        seen[selection] += 1
        assert seen[selection].size * 8 <= max(limit, chunk_bytes)
        assert all(each.start % chunk == 0 for each, chunk in zip(selection, chunks, strict=True))
    assert (seen == 1).all()


# Whatever Hypothesis makes


@pytest.mark.parametrize("data_model", FORMATS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=generated.datasets())
def test_every_dataset_comes_back_but_for_what_was_reported(tmp_path_factory, data_model, made):
    assume(not any(each.dimensions.keys() & each.groups.keys() for _, each in made.root.walk()))
    path = tmp_path_factory.mktemp("made") / "made.nc"
    lost = files.write_file(path, made.source(), format=data_model)
    told = {(each.path, each.pointer) for each in lost}
    gone = {
        f"/{each.path}"
        for each in lost
        if not each.pointer and not each.kept and each.what in {"variable", "group with all in it"}
    }
    with files.open_file(path) as back:
        found_groups = dict(back.root.walk())
        for where, group in made.root.walk():
            if any(where == each or where.startswith(f"{each}/") for each in gone):
                assert where not in found_groups
                continue
            found = found_groups[where]
            check_attributes(found.attributes, group.attributes, where, told)
            for name, each in group.dimensions.items():
                if (where[1:], f"/dimensions/{name}") not in told:
                    assert found.dimensions[name] == each
            for name, each in group.variables.items():
                full_name = f"{where}/{name}"
                if full_name in gone:
                    assert name not in found.variables
                    continue
                assert found.variables[name].type is each.type
                assert found.variables[name].dimensions == each.dimensions
                check_attributes(found.variables[name].attributes, each.attributes, full_name, told)
                assert bits(everything(back, full_name)) == bits(made.data[full_name])
                if data_model.startswith("NETCDF4") and (full_name[1:], "") not in told:
                    kept = found.variables[name].special
                    for key in each.special:
                        assert as_asked(exact({key: kept[key]})) == as_asked(exact({key: each.special[key]}))


def check_attributes(found, given, where, told):
    for name, each in given.items():
        if (where[1:], f"/attributes/{name}") not in told:
            assert exact({name: found[name]}) == exact({name: each})
