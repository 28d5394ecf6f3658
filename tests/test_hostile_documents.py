"""Documents and names that are not valid: each error is one of ours and says where, and nothing commands a terminal."""

import json
import os
import random
import re
import subprocess
import sys

import pytest

import omnizarr
from omnizarr import UnreadableNode, errors, netcdf
from omnizarr.cli import main
from omnizarr.storage import TranslatedStore
from omnizarr.stores import LocalStore, MemoryStore
from tests.repeats import runs

RUNS = runs(3)
FORMATS = (1, 2, 3, "3-draft2019", "3-draft2020")
V3 = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [2, 2],
    "data_type": "int32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 1]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "fill_value": 0,
    "attributes": {"units": "m"},
    "dimension_names": ["y", "x"],
}


def v3(**changes):
    return {"zarr.json": json.dumps({**V3, **changes}).encode()}


def of_shape(shape, chunks, zarr_format):
    if zarr_format == 3:
        grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
        return v3(shape=shape, chunk_grid=grid, dimension_names=None)
    if zarr_format == 2:
        return {
            ".zarray": json.dumps({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "<i4", "order": "C",
                                   "filters": None, "compressor": None, "fill_value": 0}).encode(),
        }  # fmt: skip
    meta = {"zarr_format": 1, "shape": shape, "chunks": chunks, "dtype": "<i4", "compression": "none",
            "compression_opts": None, "fill_value": 0, "order": "C"}  # fmt: skip
    return {"meta": json.dumps(meta).encode(), "attrs": b"{}"}


# Sizes


@pytest.mark.parametrize("zarr_format", [1, 2, 3])
class TestDimensions:
    def test_more_than_numpy_has_are_shown_but_not_read(self, zarr_format):
        store = MemoryStore(of_shape([1] * 100, [1] * 100, zarr_format))
        array = omnizarr.open_array(store, mode="r+")
        assert array.shape == (1,) * 100
        for use in (lambda: array[...], lambda: array.__setitem__((0,) * 100, 1)):
            with pytest.raises(errors.MetadataError, match=r"100 dimensions.*at most 64") as caught:
                use()
            assert (caught.value.path, caught.value.pointer) == ("", "/shape")
        assert "at most 64" in " ".join(map(str, omnizarr.check(store)))

    def test_more_than_numpy_has_are_not_created(self, zarr_format):
        store = MemoryStore()
        with pytest.raises(errors.MetadataError, match="at most 64"):
            omnizarr.create_array(store, shape=(1,) * 100, dtype="i4", zarr_format=zarr_format)
        assert list(store.list()) == []


@pytest.mark.parametrize("length", [2**62, 2**40])
def test_shard_that_no_memory_holds_is_refused_with_its_place(length):
    shard = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [1, 1],
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        },
    }
    grid = {"name": "regular", "configuration": {"chunk_shape": [length, 2**20]}}
    array = omnizarr.open_array(v3(shape=[length, 2**20], chunk_grid=grid, codecs=[shard]), mode="r+")
    with pytest.raises(errors.ChunkMemoryError) as caught:
        array[0, 0] = 1
    assert isinstance(caught.value, MemoryError)
    assert (caught.value.key, caught.value.coords) == ("c/0/0", (0, 0))
    assert str(length) in str(caught.value)
    assert caught.value.remedy


# Names


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("name", ["a\ud800", "a\0b", "..", 5, b"x"], ids=ascii)
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_name_that_no_node_can_have_is_refused_with_its_place(tmp_path, zarr_format, name, kind):
    store = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    for use in (
        lambda: omnizarr.create_array(store, name=name, shape=1, dtype="i4", zarr_format=zarr_format),
        lambda: omnizarr.open(store, path=name, mode="r", zarr_format=zarr_format),
    ):
        with pytest.raises(errors.OmnizarrError) as caught:
            use()
        str(caught.value).encode()
    assert list(store.list()) == []


# Depth

DEEP = {"lists": "[" * 900 + "]" * 900, "objects": '{"a":' * 900 + "1" + "}" * 900}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("place", ["document", "attributes", ".zattrs", ".zmetadata", "inline", "meta"])
def test_document_that_is_nested_deeply_is_refused_with_its_key(text, place):
    group = '{"zarr_format": 3, "node_type": "group", "attributes": {}, %s}'
    zgroup = {".zgroup": '{"zarr_format": 2}'}
    store = {
        "document": {"zarr.json": text},
        "attributes": {"zarr.json": group.replace("{}", '{"x": %s}' % text).replace(", %s", "")},  # noqa: UP031
        ".zattrs": {**zgroup, ".zattrs": f'{{"x": {text}}}'},
        ".zmetadata": {
            **zgroup,
            ".zmetadata": f'{{"zarr_consolidated_format": 1, "metadata": {{"a/.zattrs": {text}}}}}',
        },
        "inline": {"zarr.json": group % f'"consolidated_metadata": {{"kind": "inline", "metadata": {{"a": {text}}}}}'},
        "meta": {"meta": f'{{"zarr_format": 1, "chunks": {text}}}', "attrs": "{}"},
    }[place]
    store = MemoryStore({key: value.encode() for key, value in store.items()})
    assert any("too deeply" in finding.message for finding in omnizarr.check(store))
    use = omnizarr.open_consolidated if place == ".zmetadata" else omnizarr.open
    with pytest.raises(errors.MetadataError, match="too deeply") as caught:
        use(store, mode="r")
    assert caught.value.key == next(key for key in store.list() if key not in {".zgroup", "attrs"})


@pytest.mark.parametrize("depth", [200, 900, 5000])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_argument_that_is_nested_deeply_is_refused(depth, zarr_format):
    value = 1
    for _ in range(depth):
        value = [value]
    store = MemoryStore()
    for options in (
        {"attributes": {"x": value}},
        {"fill_value": value},
        {
            "filters": [{"id": "delta", "dtype": value}]
            if zarr_format == 2
            else [{"name": "x", "configuration": {"a": value}}]
        },
    ):
        with pytest.raises(errors.OmnizarrError):
            omnizarr.create_array(store, shape=1, dtype="i4", zarr_format=zarr_format, **options)
    assert list(store.list()) == []


# Anything

VALUES = [
    None,
    True,
    -1,
    0,
    2**63,
    2**70,
    1e400,
    "",
    "x",
    "\ud800",
    "\x1b[2J",
    [],
    [[]],
    {},
    {"name": "x"},
    [None],
    "<i4",
]


def mutated(document, random_):
    """Return a document with one value in it replaced, removed, or added."""
    document = json.loads(json.dumps(document))
    at = document
    while True:
        places = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not places:
            return document
        place = random_.choice(places)
        if isinstance(at[place], dict | list) and random_.random() < 0.6:
            at = at[place]
            continue
        if random_.random() < 0.2:
            del at[place]
        else:
            at[place] = random_.choice(VALUES)
        return document


def documents_of(zarr_format):
    store = MemoryStore()
    options = {"shape": (4, 4), "chunks": (2, 2), "dtype": "i4", "zarr_format": zarr_format, "fill_value": 3}
    if zarr_format == 1:
        omnizarr.create_array(store, **options)
    else:
        root = omnizarr.create_group(store, zarr_format=zarr_format, attributes={"a": [1, {"b": 2}]})
        root.create_array("x", **{name: value for name, value in options.items() if name != "zarr_format"})
        if zarr_format in (2, 3):
            root.create_array("s", shape=2, dtype="string", **({} if zarr_format == 2 else {"chunks": 1, "shards": 2}))
            omnizarr.consolidate_metadata(store)
    return {key: bytes(store.get(key)) for key in store.list()}


@pytest.mark.filterwarnings("ignore:consolidated metadata is broken")
@pytest.mark.parametrize("seed", range(RUNS))
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_whatever_a_document_says_errors_are_ours(zarr_format, seed):
    random_ = random.Random(seed)
    sound = documents_of(zarr_format)
    for _ in range(25):
        key = random_.choice([key for key in sound if key.rpartition("/")[2] != "attrs"])
        try:
            document = json.loads(sound[key])
        except ValueError:
            continue
        said = json.dumps(mutated(document, random_))
        store = MemoryStore({**sound, key: said.encode()})
        for use in USES:
            error = raised_by(use, store)
            assert error is None or isinstance(error, errors.OmnizarrError), f"{error!r} for {key}: {said}"
            assert str(error).isprintable(), said


USES = (
    lambda store: omnizarr.open(store, mode="r"),
    lambda store: repr(omnizarr.open_group(store, mode="r").tree()),
    lambda store: [repr(node) for _, node in omnizarr.open_group(store, mode="r").members(max_depth=None)],
    lambda store: list(map(str, omnizarr.check(store))),
    lambda store: [read_and_write(node) for node in nodes_of(store)],
)


def copied(store):
    return MemoryStore({key: bytes(store.get(key)) for key in store.list()})


def looked_at_as_netcdf(store):
    with netcdf.Dataset(store) as dataset:
        _ = repr(dataset), list(map(repr, dataset.variables.values())), dataset.all_notes()


def translated(store):
    for zarr_format in (2, 3):
        live = TranslatedStore(store, zarr_format=zarr_format)
        for key in list(live.list()):
            live.get(key)


TOOLS = {
    "convert to v3": lambda store: omnizarr.convert(store, MemoryStore(), zarr_format=3),
    "convert to v2": lambda store: omnizarr.convert(store, MemoryStore(), zarr_format=2),
    "consolidate": lambda store: omnizarr.consolidate_metadata(copied(store)),
    "repair": lambda store: omnizarr.repair(copied(store)),
    "du": lambda store: str(omnizarr.du(store)),
    "missing": lambda store: [omnizarr.missing(node) for node in nodes_of(store) if isinstance(node, omnizarr.Array)],
    "advise": lambda store: [omnizarr.advise(node) for node in nodes_of(store) if isinstance(node, omnizarr.Array)],
    "attributes": lambda store: [
        (dict(node.attrs), node.metadata.to_dict()) for node in nodes_of(store) if not isinstance(node, UnreadableNode)
    ],
    "netCDF": looked_at_as_netcdf,
    "live view": translated,
    "xarray": lambda store: repr(pytest.importorskip("xarray").open_dataset(store, engine="omnizarr")),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(RUNS))
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_whatever_a_document_says_errors_of_tools_are_ours(zarr_format, seed):
    random_ = random.Random(1000 + seed)
    sound = documents_of(zarr_format)
    keys = [key for key in sound if sound[key].startswith(b"{") and not key.endswith("attrs")]
    for _ in range(8):
        key = random_.choice(keys)
        said = json.dumps(mutated(json.loads(sound[key]), random_))
        for name, use in TOOLS.items():
            error = raised_by(use, MemoryStore({**sound, key: said.encode()}))
            assert error is None or isinstance(error, errors.OmnizarrError), f"{name}: {error!r} for {key}: {said}"


def raised_by(use, *arguments):
    try:
        use(*arguments)
    except Exception as error:  # noqa: BLE001 - of which kind it is, is the question
        return error
    return None


def nodes_of(store):
    root = omnizarr.open(store, mode="r+")
    return [root] if isinstance(root, omnizarr.Array) else [node for _, node in root.members(max_depth=None)]


def read_and_write(node):
    if not isinstance(node, omnizarr.Array):
        return
    _ = node.info, repr(node), node.size
    if node.size > 10**6:
        return
    for use in (lambda: node[...], lambda: node.__setitem__(..., node[...])):
        error = raised_by(use)
        if error is not None:
            assert error.path is not None
            assert error.store is not None
            raise error


# Control characters

NASTY = "n\x1b[2J\nx\x9b\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]|\x1b")


@pytest.fixture
def nasty(tmp_path):
    """A hierarchy in which everything that can be called something is called something that commands a terminal."""
    root = omnizarr.create_group(tmp_path / "r", attributes={NASTY: NASTY})
    group = root.create_group(NASTY)
    group.create_array(NASTY, shape=(2, 2), dtype="i4", dimension_names=[NASTY, None], attributes={"units": NASTY})
    store = LocalStore(tmp_path / "r")
    store.set(f"{NASTY}/type{NASTY}/zarr.json", v3(data_type=NASTY)["zarr.json"])
    store.set(f"{NASTY}/codec/zarr.json", v3(codecs=[{"name": NASTY, "configuration": {NASTY: NASTY}}])["zarr.json"])
    store.set(f"{NASTY}/grid/zarr.json", v3(chunk_grid={"name": NASTY})["zarr.json"])
    store.set(f"{NASTY}/member/zarr.json", v3(**{NASTY: NASTY})["zarr.json"])
    store.set(f"{NASTY}/broken/zarr.json", f"{{{NASTY}".encode())
    return tmp_path / "r"


class TestControlCharacters:
    def test_library_shows_them_escaped(self, nasty):
        root = omnizarr.open_group(nasty, mode="r")
        group = root[NASTY]
        shown = [repr(root), repr(root.tree()), root.tree()._repr_html_(), repr(group), str(root.info), str(group.info),
                 repr(group.info_complete()), str(group.attrs), root._repr_html_(), group._repr_html_()]  # fmt: skip
        for _, node in root.members(max_depth=None):
            shown.append(repr(node))
            if isinstance(node, UnreadableNode):
                shown.append(str(node.error))
                continue
            if hasattr(node, "_repr_html_"):
                shown.append(node._repr_html_() or "")
            shown.append(str(node.info))
            if isinstance(node, omnizarr.Array):
                try:
                    node[...]
                except errors.OmnizarrError as error:
                    shown.append(str(error))
        with pytest.raises(errors.NodeNotFoundError) as caught:
            group["missing\x1b[2J"]
        shown.append(str(caught.value))
        shown.extend(map(str, omnizarr.check(nasty)))
        assert [text for text in shown if CONTROLS.search(text)] == []
        assert repr(root.tree()).count("\n") == sum(1 for _ in root.members(max_depth=None))

    @pytest.mark.parametrize(
        "command", ["tree", "ls", "ls -r", "ls -r --json", "info", "info --json", "check", "check --strict",
                    "check --json", "repair", "repair --json", "convert --dry-run"]
    )  # fmt: skip
    def test_commands_show_them_escaped(self, nasty, command, capsys, tmp_path):
        more = [str(tmp_path / "new")] if command.startswith("convert") else []
        main([*command.split(), str(nasty), *more])
        captured = capsys.readouterr()
        assert CONTROLS.findall(captured.out) == []
        assert CONTROLS.findall(captured.err) == []

    def test_netcdf_shows_them_escaped(self):
        store = {}
        root = omnizarr.create_group(store, zarr_format=2, attributes={"title": NASTY})
        root.create_array(NASTY, shape=2, dtype="i4", attributes={"units": NASTY, "_ARRAY_DIMENSIONS": [NASTY]})
        root.create_group(f"g{NASTY}")
        with netcdf.Dataset(store) as dataset:
            things = [dataset, *dataset.variables.values(), *dataset.groups.values(), *dataset.dimensions.values()]
            assert len(things) == 4
            assert [repr(thing) for thing in things if CONTROLS.search(repr(thing))] == []

    @pytest.mark.parametrize("command", ["get", "dump", "info", "tree", "ls", "check", "locate"])
    def test_commands_show_them_escaped_of_a_node_asked_for(self, nasty, command, capsys):
        for name in ("codec", NASTY, f"type{NASTY}", "broken", f"none{NASTY}"):
            main([command, f"{nasty}/{NASTY}/{name}"])
        captured = capsys.readouterr()
        assert CONTROLS.findall(captured.out) == []
        assert CONTROLS.findall(captured.err) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no C locale")
@pytest.mark.parametrize("command", ["tree", "ls", "info", "check", "get", "dump", "repair"])
@pytest.mark.sampled(3)
def test_commands_print_in_the_c_locale(tmp_path, command):
    root = omnizarr.create_group(tmp_path / "r", attributes={"größe": "café"})
    root.create_array("température", shape=2, dtype="i4", attributes={"units": "°C"})
    omnizarr.create_group(tmp_path / "r" / "groupe é")
    target = tmp_path / "r" / "température" if command == "get" else tmp_path / "r"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "omnizarr", *command.split(), str(target)],
        capture_output=True, env=environment, timeout=60, check=False,
    )  # fmt: skip
    assert b"Error" not in done.stderr, done.stderr
    assert done.returncode in {0, 1}
    assert done.stdout
