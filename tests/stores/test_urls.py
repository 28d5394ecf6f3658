"""Files of this machine as URLs, in every spelling, and references in dictionaries, wherever a path is taken."""

import json
import pathlib

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import ReadOnlyError, StoreError
from omnizarr.netcdf import Dataset
from omnizarr.stores import LocalStore, urls

VALUES = np.arange(12.0).reshape(3, 4)

SPELLINGS = {
    "file:/": lambda path: f"file:{path}",
    "file:///": lambda path: f"file://{path}",
    "FILE:///": lambda path: f"FILE://{path}",
    "file://localhost/": lambda path: f"file://localhost{path}",
    "encoded": lambda path: pathlib.Path(path).as_uri(),
    "encoded file:/": lambda path: pathlib.Path(path).as_uri().replace("://", ":"),
}


@pytest.fixture(params=SPELLINGS)
def spelled(request):
    return SPELLINGS[request.param]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a b").mkdir()
    return tmp_path / "a b"


@pytest.fixture
def path(folder):
    root = omnizarr.create_group(folder / "x.zarr")
    root.create_array("deep/t", data=VALUES, chunks=(2, 2), dimension_names=["y", "x"], attributes={"units": "K"})
    root.create_array("y", data=np.arange(3.0), dimension_names=["y"])
    return folder / "x.zarr"


READERS = {
    "open": lambda url: omnizarr.open(url, mode="r")["deep/t"][...],
    "open_array": lambda url: omnizarr.open_array(url, mode="r", path="deep/t")[...],
    "open_group": lambda url: omnizarr.open_group(url, mode="r")["deep/t"][...],
    "copy_node": lambda url: omnizarr.open(_copied(url))["deep/t"][...],
    "convert": lambda url: omnizarr.open(_converted(url))["deep/t"][...],
    "diff": lambda url: omnizarr.diff(url, url).equal and VALUES,
    "digest": lambda url: omnizarr.digest(url) and VALUES,
    "check": lambda url: omnizarr.check(url, data=True).ok and VALUES,
    "stat": lambda url: omnizarr.stat(url, path="deep/t") and VALUES,
    "du": lambda url: omnizarr.du(url) and VALUES,
    "missing": lambda url: list(omnizarr.missing(url, path="deep/t")) == [] and VALUES,
    "netcdf": lambda url: np.asarray(Dataset(url, "r")["deep/t"][...]),
    "xarray": lambda url: _xarray().open_dataset(url, engine="omnizarr", group="deep")["t"].to_numpy(),
}  # fmt: skip


def _copied(place):
    target = {}
    omnizarr.copy_node(place, target)
    return target


def _converted(place):
    target = {}
    omnizarr.convert(place, target, zarr_format=2, progress=False)
    return target


def _xarray():
    return pytest.importorskip("xarray")


@pytest.mark.parametrize("reader", READERS)
def test_everything_that_reads_takes_the_url_of_a_file(spelled, path, reader, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if reader == "netcdf" and spelled(str(path)).startswith("FILE"):
        pytest.skip("netCDF-C's rule for URLs: lower case")
    np.testing.assert_array_equal(READERS[reader](spelled(str(path))), VALUES)
    assert [each.name for each in tmp_path.iterdir()] == ["a b"]  # nothing was made in a directory "file:"


WRITERS = {
    "create_array": lambda url, _: omnizarr.create_array(url, data=VALUES),
    "create_group": lambda url, _: omnizarr.create_group(url).create_array("t", data=VALUES),
    "save": lambda url, _: omnizarr.save(url, VALUES),
    "convert": lambda url, source: omnizarr.convert(source, url),
    "copy_node": lambda url, source: omnizarr.copy_node(source, url),
    "move_node": lambda url, source: omnizarr.move_node(source, url),
    "zip": lambda url, source: omnizarr.copy_node(source, url + ".zip"),
    "omnizarr cp": lambda url, source: main(["cp", "--quiet", str(source), url]),
    "omnizarr mv": lambda url, source: main(["mv", "--quiet", str(source), url]),
    "omnizarr convert": lambda url, source: main(["convert", "--quiet", str(source), url]),
    "omnizarr create": lambda url, _: main(["create", url, "--shape", "3", "--dtype", "float64"]),
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_everything_that_writes_takes_the_url_of_a_file(spelled, folder, path, writer, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    WRITERS[writer](spelled(str(folder / "new one.zarr")), path)
    (made,) = {each.name for each in folder.iterdir()} - {"x.zarr"}
    assert made in {"new one.zarr", "new one.zarr.zip"}
    assert omnizarr.open(folder / made, mode="r") is not None
    assert [each.name for each in tmp_path.iterdir()] == ["a b"]


@pytest.mark.parametrize("command", ["info", "ls", "du", "stat", "check", "digest", "show"])
def test_commands_take_the_url_of_a_node(spelled, path, command, capsys):
    node = str(path / "deep/t") if command == "show" else str(path)
    assert main([command, spelled(node)]) == 0
    assert capsys.readouterr().out


def test_nodes_below_are_changed_through_the_group_above(spelled, path):
    """As through a path: the group keeps what it knows of its members."""
    omnizarr.consolidate_metadata(path)
    omnizarr.copy_node(path / "deep/t", spelled(str(path / "other/copy")))
    omnizarr.delete_node(spelled(str(path / "deep/t")))
    found = omnizarr.open_group(path, mode="r", use_consolidated=True)
    assert sorted(name for name, _ in found.members(None)) == ["deep", "other", "other/copy", "y"]


def test_a_file_of_another_machine_is_refused():
    with pytest.raises(StoreError, match="another machine"):
        omnizarr.open("file://elsewhere/x.zarr")
    assert urls.local_path("C:/x.zarr") is None
    assert urls.local_path("simplecache::file:///x.zarr") is None


# -- references in a dictionary --------------------------------------------------------------------


@pytest.fixture(params=["version 0", "version 1"])
def references(request, path):
    """References to the chunks of a hierarchy, with its files in all spellings."""
    store = LocalStore(path, read_only=True)
    names = list(SPELLINGS.values())
    entries = {}
    for number, key in enumerate(sorted(store.list())):
        file = path / key
        entries[key] = (
            bytes(store.get(key)).decode()
            if key.endswith("zarr.json")
            else [names[number % len(names)](str(file)), 0, file.stat().st_size]
        )
    return entries if request.param == "version 0" else {"version": 1, "refs": entries}


@pytest.fixture
def trusted(tmp_path):
    """Trust in references to the files of the test, for everything that is opened."""
    with omnizarr.config.set({"references.trust": [str(tmp_path)]}):
        yield


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("reader", READERS)
def test_everything_that_reads_takes_references_in_a_dictionary(references, reader):
    before = json.dumps(references)
    np.testing.assert_array_equal(READERS[reader](references), VALUES)
    assert json.dumps(references) == before


def test_references_in_a_dictionary_take_options_and_are_read_only(references):
    with pytest.raises(ReadOnlyError, match="references can only be read"):
        omnizarr.open_group(references, mode="r+")
    options = {"remote_protocol": "file", "references": "trusted"}
    found = omnizarr.open(references, mode="r", storage_options=options)
    np.testing.assert_array_equal(found["deep/t"][...], VALUES)


@pytest.mark.parametrize("given", [None, "inside", "public"])
def test_references_in_a_dictionary_to_files_elsewhere_are_refused_without_trust(
    references, given, tmp_path_factory, monkeypatch
):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    options = {} if given is None else {"references": given}
    array = omnizarr.open(references, mode="r", storage_options=options)["deep/t"]
    with pytest.raises(StoreError, match=r"only if you trust them.*storage_options=\{'references': 'trusted'\}"):
        array[...]


@pytest.mark.parametrize("options", [{"references": "trusted"}, {"references": "ROOT"}, "current directory"], ids=str)
def test_references_in_a_dictionary_to_local_files_are_read_with_trust_or_below_the_current_directory(
    references, options, tmp_path, tmp_path_factory, monkeypatch
):
    is_here = options == "current directory"
    monkeypatch.chdir(tmp_path if is_here else tmp_path_factory.mktemp("elsewhere"))
    trust = {} if is_here else {"references": [str(tmp_path)]} if options["references"] == "ROOT" else options
    found = omnizarr.open(references, mode="r", storage_options=trust)
    np.testing.assert_array_equal(found["deep/t"][...], VALUES)


def test_a_dictionary_of_bytes_stays_a_store():
    values = {}
    omnizarr.create_array(values, data=VALUES)
    assert all(isinstance(value, bytes) for value in values.values())
    np.testing.assert_array_equal(omnizarr.open(values, mode="r")[...], VALUES)
