"""Extensions of another package, found by its entry points: the package is a real distribution in a folder."""

import importlib
import json
import pickle
import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import omnizarr
from omnizarr.codecs import portable, registry
from omnizarr.engine import transformers
from omnizarr.errors import (
    CodecError,
    MetadataError,
    MissingDependencyError,
    UnknownChunkGridError,
    UnknownChunkKeyEncodingError,
    UnknownDataTypeError,
)
from omnizarr.formats import conventions
from omnizarr.model import Named, datatypes, grids, keys, plugins
from omnizarr.model.datatypes import registry as types

MODULE = '''
from dataclasses import dataclass, replace
import numpy as np
from omnizarr.formats.conventions.contract import Carried, Convention, Fault
from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.record import MOST, Name, Record
from omnizarr.model import Named


@dataclass(frozen=True)
class Colours:
    dtype: np.dtype
    names: tuple

    def default(self):
        return self.dtype.type(0)

    def from_json(self, value, at):
        return self.dtype.type(self.names.index(value))

    def to_json(self, scalar):
        return self.names[int(scalar)]

    def cast(self, value, at):
        return self.from_json(value, at) if isinstance(value, str) else self.dtype.type(value)


def colours(configuration, byte_order):
    return Colours(np.dtype(f"{byte_order}u2"), tuple(configuration.get("names", ("red", "green"))))


def growing(configuration, shape):
    """Chunks along the first dimension that double: 1, 2, 4, ..."""
    lengths = [configuration.get("first", 1)]
    while sum(lengths) < shape[0]:
        lengths.append(2 * lengths[-1])
    return [lengths, *shape[1:]]


@dataclass(frozen=True)
class Backwards:
    separator: str

    def encode(self, coords):
        return "at" + self.separator.join(str(each) for each in reversed(coords))

    def decode(self, key, ndim):
        if not key.startswith("at"):
            return None
        return tuple(int(each) for each in reversed(key[2:].split(self.separator))) if ndim else ()


def backwards(configuration):
    return Backwards(configuration.get("separator", "-"))


@dataclass(frozen=True)
class Invert:
    encoded: BytesSpec

    def encode(self, data):
        return bytes(255 - byte for byte in bytes(data))

    decode = encode


def bind(configuration, decoded):
    return Invert(decoded)


def is_lit(path, nodes):
    return "example:lamp" in nodes[path].attributes


def carry_lamp(metadata, path, nodes, dialect):
    attributes = {**metadata.attributes, "example:format": dialect}
    return Carried(replace(metadata, attributes=attributes), (f"the lamp knows {dialect}",))


def faults_of_lamp(path, nodes):
    if nodes[path].attributes["example:lamp"] not in ("on", "off"):
        said = nodes[path].attributes["example:lamp"]
        yield Fault("example-lamp", path, "/attributes/example:lamp", "the lamp is neither on nor off", said, "on")


LAMP = Convention(
    name="example.lamp", title="lamps", spec="https://example.org", attributes=frozenset({"example:lamp"}),
    recognise=is_lit, carry=carry_lamp, faults=faults_of_lamp,
)


INVERT = Record(
    id="invert", kind="bytes to bytes", names={"example.invert": Name(bind, MOST)}, words="inverted bits",
    replaced_by=lambda given, item_size: Named("gzip", {"level": 1}),
)
'''
ENTRY_POINTS = """
[omnizarr.data_types]
example.colours = example_of_zarr:colours
example.lost = no_such_module:colours
example.gone = example_of_zarr:no_such_name
float32 = example_of_zarr:colours

[omnizarr.chunk_grids]
example.growing = example_of_zarr:growing

[omnizarr.chunk_key_encodings]
example.backwards = example_of_zarr:backwards

[omnizarr.conventions]
example.lamp = example_of_zarr:LAMP

[omnizarr.codecs]
example.invert = example_of_zarr:INVERT
example.plain = example_of_zarr:bind
example.misnamed = example_of_zarr:INVERT
"""
DTYPE = {"name": "example.colours", "configuration": {"names": ["red", "green", "blue"]}}
GRID = {"name": "example.growing", "configuration": {"first": 2}}
KEYS = {"name": "example.backwards", "configuration": {"separator": "_"}}
VALUES = (np.arange(60, dtype="u2") % 3).reshape(20, 3)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution with one of each, in a folder of its own on the path."""
    folder = tmp_path / "packages"
    described = folder / "example_of_zarr-1.0.dist-info"
    described.mkdir(parents=True)
    (folder / "example_of_zarr.py").write_text(MODULE)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: example-of-zarr\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(registry, "_found", {})
    importlib.invalidate_caches()
    plugins.entry_points.cache_clear()
    yield folder
    sys.modules.pop("example_of_zarr", None)
    plugins.entry_points.cache_clear()


@pytest.fixture(params=["native", "reference"])
def engine(request):
    """Each engine; the native one only if it is built."""
    if request.param == "native" and omnizarr.engine.native.engines.module() is None:
        pytest.skip("the native engine is not built")
    with omnizarr.config.set({"engine": request.param}):
        yield request.param


def created(store, **options):
    array = omnizarr.create_array(store, **{"shape": VALUES.shape, "dtype": "u2", "chunks": (4, 3), **options})
    array[...] = VALUES
    return omnizarr.open_array(store)


def test_data_type_is_read_and_written(installed, engine):
    array = created({}, dtype=DTYPE, fill_value="blue")
    assert array.engine == engine  # its elements are NumPy's own
    assert np.array_equal(array[...], VALUES)
    assert array.dtype == "u2"
    assert array.fill_value == 2
    assert omnizarr.create_array({}, shape=2, dtype=DTYPE, fill_value="blue")[...].tolist() == [2, 2]
    assert array.documents()["zarr.json"]["data_type"] == DTYPE
    assert array.documents()["zarr.json"]["fill_value"] == "blue"


def test_byte_order_of_a_data_type_is_that_of_its_codec(installed, engine):
    values = {}
    array = created(values, dtype=DTYPE, serializer={"name": "bytes", "configuration": {"endian": "big"}},
                    compressors=None, chunks=(20, 3))  # fmt: skip
    assert bytes(values["c/0/0"]) == VALUES.astype(">u2").tobytes()
    assert np.array_equal(array[...], VALUES)


def test_data_type_of_a_field(installed, engine):
    fields = [{"name": "colour", "data_type": DTYPE}, {"name": "size", "data_type": "float32"}]
    array = omnizarr.create_array({}, shape=3, dtype={"name": "struct", "configuration": {"fields": fields}})
    array[1] = (2, 0.5)
    assert array[...].tolist() == [(0, 0), (2, 0.5), (0, 0)]


def test_convention_is_checked_and_carried(installed):
    source, target = {}, {}
    omnizarr.create_group(source, zarr_format=2, attributes={"example:lamp": "dim", "mine": 1})
    found = [each for each in omnizarr.check(source).findings if each.code == "other-convention"]
    assert [(each.message, each.found) for each in found] == [("the lamp is neither on nor off", "dim")]
    done = omnizarr.convert(source, target)
    assert done.nodes[0].conventions["example.lamp"] == ("the lamp knows v3",)
    assert dict(omnizarr.open(target).attrs) == {"example:lamp": "dim", "mine": 1, "example:format": "v3"}
    assert "lamps (1 group)" in str(done)


def test_convention_that_cannot_be_imported_is_left_out_with_a_warning(installed, monkeypatch):
    point = EntryPoint("example.broken", "no_such_module:LAMP", "omnizarr.conventions")
    dark = EntryPoint("example.dark", "example_of_zarr:bind", "omnizarr.conventions")
    lamp = EntryPoint("example.lamp", "example_of_zarr:LAMP", "omnizarr.conventions")
    offered = {each.name: each for each in (point, dark, lamp)}
    with monkeypatch.context() as patched:
        patched.setattr(plugins, "entry_points", lambda group: offered if group == "omnizarr.conventions" else {})
        with pytest.warns(UserWarning, match=r"'example\.(broken|dark)'") as warned:
            found = conventions.known()
    assert found[-1].name == "example.lamp"
    assert len(warned) == 2


def test_chunk_grid_is_read_and_written(installed, engine):
    store = {}
    array = created(store, chunks=GRID)
    assert array.engine == engine  # chunks are where any grid could have them
    assert [key for key in store if key != "zarr.json"] == ["c/0/0", "c/1/0", "c/2/0", "c/3/0"]
    assert np.array_equal(array[...], VALUES)
    assert np.array_equal(array[[1, 2, 19], ::2], VALUES[[1, 2, 19], ::2])
    assert array.documents()["zarr.json"]["chunk_grid"] == GRID


def test_chunk_grid_is_resized_as_long_as_chunks_stay(installed, engine, monkeypatch):
    array = created({}, chunks=GRID)
    array.resize((40, 3))
    array.resize((9, 3))
    assert np.array_equal(array[...], VALUES[:9])
    assert array.documents()["zarr.json"]["chunk_grid"] == GRID
    monkeypatch.setattr(sys.modules["example_of_zarr"], "growing", None)
    grids.PLUGINS.register("test.halves", lambda _, shape: [-(-shape[0] // 2), *shape[1:]])
    halves = created({}, chunks={"name": "test.halves"})
    with pytest.raises(MetadataError, match=r"test\.halves"):
        halves.resize((30, 3))
    assert np.array_equal(halves[...], VALUES)
    assert halves.shape == VALUES.shape


def test_chunk_keys_are_read_and_written_by_the_reference_engine(installed, engine, tmp_path):
    store = omnizarr.stores.LocalStore(tmp_path / "a.zarr")
    array = created(store, chunk_key_encoding=KEYS, chunks=(8, 2))
    assert array.engine == "reference"
    assert sorted(store.list()) == ["at0_0", "at0_1", "at0_2", "at1_0", "at1_1", "at1_2", "zarr.json"]
    assert np.array_equal(array[...], VALUES)
    assert array.nchunks_initialized == 6
    array.resize((8, 3))
    assert sorted(store.list()) == ["at0_0", "at1_0", "zarr.json"]
    (tmp_path / "a.zarr" / "atlas").write_text("not a chunk")
    created(store, chunk_key_encoding=KEYS, chunks=(20, 3), overwrite=True)
    assert "at0_0" in set(store.list())


def test_all_of_them_in_one_array(installed, engine, tmp_path):
    options = {"dtype": DTYPE, "chunks": GRID, "chunk_key_encoding": KEYS, "compressors": ["example.invert"]}
    array = created(tmp_path / "all.zarr", **options)
    assert np.array_equal(array[...], VALUES)
    assert np.array_equal(pickle.loads(pickle.dumps(array))[...], VALUES)
    assert repr(array) == f"<Array / (20, 3) uint16 local {tmp_path}/all.zarr>"
    shown = str(array.info)
    assert "uint16" in shown
    report = omnizarr.check(tmp_path / "all.zarr", data=True)
    assert {finding.code for finding in report.findings} == {"unregistered-extension"}
    copied = omnizarr.convert(tmp_path / "all.zarr", tmp_path / "copy.zarr")
    assert copied.verified
    assert omnizarr.open_array(tmp_path / "copy.zarr").documents() == array.documents()


def test_conversion_tells_what_the_other_format_has_no_place_for(installed, tmp_path):
    created(tmp_path / "grid.zarr", chunks=GRID)
    report = omnizarr.convert(tmp_path / "grid.zarr", tmp_path / "grid2.zarr", zarr_format=2)
    assert "chunks of different shapes become chunks of one shape" in str(report)
    assert np.array_equal(omnizarr.open_array(tmp_path / "grid2.zarr")[...], VALUES)
    created(tmp_path / "type.zarr", dtype=DTYPE)
    report = omnizarr.convert(tmp_path / "type.zarr", tmp_path / "type2.zarr", zarr_format=2)
    assert [loss.what for loss in report.losses] == ["what elements mean (example.colours)"]
    assert np.array_equal(omnizarr.open_array(tmp_path / "type2.zarr")[...].view("u2"), VALUES)
    created(tmp_path / "keys.zarr", chunk_key_encoding=KEYS)
    report = omnizarr.convert(tmp_path / "keys.zarr", tmp_path / "keys2.zarr", zarr_format=2)
    assert "keys of chunks" in str(report)
    assert np.array_equal(omnizarr.open_array(tmp_path / "keys2.zarr")[...], VALUES)
    assert not list((tmp_path / "keys2.zarr").glob("at*"))


def test_chunks_with_such_keys_go_with_their_array(installed, tmp_path):
    group = omnizarr.create_group(tmp_path / "group.zarr")
    for name in ("deleted", "replaced"):
        array = group.create_array(name, shape=(4, 4), chunks=2, dtype="u1", chunk_key_encoding=KEYS)
        array[...] = 1
    (tmp_path / "group.zarr" / "replaced" / "atlas").write_text("not a chunk")
    omnizarr.delete_node(tmp_path / "group.zarr", "deleted")
    group.create_array("replaced", shape=4, dtype="u1", overwrite=True)
    left = {path.name for path in (tmp_path / "group.zarr").rglob("*") if path.is_file()}
    assert left == {"zarr.json", "atlas"}


def test_record_of_another_package_is_used_like_those_of_omnizarr(installed):
    record = registry.record("example.invert")
    assert registry.find("example.invert").kind == record.kind == "bytes to bytes"
    assert registry.words(Named("example.invert")) == "inverted bits"
    ((_, new),) = portable.replaced((Named("example.invert"),), 4, 64)
    assert [codec.name for codec in new] == ["gzip"]
    assert registry.record("example.plain") is None
    assert registry.record("example.nothing") is None
    assert {"example.invert", "example.plain"} <= set(registry.known_names())
    with pytest.raises(CodecError, match="lacks this name"):
        registry.find("example.misnamed")


def test_names_of_omnizarr_stay_its_own(installed):
    assert datatypes.bind(Named("float32")).dtype == "f4"
    types.PLUGINS.register("int8", lambda *_: None)
    assert datatypes.parse("int8").dtype == "i1"


def test_a_name_alone_is_a_data_type_too(installed):
    assert datatypes.parse("example.colours").named == Named("example.colours")
    assert datatypes.bind(Named("example.colours"), ">").dtype == ">u2"


@pytest.mark.parametrize("name", ["example.lost", "example.gone"])
def test_what_cannot_be_imported_is_a_missing_package(name, installed):
    with pytest.raises(MissingDependencyError) as caught:
        datatypes.bind(Named(name))
    assert caught.value.found == name
    assert caught.value.pointer == "/data_type"
    document = {**omnizarr.create_array({}, shape=1, dtype="u1").documents()["zarr.json"], "data_type": name}
    assert name in str(omnizarr.open_array({"zarr.json": json.dumps(document).encode()}))


@pytest.mark.parametrize(
    ("bind", "error"),
    [
        (lambda: datatypes.bind(Named("example.nothing")), UnknownDataTypeError),
        (lambda: grids.bind(Named("example.nothing"), (1,)), UnknownChunkGridError),
        (lambda: keys.bind(Named("example.nothing")), UnknownChunkKeyEncodingError),
    ],
)
def test_unknown_names_are_unknown(bind, error, installed):
    with pytest.raises(error) as caught:
        bind()
    assert caught.value.found == "example.nothing"


BROKEN_KEYS = {
    "one for all": (lambda _: "chunk", lambda _, ndim: (0,) * ndim),
    "a document": (lambda _: "zarr.json", lambda _, ndim: (0,) * ndim),
    "no text": (lambda _: 3, lambda _, ndim: (0,) * ndim),
    "an error": (lambda coords: coords[9], lambda _, ndim: (0,) * ndim),
}


@pytest.mark.parametrize("name", BROKEN_KEYS)
def test_keys_that_would_overwrite_something_are_refused(name):
    made = type("Made", (), dict(zip(("encode", "decode"), map(staticmethod, BROKEN_KEYS[name]), strict=True)))()
    keys.PLUGINS.register("test.broken", lambda _: made)
    store = {}
    with pytest.raises(MetadataError, match=r"test\.broken"):
        created(store, chunk_key_encoding={"name": "test.broken"})
    assert set(store) <= {"zarr.json", "chunk"}
    assert b"zarr_format" in bytes(store.get("zarr.json", b"zarr_format"))


@pytest.mark.parametrize("rows", [None, [5], [0, 3], [[5, 5], 3], [[-1, 30], 3], [4.0, 3], [[10, 10], [1, 2], 3]])
def test_chunk_lengths_that_are_none_are_refused(rows):
    grids.PLUGINS.register("test.broken", lambda *_: rows)
    with pytest.raises(MetadataError, match=r"test\.broken"):
        created({}, chunks={"name": "test.broken"})


@pytest.mark.parametrize("made", [lambda *_: 3, lambda *_: 1 / 0, lambda: None])
def test_scalars_that_are_none_are_refused(made):
    types.PLUGINS.register("test.broken", made)
    with pytest.raises(MetadataError, match=r"test\.broken"):
        datatypes.bind(Named("test.broken"))


def test_another_function_under_the_same_name_is_used_by_arrays_opened_later():
    store = {}
    for name in ("first", "second"):
        types.PLUGINS.register("test.again", lambda _, _order, name=name: _scalars(name))
        store.clear()
        array = omnizarr.create_array(store, shape=1, dtype={"name": "test.again"})
        assert array.fill_value == len(name)


def _scalars(name):
    class Fixed:
        dtype = np.dtype("u1")

        def default(self):
            return np.uint8(len(name))

        def from_json(self, value, at):
            return np.uint8(value)

        def to_json(self, scalar):
            return int(scalar)

        def cast(self, value, at):
            return np.uint8(value)

    return Fixed()


def test_native_engine_leaves_elements_of_a_foreign_dtype_alone(engine):
    rational = pytest.importorskip("numpy._core._rational_tests", reason="NumPy was built without its tests").rational

    class Rational:
        dtype = np.dtype(rational)

        def default(self):
            return rational(0)

        def from_json(self, value, at):
            return rational(*value)

        def to_json(self, scalar):
            return [scalar.n, scalar.d]

        def cast(self, value, at):
            return rational(value)

    types.PLUGINS.register("test.rational", lambda *_: Rational())
    array = omnizarr.create_array({}, shape=4, chunks=2, dtype="test.rational")
    assert array.engine == "reference"
    array[1] = rational(1, 3)
    assert array[...].tolist() == [rational(0), rational(1, 3), rational(0), rational(0)]


@pytest.mark.parametrize("found", [registry.PLUGINS, types.PLUGINS, grids.PLUGINS, keys.PLUGINS, transformers.PLUGINS])
def test_of_two_packages_with_one_name_the_first_is_used(found, monkeypatch):
    points = [EntryPoint("twice", value, found.group) for value in ("math:pi", "math:tau")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [p for p in points if p.group == group])
    plugins.entry_points.cache_clear()
    try:
        assert str(found.find("twice"))[:4] == "3.14"
        assert "twice" in found.names()
    finally:
        plugins.entry_points.cache_clear()


def test_packages_are_not_looked_up_for_what_omnizarr_has():
    code = (
        "import sys, numpy as np, omnizarr\n"
        "store = {}\n"
        "for dtype in ('f4', '<i2', 'float32', 'M8[s]', np.uint8, float, str, [('a', 'i4')]):\n"
        "    array = omnizarr.create_array(store, shape=4, dtype=dtype, chunks=2, overwrite=True)\n"
        "    array[...] = array[...]\n"
        "omnizarr.create_array(store, data=np.arange(9), chunks=[[4, 5]], overwrite=True)[...]\n"
        "from omnizarr.model import plugins\n"
        "print(plugins.entry_points.cache_info().currsize)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "0"
