"""`omnizarr.nodes.replacing`: what is overwritten stays until what replaces it is complete."""

import asyncio
import errno
import itertools
import os
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.nodes import replacing
from omnizarr.storage import StorePath
from omnizarr.stores import FsspecStore, LocalStore
from omnizarr.stores.local import folders, staging
from tests.concurrency.places import STORES

VALUES = np.arange(24.0).reshape(4, 6)
NEW = VALUES * 2 + 1
FORMATS = (1, 2, 3, "3-draft2019", "3-draft2020")
KINDS = ("memory", "local", "zip", "sqlite", "object", "fsspec", "cached")
PLACES = [*((kind, 3) for kind in KINDS), *(("local", number) for number in FORMATS if number != 3), ("sqlite", 2)]


class Foreign:
    """An array of another library, of which nothing is known. It changes values while they are read."""

    def __init__(self, source, fail=None, after=0):
        self.shape, self.dtype, self.ndim = source.shape, source.dtype, source.ndim
        self._source, self._fail, self._left = source, fail, after

    def __getitem__(self, selection):
        self._left -= 1
        if self._fail is not None and self._left < 0:
            raise self._fail("source")
        return np.asarray(self._source[selection]) * 2 + 1

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[...], dtype)


def of_dask(source):
    import dask.array

    return dask.array.from_array(source, chunks=(2, 3), asarray=True) * 2 + 1


def to_dask(data):
    import dask.array

    return data if isinstance(data, dask.array.Array) else dask.array.from_array(data, chunks=(2, 3))


def from_array(store, name, data):
    omnizarr.from_array(store, name=name, data=data, overwrite=True)


def create_array(store, name, data):
    omnizarr.create_array(store, name=name, data=data, chunks=(2, 3), overwrite=True)


def create_with_mode_w(store, name, data):
    omnizarr.array(data, store=store, path=name, mode="w")


def save(store, name, data):
    omnizarr.save(store, data, path=name)


def set_item(store, name, data):
    omnizarr.open_group(store, mode="r+")[name] = data


def create_in_group(store, name, data):
    omnizarr.open_group(store, mode="r+").create_array(name, data=data, overwrite=True)


def copy(store, name, data):
    data.name, data.nbytes, data.attrs = name, 0, {"copied": 1}
    omnizarr.copy(data, omnizarr.open_group(store, mode="r+"), name, if_exists="replace")


def copy_into_other_layout(store, name, data):
    data.name, data.nbytes, data.attrs = name, 0, {}
    group = omnizarr.open_group(store, mode="r+")
    omnizarr.copy(data, group, name, if_exists="replace", without_attrs=True, chunks=(4, 1))


def create_in_loop(store, name, data):
    asyncio.run(aio.create_array(store, name=name, data=data, overwrite=True))


def set_in_loop(store, name, data):
    async def run():
        group = await aio.open_group(store, mode="r+")
        await group.create_array(name, data=data, overwrite=True)

    asyncio.run(run())


def store_dask(store, name, data):
    from omnizarr.interop.dask import to_zarr

    to_zarr(to_dask(data), store, name=name, overwrite=True)


VERBS = {
    verb.__name__: verb
    for verb in (
        from_array,
        create_array,
        create_with_mode_w,
        save,
        set_item,
        create_in_group,
        copy,
        copy_into_other_layout,
        create_in_loop,
        set_in_loop,
        store_dask,
    )
}
IN_BLOCKS = {"create_array", "copy_into_other_layout", "store_dask"}
IN_GROUPS = {"set_item", "create_in_group", "copy", "copy_into_other_layout", "set_in_loop"}


def save_group(store, arrays):
    omnizarr.save(store, path="g", **arrays)


def write_dataset(store, arrays):
    import xarray

    from omnizarr.interop.xarray import to_zarr

    lazy = {name: (("x", "y"), to_dask(data)) for name, data in arrays.items()}
    to_zarr(xarray.Dataset(lazy), store, group="g", mode="w", consolidated=False)


GROUP_VERBS = {verb.__name__: verb for verb in (save_group, write_dataset)}


@pytest.fixture
def store(kind, tmp_path):
    made = STORES[kind](str(tmp_path / "s"))
    yield made
    made.close()


def fill(store, zarr_format):
    """Make a hierarchy with the arrays g/a and g/b."""
    for number, name in enumerate(("g/a", "g/b")):
        options = {"attributes": {"old": number}, "chunks": (2, 2), "zarr_format": zarr_format}
        omnizarr.create_array(store, name=name, data=VALUES + number, **options)


def content(store):
    return {key: bytes(store.get(key)) for key in store.list()}


def files_in(folder):
    """Return all files and directories, also hidden ones."""
    return sorted(f"{at}/{name}" for at, below, names in os.walk(folder) for name in (*below, *names))


def expect_nothing_else(store, tmp_path):
    if isinstance(store, LocalStore):
        assert not [path for path in files_in(store.root) if ".omnizarr" in path]
    assert not [path for path in files_in(tmp_path) if path.endswith((".new", ".old"))]


def skip_unfit(verb, zarr_format):
    if zarr_format == 1 and verb in IN_GROUPS | GROUP_VERBS.keys():
        pytest.skip("v1 has no groups")


def _of_zarr_python(folder, path):
    import zarr

    return zarr.open_array(str(folder / "s"), path=path, mode="r")


def _of_fsspec(folder, path):
    import fsspec

    return omnizarr.open_array(FsspecStore(fsspec.filesystem("file"), str(folder / "s")), path=path, mode="r")


def _of_link(folder, path):
    folder.joinpath("link").symlink_to("s")
    return omnizarr.open_array(folder / "link", path=path, mode="r")


SPELLINGS = {
    "array": lambda folder, path: Foreign(omnizarr.open_array(folder / "s", path=path, mode="r")),
    "view": lambda folder, path: Foreign(omnizarr.open_array(folder / "s", path=path, mode="r+")),
    "relative": lambda _, path: Foreign(omnizarr.open_array("s", path=path, mode="r")),
    "link": lambda folder, path: Foreign(_of_link(folder, path)),
    "URL": lambda folder, path: Foreign(omnizarr.open_array(f"file://{folder}/s", path=path, mode="r")),
    "fsspec": lambda folder, path: Foreign(_of_fsspec(folder, path)),
    "zarr-python": lambda folder, path: Foreign(_of_zarr_python(folder, path)),
    "dask": lambda folder, path: of_dask(omnizarr.open_array(folder / "s", path=path, mode="r")),
    "dask of zarr-python": lambda folder, path: of_dask(_of_zarr_python(folder, path)),
}
"""Ways to reach what is replaced."""


ERRORS = (OSError, KeyboardInterrupt)
FAILURES = [*((place, ERRORS[0]) for place in PLACES), *(((kind, 3), ERRORS[1]) for kind in ("memory", "local", "zip"))]


@pytest.mark.parametrize(("kind", "zarr_format"), PLACES)
@pytest.mark.parametrize("verb", VERBS)
def test_array_is_replaced_by_what_is_read_from_it(store, kind, zarr_format, verb, tmp_path):
    skip_unfit(verb, zarr_format)
    fill(store, zarr_format)
    old = omnizarr.open_array(store, path="g/a", mode="r")
    VERBS[verb](store, "g/a", Foreign(old))
    assert np.array_equal(omnizarr.open_array(store, path="g/a", mode="r")[...], NEW)
    assert np.array_equal(omnizarr.open_array(store, path="g/b", mode="r")[...], VALUES + 1)
    expect_nothing_else(store, tmp_path)


@pytest.mark.parametrize("path", ["", "g/a"])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("verb", [verb for verb in VERBS if not verb.startswith("copy")])
def test_array_is_replaced_by_what_is_read_from_it_by_another_name(tmp_path, monkeypatch, verb, spelling, path):
    if not path and verb in IN_GROUPS:
        pytest.skip("the root is in no group")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "s"
    omnizarr.create_array(folder, name=path, data=VALUES, chunks=(2, 2))
    VERBS[verb](LocalStore(folder), path, SPELLINGS[spelling](tmp_path, path))
    assert np.array_equal(omnizarr.open_array(folder, path=path, mode="r")[...], NEW)


@pytest.mark.parametrize("number", range(len(FAILURES)))
@pytest.mark.parametrize("verb", VERBS)
def test_array_stays_if_its_source_fails(verb, number, tmp_path, monkeypatch):
    (kind, zarr_format), error = FAILURES[number]
    skip_unfit(verb, zarr_format)
    monkeypatch.setattr("omnizarr.nodes.creating.BLOCK_BYTES", 100)
    with STORES[kind](str(tmp_path / "s")) as store:
        fill(store, zarr_format)
        before = content(store)
        with pytest.raises(error, match="source"):
            VERBS[verb](store, "g/a", Foreign(VALUES, error, after=int(verb in IN_BLOCKS)))
        assert content(store) == before
        expect_nothing_else(store, tmp_path)


@pytest.mark.parametrize(("kind", "zarr_format"), [place for place in PLACES if place[1] != 1])
@pytest.mark.parametrize("verb", GROUP_VERBS)
def test_group_is_replaced_by_what_is_read_from_it(store, kind, zarr_format, verb, tmp_path):
    fill(store, zarr_format)
    group = omnizarr.open_group(store, path="g", mode="r")
    GROUP_VERBS[verb](store, {"new": Foreign(group["a"]), "b": Foreign(group["b"])})
    again = omnizarr.open_group(store, path="g", mode="r")
    assert sorted(again) == ["b", "new"]
    assert np.array_equal(again["new"][...], NEW)
    assert np.array_equal(again["b"][...], (VALUES + 1) * 2 + 1)
    expect_nothing_else(store, tmp_path)


@pytest.mark.parametrize("number", range(len(FAILURES)))
@pytest.mark.parametrize("verb", GROUP_VERBS)
def test_group_stays_if_a_source_fails(verb, number, tmp_path):
    (kind, zarr_format), error = FAILURES[number]
    skip_unfit(verb, zarr_format)
    with STORES[kind](str(tmp_path / "s")) as store:
        fill(store, zarr_format)
        before = content(store)
        group = omnizarr.open_group(store, path="g", mode="r")
        with pytest.raises(error, match="source"):
            GROUP_VERBS[verb](store, {"a": Foreign(group["a"]), "new": Foreign(group["b"], error)})
        assert content(store) == before
        expect_nothing_else(store, tmp_path)


def test_values_that_cannot_be_stored_replace_nothing(tmp_path):
    for values, dtype in (
        (np.array(["1", "b"]), "float64"),
        (np.array(["a", None], object), "string"),
        (np.array(["a", chr(0xD800)], object), "string"),
        (np.array([b"a", 1], object), "bytes"),
    ):
        omnizarr.create_array(tmp_path / "a", data=np.arange(2), overwrite=True)
        before = content(LocalStore(tmp_path / "a"))
        with pytest.raises((TypeError, ValueError)):
            omnizarr.create_array(tmp_path / "a", data=values, dtype=dtype, overwrite=True)
        assert content(LocalStore(tmp_path / "a")) == before


def test_files_of_others_stay(tmp_path):
    for folder in ("g", "g/a", "g/a/c/0"):
        omnizarr.create_array(tmp_path, name="g/a", data=VALUES, chunks=(2, 2), overwrite=True)
        tmp_path.joinpath(folder, "README.md").write_text("by hand")
        omnizarr.create_array(tmp_path, name="g/a", data=Foreign(VALUES), chunks=(2, 2), overwrite=True)
        assert np.array_equal(omnizarr.open_array(tmp_path, path="g/a", mode="r")[...], NEW)
        assert tmp_path.joinpath(folder, "README.md").read_text() == "by hand"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("path", ["", "a"])
def test_exchange_happens_whole_or_not_at_all(tmp_path, monkeypatch, error, path):
    rename = os.rename
    for at in range(5):
        folder = tmp_path / str(at)
        omnizarr.create_array(folder, name=path, data=VALUES, zarr_format=2, chunks=(4, 3), attributes={"old": 1})
        before = content(LocalStore(folder))
        calls = itertools.count()

        def failing(old, new, calls=calls, at=at, **folders):
            if next(calls) == at:
                raise error("rename")
            rename(old, new, **folders)

        with monkeypatch.context() as patch:
            patch.setattr(staging.os, "rename", failing)
            is_copied = error is OSError and path != ""  # then the values are copied instead
            with suppress(OSError) if is_copied else pytest.raises((error, OSError), match="rename"):
                omnizarr.create_array(folder, name=path, data=Foreign(VALUES), overwrite=True)
        if is_copied:
            assert np.array_equal(omnizarr.open_array(folder, path=path, mode="r")[...], NEW)
        else:
            assert content(LocalStore(folder)) == before
        expect_nothing_else(LocalStore(folder), tmp_path)


KILLED = """
import os, signal, sys
import numpy as np, omnizarr

class Source:
    shape, dtype, ndim = (4, 6), np.dtype("float64"), 2
    def __getitem__(self, selection):
        os.kill(os.getpid(), signal.SIGKILL)

omnizarr.create_array(sys.argv[1], name="a", data=Source(), chunks=(2, 2), overwrite=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_array_stays_if_its_writer_is_killed(tmp_path):
    store = LocalStore(tmp_path / "s")
    omnizarr.create_array(store, name="a", data=VALUES, chunks=(2, 2))
    before = content(store)
    assert subprocess.run([sys.executable, "-c", KILLED, store.root], check=False).returncode < 0
    assert content(store) == before
    assert not store.list_dir("").others
    assert [finding.code for finding in omnizarr.check(store).findings] == ["temporary-file"]
    omnizarr.create_array(store, name="a", data=Foreign(VALUES), overwrite=True)  # the next one removes what is left
    expect_nothing_else(store, tmp_path)


KILLED_AGAIN = """
import os, signal, sys
import omnizarr

at, verb, name, *failing = sys.argv[1:]
group = omnizarr.open_group(at, mode="r+")
seen = 0

def die(*_):
    global seen
    seen += 1
    if seen >= 6 and failing:
        raise PermissionError(13, "not yours")
    if seen == (14 if name == "g" else 6):
        os.kill(os.getpid(), signal.SIGKILL)

unlink, remove = os.unlink, os.remove
os.unlink = os.remove = lambda *args, **kwargs: (die(), unlink(*args, **kwargs))
if verb == "del":
    del group[name]
elif verb == "delete_node":
    omnizarr.delete_node(at, path=name, recursive=True)
elif verb == "copy":
    from omnizarr.nodes.copying import Copier
    copy = Copier._copy_within
    Copier._copy_within = lambda *args: (die(), copy(*args))[1]
    group.copy("g/a", name)
elif verb == "create_group":
    group.create_group(name, overwrite=True)
else:
    group.create_array(name, shape=(5, 5), chunks=(1, 1), dtype="f8", overwrite=True)
"""


def stop_while(path, *what):
    program = [sys.executable, "-c", KILLED_AGAIN, str(path), *what]
    env = {**os.environ, "OMNIZARR_ENGINE": "reference"}
    return subprocess.run(program, env=env, stderr=subprocess.DEVNULL, check=False).returncode


def kill_while(*what):
    assert stop_while(*what) < 0


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("verb", ["del", "delete_node"])
def test_array_does_not_show_chunks_that_a_killed_deletion_left(tmp_path, verb, zarr_format, overwrite):
    group = omnizarr.create_group(tmp_path, zarr_format=zarr_format)
    group.create_array("a", data=VALUES, chunks=(1, 1))
    kill_while(tmp_path, verb, "a")
    assert "a" not in group
    left = [path for path in (tmp_path / "a").rglob("*") if path.is_file() and path.name[0] in "0123456789"]
    assert 0 < len(left) < VALUES.size
    if verb == "delete_node" and not overwrite:  # it may go on: it holds no lock while it deletes chunks
        with pytest.raises(omnizarr.errors.NodeExistsError, match=r"its deletion was interrupted.*delete it again"):
            group.create_array("a", shape=VALUES.shape, dtype="f8")
        omnizarr.delete_node(tmp_path, path="a")
        assert not (tmp_path / "a").exists()
    new = group.create_array("a", shape=VALUES.shape, chunks=(1, 1), dtype="f8", fill_value=-1, overwrite=overwrite)
    assert (new[...] == -1).all()
    del group["a"]
    assert not (tmp_path / "a").exists()


AGAIN = {
    "array": lambda _: None,
    "group": lambda group: group.create_group("g"),
    "several": lambda group: dict(group.create_hierarchy({"g": omnizarr.create_group({}).metadata})),
}


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    ("verb", "first"), [("del", "array"), ("del", "several"), ("create_group", "group"), ("delete_node", "array")]
)
def test_array_in_a_group_does_not_show_chunks_that_a_killed_deletion_of_the_group_left(tmp_path, verb, first):
    group = omnizarr.create_group(tmp_path)
    for name in ("g/a", "g/b") if verb != "delete_node" else ("g/a",):
        group.create_array(name, data=VALUES, chunks=(1, 1))
    kill_while(tmp_path, verb, "g")
    assert "g/a" not in group
    if verb == "delete_node":
        with pytest.raises(omnizarr.errors.NodeExistsError, match="its deletion was interrupted"):
            group.create_array("g/a", shape=VALUES.shape, chunks=(1, 1), dtype="f8")
        omnizarr.delete_node(tmp_path, path="g", recursive=True)
    is_left = "g/b" in group
    AGAIN[first](group)
    new = group.create_array("g/a", shape=VALUES.shape, chunks=(1, 1), dtype="f8", fill_value=-1)
    assert (new[...] == -1).all()
    assert not is_left or np.array_equal(group["g/b"][...], VALUES)  # the deletion had not come to it
    assert not list(tmp_path.rglob("omnizarr-conversion.json"))


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_files_of_others_stay_where_a_killed_replacement_of_a_group_is_cleared(tmp_path):
    group = omnizarr.create_group(tmp_path)
    group.create_array("g/a", data=VALUES, chunks=(1, 1))
    (tmp_path / "g" / "photos").mkdir()
    files = [tmp_path / "g" / "2024", tmp_path / "g" / "photos" / "0.1"]
    for file in files:
        file.write_text("of another program")
    kill_while(tmp_path, "create_group", "g")
    assert "g/a" not in group
    group.create_array("g/b", shape=3, dtype="i2")
    assert not (tmp_path / "g" / "a").exists()
    assert [file.read_text() for file in files] == ["of another program"] * 2


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize(("verb", "source"), [("create_array", "a"), ("copy", "g/a")])
def test_array_does_not_show_chunks_that_a_killed_replacement_or_copy_left(tmp_path, verb, source):
    group = omnizarr.create_group(tmp_path)
    group.create_array(source, data=VALUES, chunks=(1, 1))
    kill_while(tmp_path, verb, "a")
    assert "a" not in group
    new = group.create_array("a", shape=VALUES.shape, chunks=(1, 1), dtype="f8", fill_value=-1)
    assert (new[...] == -1).all()


@pytest.mark.parametrize("name", ["g/a", "g"])
def test_array_does_not_show_chunks_of_a_deletion_that_failed(tmp_path, name):
    group = omnizarr.create_group(tmp_path)
    group.create_array("g/a", data=VALUES, chunks=(1, 1))
    assert stop_while(tmp_path, "del", name, "failing") == 1
    assert "g/a" not in group
    new = group.create_array("g/a", shape=VALUES.shape, chunks=(1, 1), dtype="f8", fill_value=-1)
    assert (new[...] == -1).all()
    assert not list(tmp_path.rglob("omnizarr-conversion.json"))


def test_array_does_not_show_chunks_of_a_node_whose_document_became_the_lock_file(tmp_path):
    """As a deletion by the native engine leaves it, if it is killed after its first step."""
    group = omnizarr.create_group(tmp_path)
    group.create_array("a", data=VALUES, chunks=(2, 2))
    (tmp_path / "a" / "zarr.json").rename(tmp_path / "a" / ".omnizarr-zarr.json.lock")
    (tmp_path / "a" / "README").write_text("of another program")
    new = group.create_array("a", shape=VALUES.shape, chunks=(2, 2), dtype="f8", fill_value=-1)
    assert (new[...] == -1).all()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["README", "zarr.json"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_array_does_not_show_chunks_that_a_deletion_left_which_failed(tmp_path, monkeypatch, zarr_format, error):
    monkeypatch.setattr(folders, "native", lambda: None)
    group = omnizarr.create_group(tmp_path, zarr_format=zarr_format)
    array = group.create_array("a", data=VALUES, chunks=(1, 1))
    unlink, calls = os.unlink, itertools.count()

    def failing(*args, **kwargs):
        if next(calls) == 6:
            raise error(errno.EIO, "unlink")
        unlink(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", failing)
        patch.setattr(os, "remove", failing)
        with pytest.raises((error, omnizarr.errors.StoreError), match="unlink"):
            del group["a"]
    assert "a" not in group
    left = [path for path in (tmp_path / "a").rglob("*") if path.is_file() and path.name[0] in "0123456789"]
    assert 0 < len(left) < VALUES.size
    with pytest.raises(omnizarr.errors.NodeNotFoundError):  # it has the lock, too, before the next writer
        array.attrs["x"] = 1
    with pytest.raises(omnizarr.errors.NodeNotFoundError):
        array.resize((5, 6))
    new = group.create_array("a", shape=VALUES.shape, chunks=(1, 1), dtype="f8", fill_value=-1)
    assert (new[...] == -1).all()
    del group["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["zarr.json" if zarr_format == 3 else ".zgroup"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("within", [False, True])
def test_copy_does_not_show_chunks_that_an_unfinished_deletion_left(tmp_path, within, overwrite):
    group = omnizarr.create_group(tmp_path)
    source = group.create_array("new/a", shape=VALUES.shape, chunks=(1, 1), dtype="f8", fill_value=-1)
    source[0, 0] = 7
    group.create_array("old/a", data=VALUES, chunks=(1, 1))
    (tmp_path / "old" / "a" / "zarr.json").unlink()
    (tmp_path / "old" / "zarr.json").unlink()
    (tmp_path / "old" / ("." if within else "a") / ".omnizarr-zarr.json.lock").write_text("deleting")
    if within:
        group.copy("new", "old", overwrite=overwrite)
    else:
        group.copy("new/a", "old/a", overwrite=overwrite)
    assert np.array_equal(group["old/a"][...], source[...])


def test_array_does_not_show_chunks_of_a_copy_that_was_interrupted(tmp_path, monkeypatch):
    group = omnizarr.create_group(tmp_path)
    group.create_array("a", data=VALUES + 1, chunks=(1, 1))
    place, calls = LocalStore._place, itertools.count()

    def failing(self, key, *args, **options):
        if key.startswith("b/") and next(calls) == 9:
            raise KeyboardInterrupt("set")
        place(self, key, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "_place", failing)
        with pytest.raises(KeyboardInterrupt, match="set"):
            group.copy("a", "b")
    assert (tmp_path / "b" / "c").exists()
    new = group.create_array("b", shape=VALUES.shape, chunks=(1, 1), dtype="f8", fill_value=-1)
    assert (new[...] == -1).all()


@pytest.mark.parametrize(
    "text", [b"{broken", b"\xff", b"[1]", b'{"omnizarr_conversion": 3}', b'{"other": {"options": 1}}']
)
def test_array_is_created_beside_a_file_that_has_the_name_of_the_note(tmp_path, text):
    group = omnizarr.create_group(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "omnizarr-conversion.json").write_bytes(text)
    assert group.create_array("a", data=VALUES)[0, 5] == VALUES[0, 5]
    assert (tmp_path / "a" / "omnizarr-conversion.json").read_bytes() == text


def test_array_shows_chunks_that_were_there_without_a_document(tmp_path):
    """As zarr-python does: so the documents of an array can be written again."""
    group = omnizarr.create_group(tmp_path)
    group.create_array("a", data=VALUES, chunks=(2, 2))
    (tmp_path / "a" / "zarr.json").unlink()
    new = group.create_array("a", shape=VALUES.shape, chunks=(2, 2), dtype="f8")
    assert np.array_equal(new[...], VALUES)


def test_another_writer_replaces_what_is_being_made(tmp_path):
    class Source(Foreign):
        def __getitem__(self, selection):
            omnizarr.create_array(tmp_path, data=VALUES + 5, overwrite=True)
            return super().__getitem__(selection)

    omnizarr.create_array(tmp_path, data=VALUES)
    with pytest.raises(omnizarr.errors.ConflictError, match="another writer"):
        omnizarr.create_array(tmp_path, data=Source(VALUES), overwrite=True)
    assert np.array_equal(omnizarr.open_array(tmp_path, mode="r")[...], VALUES + 5)
    expect_nothing_else(LocalStore(tmp_path), tmp_path)


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("old_format", FORMATS)
@pytest.mark.parametrize("path", ["", "a"])
def test_array_of_another_format_is_replaced(tmp_path, old_format, zarr_format, path):
    is_draft = "draft" in f"{old_format}{zarr_format}"
    if path and is_draft and old_format != zarr_format:
        pytest.skip("a draft's hierarchy holds nothing else")
    if old_format == 1 and is_draft:
        pytest.skip("one has a file 'meta', the other a directory")
    omnizarr.create_array(tmp_path, name=path, data=VALUES, chunks=(2, 2), zarr_format=old_format)
    old = omnizarr.open_array(tmp_path, path=path, mode="r")
    omnizarr.create_array(tmp_path, name=path, data=Foreign(old), zarr_format=zarr_format, overwrite=True)
    found = omnizarr.open_array(tmp_path, path=path, mode="r")
    assert str(found.zarr_format) == str(zarr_format)
    assert np.array_equal(found[...], NEW)
    expect_nothing_else(LocalStore(tmp_path), tmp_path)


@pytest.mark.parametrize("kind", ["memory", "local", "zip"])
def test_node_stays_if_its_copy_fails(store, kind, tmp_path):
    from omnizarr.stores.wrap.faults import FaultyStore

    fill(store, 3)
    before = content(store)
    source = FaultyStore(STORES["memory"](""))
    fill(source, 3)
    faulty = omnizarr.open_group(source, mode="r")
    for path in ("g", "g/a"):
        source.fail("get", 6)
        with pytest.raises(OSError, match="injected"):
            replacing.copy(faulty.store_path / path, StorePath(store, path), overwrite=True)
        assert content(store) == before
        source.reset()
    expect_nothing_else(store, tmp_path)
