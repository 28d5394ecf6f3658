"""What a file or a directory that is not Zarr is called, and kinds of stores that packages add."""

import re
import sys
import zipfile

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import MetadataError, MissingDependencyError, NodeNotFoundError, StoreError
from omnizarr.model import plugins
from omnizarr.stores import LocalStore, MemoryStore, ReferenceStore, ZipStore, kinds, resolve

FILES = {
    "a NumPy file": b"\x93NUMPY\x01\0",
    "a table": b"PAR1",
    "a picture": b"\x89PNG\r\n",
    "an archive": b"\x1f\x8b\x08\0",
    "an HDF4 file": b"\x0e\x03\x13\x01",
}


@pytest.mark.parametrize("title", FILES)
@pytest.mark.parametrize("name", ["strange", "x.zarr", "x.nc"])
def test_file_of_another_format_is_called_what_it_is(tmp_path, title, name):
    (tmp_path / name).write_bytes(FILES[title])
    with pytest.raises(StoreError, match=title) as caught:
        omnizarr.open(tmp_path / name)
    kind = next(kind for kind in kinds.KINDS if kind.title == title)
    assert (caught.value.remedy or "") == kind.remedy


def test_user_block_does_not_hide_hdf5(tmp_path):
    (tmp_path / "x").write_bytes(bytes(512) + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(MetadataError, match="ends too early") as caught:
        omnizarr.open(tmp_path / "x")
    assert caught.value.spec == "HDF5 File Format Specification"


def test_table_that_is_called_as_references_can_be_is_a_table(tmp_path):
    (tmp_path / "x.parquet").write_bytes(FILES["a table"])
    with pytest.raises(StoreError, match="a table"):
        omnizarr.open(tmp_path / "x.parquet")


DIRECTORIES = {
    "an N5 hierarchy": {"attributes.json": b'{"n5": "4.0.0"}'},
    "an OCDBT database of TensorStore": {"manifest.ocdbt": b"\x0c\xdb"},
    "an Icechunk repository": {"refs/branch.main/ref.json": b'{"snapshot": "0"}'},
    "a volume of Neuroglancer": {"info": b'{"data_type": "uint8"}'},
}


@pytest.mark.parametrize("title", DIRECTORIES)
@pytest.mark.parametrize("path", ["", "a/b"])
def test_directory_of_another_format_is_called_what_it_is(title, path):
    values = {f"{path}/{name}".lstrip("/"): value for name, value in DIRECTORIES[title].items()}
    with pytest.raises(NodeNotFoundError, match=title) as caught:
        omnizarr.open(values, path=path)
    assert caught.value.remedy


def test_directory_with_files_of_such_names_is_only_missing_a_node():
    with pytest.raises(NodeNotFoundError, match="no node here: expected"):
        omnizarr.open({"attributes.json": b"{}", "info": b"see the manual", "repo": b"git"})


def test_file_at_a_url_is_called_what_it_is():
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    import fsspec

    fsspec.filesystem("memory").pipe("/kinds/x.npy", FILES["a NumPy file"])
    with pytest.raises(NodeNotFoundError, match="but a NumPy file"):
        omnizarr.open("fsspec+memory://kinds/x.npy")


@pytest.mark.rules
def test_no_ending_scheme_or_marker_is_said_twice():
    own = [each for kind in kinds.KINDS for each in (*kind.schemes, *kind.endings)]
    assert len(own) == len(set(own))
    own_markers = {
        ".zmetadata",
        "data.mdb",
        "refs/branch.main/ref.json",
        "repo",
        "attributes.json",
        "info",
        "../info",
        "manifest.ocdbt",
    }
    assert set(kinds.markers()) == own_markers
    assert not [kind.title for kind in kinds.KINDS if not any(kind[1:7])]


# -- kinds of packages

PACKAGE = """
from omnizarr.stores.kinds import Kind
from omnizarr.stores import MemoryStore

def open_lines(place):
    store, key = place.file()
    text = store.get(key)
    if text is None:
        return None
    pairs = (line.split(b"=", 1) for line in bytes(text).splitlines()[1:])
    return MemoryStore({key.decode(): value for key, value in pairs}, read_only=place.read_only), ""

LINES = Kind("a file of lines", open_lines, existing=(".lines",), heads=((0, b"#lines"),))

def open_shelf(place):
    place.refuse_options()
    return MemoryStore({"zarr.json": b"{}"}), place.text.partition("://")[2]

def open_box(place):
    return (MemoryStore({"boxed": b"1"}), "") if place.mode == "r" else None

broken = 1
"""
POINTS = """
[omnizarr.stores]
.lines = kinds_of_others:LINES
shelf = kinds_of_others:open_shelf
.box = kinds_of_others:open_box
.xlsx = missing_package_of_kinds:TABLE
"""
DOCUMENT = b'zarr.json={"zarr_format":3,"node_type":"group","attributes":{"a":1}}'


@pytest.fixture
def package(tmp_path_factory, monkeypatch):
    """A distribution with kinds of stores."""
    place = tmp_path_factory.mktemp("installed")
    (place / "kinds_of_others.py").write_text(PACKAGE)
    described = place / "kinds_of_others-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: kinds-of-others\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(place))
    plugins.entry_points.cache_clear()
    yield
    sys.modules.pop("kinds_of_others", None)
    plugins.entry_points.cache_clear()


@pytest.mark.parametrize("name", ["x.lines", "x"])
def test_file_of_a_package_is_opened_by_its_name_and_by_its_head(package, tmp_path, name):
    (tmp_path / name).write_bytes(b"#lines\n" + DOCUMENT)
    assert omnizarr.open(tmp_path / name).attrs["a"] == 1


def test_file_of_a_package_is_opened_at_a_url(package):
    memory = resolve("memory://kinds-of-others", "a")[0]
    memory.set("below/x.lines", b"#lines\n" + DOCUMENT)
    assert omnizarr.open("memory://kinds-of-others/below/x.lines").attrs["a"] == 1
    with pytest.raises(NodeNotFoundError):
        omnizarr.open("memory://kinds-of-others/below/y.lines")


def test_name_of_existing_files_of_a_package_is_free_for_directories(package, tmp_path):
    omnizarr.create_group(tmp_path / "x.lines")
    assert isinstance(resolve(tmp_path / "x.lines")[0], LocalStore)


def test_scheme_of_a_package_is_known(package):
    assert resolve("shelf://a/b")[1] == "a/b"
    with pytest.raises(StoreError, match="mean nothing"):
        resolve("shelf://a/b", storage_options={"secret": 1})
    with pytest.raises(StoreError, match="no store is known") as caught:
        resolve("shelv://a")
    assert "shelf://" in str(caught.value.remedy)


def test_directory_is_of_the_package_that_its_ending_names(package, tmp_path):
    (tmp_path / "x.box").mkdir()
    assert list(resolve(tmp_path / "x.box")[0].list()) == ["boxed"]
    assert isinstance(resolve(tmp_path / "x.box", "a")[0], LocalStore)  # it said that it was none
    omnizarr.create_group(LocalStore(tmp_path / "x.box"))
    assert isinstance(resolve(tmp_path / "x.box")[0], LocalStore)


def test_package_that_is_missing_is_named(package, tmp_path):
    (tmp_path / "x.xlsx").write_bytes(FILES["a table"])
    with pytest.raises(MissingDependencyError, match="missing_package_of_kinds"):
        resolve(tmp_path / "x.xlsx")


def test_registered_kind_opens_what_was_only_recognised(tmp_path, monkeypatch):
    monkeypatch.setattr(kinds.PLUGINS, "_registered", {})
    seen = []
    opens = lambda place: seen.append(place) or (MemoryStore({}), "inside")  # noqa: E731
    kinds.PLUGINS.register(".npy", kinds.Kind("a NumPy file", opens, existing=(".npy",), heads=((0, b"\x93NUMPY"),)))
    for name in ("x.npy", "strange"):
        (tmp_path / name).write_bytes(FILES["a NumPy file"])
        assert resolve(tmp_path / name)[1] == "inside"
    assert [place.is_named for place in seen] == [True, False]


def test_usual_names_ask_no_package(tmp_path, monkeypatch):
    def find(name):
        raise AssertionError(name)

    omnizarr.create_array(tmp_path / "x.zarr", data=np.arange(3))
    omnizarr.create_array(tmp_path / "x.v2", data=np.arange(3))
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("zarr.json", (tmp_path / "x.zarr" / "zarr.json").read_text())
    (tmp_path / "x.json").write_text('{"version": 1, "refs": {}}')
    monkeypatch.setattr(kinds.PLUGINS, "find", find)
    for name, expected in {
        "x.zarr": LocalStore,
        "x.v2": LocalStore,
        "x.zip": ZipStore,
        "x.json": ReferenceStore,
    }.items():
        assert isinstance(resolve(tmp_path / name)[0], expected)
    resolve("memory://a/b.zarr")


@pytest.mark.rules
def test_heads_are_within_what_is_read():
    assert max((start or 0) + len(head) for kind in kinds.KINDS for start, head in kind.heads) <= kinds.HEAD
    assert all(
        re.fullmatch(r"(\.[a-z0-9]+)+", each) for kind in kinds.KINDS for each in (*kind.endings, *kind.existing)
    )


def test_packages_are_not_asked_for_files_within_hierarchies_with_the_usual_ending(monkeypatch):
    monkeypatch.setattr(plugins, "entry_points", lambda group: pytest.fail(f"{group}: to look for it takes 10 ms"))
    assert kinds.file_within("data/x.zarr/a/b") is None
    assert kinds.file_within("data/x.h5/g") == ("data/x.h5", "g")
