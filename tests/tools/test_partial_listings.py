"""Stores that list less than they have: every tool does with them what it does with a store that lists everything."""

from collections.abc import Mapping, MutableMapping

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import ReadOnlyError
from omnizarr.storage import LoggingStore, TranslatedStore
from omnizarr.stores import CacheStore, MemoryStore, MetricsStore, PrefixStore, ReadOnlyStore, Store, verbs
from omnizarr.web.facts import Dataset

FORMATS = [1, 2, 3, "3-draft2019", "3-draft2020"]
DOCUMENTS = (
    *("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs"),
    *(".array.json", ".group.json", ".array", ".group"),
)


def is_document(key):
    return key.endswith(DOCUMENTS)


HIDING = {
    "documents": is_document,
    "half": lambda key: is_document(key) or sum(map(ord, key)) % 2 == 0,
}
"""Which keys are listed."""


class Listless(MemoryStore):
    """A store that has more than it lists."""

    def __init__(self, values, shows):
        super().__init__(values)
        self.shows = shows

    def get(self, key, span=None):
        return super().get(key, span)

    def list(self):
        return filter(self.shows, super().list())

    def list_prefix(self, prefix):
        return filter(self.shows, super().list_prefix(prefix))

    def list_dir(self, prefix):
        return Store.list_dir(self, prefix)


class Smallest(Store):
    """The same, with only the methods that a store needs."""

    def __init__(self, values, shows):
        self.values, self.shows = MemoryStore(values), shows

    def get(self, key, span=None):
        return self.values.get(key, span)

    def set(self, key, value):
        self.values.set(key, value)

    def delete(self, key):
        self.values.delete(key)

    def list(self):
        return filter(self.shows, self.values.list())


class View(Mapping):
    """A mapping that makes values when it is asked for them."""

    def __init__(self, values, shows):
        self.values, self.shows = values, shows

    def __getitem__(self, key):
        return self.values[key]

    def __iter__(self):
        return filter(self.shows, list(self.values))

    def __len__(self):
        return len(list(iter(self)))


class Dictionary(View, MutableMapping):
    """The same, to be written too."""

    def __setitem__(self, key, value):
        self.values[key] = value

    def __delitem__(self, key):
        del self.values[key]


def of_zarr_python(values, shows):
    storage = pytest.importorskip("zarr.storage")
    buffer = pytest.importorskip("zarr.core.buffer").default_buffer_prototype().buffer

    class TheirListless(storage.MemoryStore):
        async def list(self):
            async for key in super().list():
                if shows(key):
                    yield key

        async def list_prefix(self, prefix):
            async for key in super().list_prefix(prefix):
                if shows(key):
                    yield key

        async def list_dir(self, prefix):
            prefix = prefix.rstrip("/") + "/" if prefix else ""
            names = [key async for key in self.list_prefix(prefix)]
            for name in dict.fromkeys(key[len(prefix) :].partition("/")[0] for key in names):
                yield name

    return TheirListless({key: buffer.from_bytes(value) for key, value in values.items()})


WRITABLE = {
    "subclass": Listless,
    "smallest": Smallest,
    "mapping": Dictionary,
    "zarr-python": of_zarr_python,
    "cached": lambda *given: CacheStore(Listless(*given)),
    "logged": lambda *given: LoggingStore(Listless(*given)),
    "measured": lambda *given: MetricsStore(Listless(*given)),
}
KINDS = {
    **WRITABLE,
    "view": View,
    "read-only": lambda *given: ReadOnlyStore(Listless(*given)),
    "prefix": lambda values, shows: PrefixStore(
        Listless({f"a/{key}": value for key, value in values.items()}, lambda key: shows(key[2:])), "a"
    ),
}


@pytest.fixture(scope="module", params=FORMATS)
def hierarchy(request):
    """Return the values of a hierarchy in one of the formats, and whether it has groups."""
    values = {}
    has_groups = request.param != 1
    place = {"zarr_format": request.param}
    if has_groups:
        top = omnizarr.create_group(values, attributes={"title": "t"}, **place)
        array = top.create_array("a", shape=(5, 6), chunks=(2, 2), dtype="i4", fill_value=7)
        more = top.create_array("b/c", shape=(7,), chunks=(2,), dtype="f4", fill_value=0, compressors=None)
        more[:] = np.arange(7) + 1
        if request.param == 3:
            top.create_array("s", shape=(9,), chunks=(2,), shards=(4,), dtype="i2", fill_value=-1)[:6] = np.arange(6)
    else:
        array = omnizarr.create_array(values, shape=(5, 6), chunks=(2, 2), dtype="i4", fill_value=7, **place)
    array[1:, :4] = np.arange(16).reshape(4, 4)
    return values, "a" if has_groups else None


def contents(values):
    """Return all arrays and attributes of a hierarchy."""
    node = omnizarr.open(values, mode="r")
    if isinstance(node, omnizarr.Array):
        return node[...].tolist(), dict(node.attrs)
    found = {name: each[...].tolist() if isinstance(each, omnizarr.Array) else None for name, each in members(node)}
    return dict(node.attrs), found


def members(group):
    return sorted(group.members(max_depth=None))


def plain(values):
    return {key: bytes(value) for key, value in values.items()}


def converted(store, path):
    target = {}
    report = omnizarr.convert(store, target, zarr_format=2 if path else 3)
    assert not report.losses
    return contents(target), sorted(target)


def rechunked(store, path):
    target = {}
    omnizarr.rechunk(store, target, path=path, chunks=(3, 4))
    return contents(target), sorted(target)


def copied_store(store, path):
    target = {}
    return omnizarr.copy_store(store, target), plain(target)


def copied_node(store, path):
    target = {}
    done = omnizarr.copy_node(store, target, overwrite=True).to_dict()
    return {name: done[name] for name in done if name not in {"source", "target"}}, plain(target)


def copied(store, path):
    target = omnizarr.create_group({}, zarr_format=3)
    omnizarr.copy(omnizarr.open(store, mode="r", path=path), target, name="x")
    return contents(target.store), sorted(target.store.list())


def copied_all(store, path):
    node = omnizarr.open(store, mode="r")
    target = omnizarr.create_group({}, zarr_format=node.zarr_format if path else 3)
    if path:
        omnizarr.copy_all(node, target)
    return contents(target.store), sorted(target.store.list())


def counted(store, path):
    return omnizarr.stat(store).to_dict()


def digested(store, path):
    return [(each.path, each.digest) for each in omnizarr.digest(store)]


def checked(store, path, **options):
    report = omnizarr.check(store, **options)
    return [(each.code, each.path, each.key) for each in report.findings], report.chunks, report.missing


def checked_data(store, path):
    return checked(store, path, data=True)


def lacking(store, path):
    found = omnizarr.missing(store, path=path)
    return found.to_dict(), list(found)


def used(store, path):
    return omnizarr.du(store).to_dict()


def facts(store, path):
    array = omnizarr.open(store, mode="r", path=path)
    info = array.info_complete()
    return array.nchunks_initialized, array.nbytes_stored(), info.chunks_stored, info.nbytes_stored


def shown(store, path):
    view = TranslatedStore(store, zarr_format=2 if path else 3)
    values = {key: value for key in view.list() if (value := view.get(key)) is not None}
    return plain(values), sorted(verbs.list_sizes(view, ""))


def viewed(store, path):
    return Dataset(omnizarr.open(store, mode="r"), "x").chunks(path or "")


def advised(store, path):
    return {**omnizarr.advise(store, path=path).to_dict(), "place": None}


READING = {
    each.__name__: each
    for each in (
        *(converted, rechunked, copied_store, copied_node, copied, copied_all, counted, digested, checked),
        *(checked_data, lacking, used, facts, shown, viewed, advised),
    )
}


def everywhere(kinds, values):
    """Yield each kind of store with the values, and its name."""
    for name, make in kinds.items():
        for hiding, shows in HIDING.items():
            yield f"{name}, listing {hiding}", make(dict(values), shows)


@pytest.mark.parametrize("verb", READING)
def test_a_tool_finds_what_is_not_listed(verb, hierarchy):
    values, path = hierarchy
    expected = READING[verb](MemoryStore(dict(values)), path)
    for name, store in everywhere(KINDS, values):
        assert READING[verb](store, path) == expected, name


def resized(store, path):
    array = omnizarr.open(store, mode="r+", path=path)
    array.resize((3, 2))
    array.resize((9, 8))
    return array[...].tolist()


def deleted(store, path):
    """Delete an array, and see whether its elements come back."""
    node = omnizarr.open(store, mode="r+", path=path)
    again = {"shape": node.shape, "chunks": node.chunks, "dtype": node.dtype, "zarr_format": node.zarr_format}
    omnizarr.delete_node(store, path)
    return omnizarr.create_array(store, name=path, fill_value=7, **again)[...].tolist()


def overwritten(store, path):
    node = omnizarr.open(store, mode="r+", path=path)
    again = {"shape": node.shape, "chunks": node.chunks, "dtype": node.dtype, "zarr_format": node.zarr_format}
    return omnizarr.create_array(store, name=path, fill_value=7, overwrite=True, **again)[...].tolist()


def moved(store, path):
    target = {}
    omnizarr.move_node(store, target)
    return contents(target), sorted(key for key in target)


def repaired(store, path):
    omnizarr.repair(store, dry_run=False)
    return contents(store)


def pyramided(store, path):
    array = omnizarr.open(store, mode="r", path=path)
    if array.metadata.dialect not in {"v2", "v3"}:
        return None
    target = {}
    omnizarr.pyramid(store, target, path=path, levels=2, axes="yx")
    return contents(target)


WRITING = {each.__name__: each for each in (resized, deleted, overwritten, moved, repaired, pyramided)}


@pytest.mark.parametrize("verb", WRITING)
def test_a_tool_changes_what_is_not_listed(verb, hierarchy):
    values, path = hierarchy
    expected = WRITING[verb](MemoryStore(dict(values)), path)
    for name, store in everywhere(WRITABLE, values):
        assert WRITING[verb](store, path) == expected, name


@pytest.mark.parametrize("storage", [False, True])
def test_diff_finds_a_difference_in_what_is_not_listed(storage, hierarchy):
    values, path = hierarchy
    changed = MemoryStore(dict(values))
    omnizarr.open(changed, mode="r+", path=path)[4, 0] = -5
    for name, store in everywhere(KINDS, values):
        assert omnizarr.diff(store, dict(values), storage=storage).equal, name
        assert not omnizarr.diff(store, changed, storage=storage).equal, name
        assert not omnizarr.diff(changed, store, storage=storage).equal, name


def test_a_mapping_that_cannot_be_changed_is_read_as_it_is():
    values = {}
    omnizarr.create_array(values, shape=4, chunks=2, dtype="i2")[:] = [1, 2, 3, 4]
    view = View(values, is_document)
    array = omnizarr.open_array(view, mode="r")
    assert array[:].tolist() == [1, 2, 3, 4]
    with pytest.raises(ReadOnlyError):
        omnizarr.open_array(view, mode="r+")
    with pytest.raises(ReadOnlyError):
        array.store.with_read_only(False)


class Unfit(Listless):
    """A store that knows few keys."""

    def get(self, key, span=None):
        if key.endswith("omnizarr-conversion.json"):
            raise RuntimeError("no such key")
        return super().get(key, span)


def test_a_pyramid_that_cannot_begin_leaves_nothing():
    values = {}
    omnizarr.create_array(values, shape=(8, 8), chunks=(2, 2), dtype="u1")[:] = 1
    target = {}
    with pytest.raises(RuntimeError, match="no such key"):
        omnizarr.pyramid(Unfit(values, is_document), target, axes="yx")
    assert not target


@pytest.fixture
def tiff(tmp_path):
    """Yield an image in tiles as a store, which tifffile makes on demand, and its elements."""
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")
    pytest.importorskip("zarr", minversion="3")
    values = np.random.default_rng(5).integers(1, 200, (70, 90), "u1")
    tifffile.imwrite(tmp_path / "a.tif", values, tile=(32, 32))
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        yield file.aszarr(), values


@pytest.mark.parametrize("verb", READING)
def test_a_tool_finds_the_tiles_of_an_image(verb, tiff):
    store, _ = tiff
    assert READING[verb](store, None) == READING[verb](all_of(store), None)


def all_of(store):
    """Return the documents and tiles of an image as its store gives them to zarr-python."""
    sync = pytest.importorskip("zarr.core.sync").sync
    prototype = pytest.importorskip("zarr.core.buffer").default_buffer_prototype()
    keys = [".zarray", ".zattrs", *(f"{i}.{j}" for i in range(3) for j in range(3))]
    found = {key: sync(store.get(key, prototype)) for key in keys}
    return {key: value.to_bytes() for key, value in found.items() if value is not None}


def test_an_image_is_converted_and_compared(tiff):
    store, values = tiff
    target = {}
    omnizarr.convert(store, target)
    assert np.array_equal(omnizarr.open_array(target)[:], values)
    assert omnizarr.diff(store, target).equal
    omnizarr.open_array(target, mode="r+")[69, 89] += 1
    assert not omnizarr.diff(store, target).equal
    target = {}
    omnizarr.pyramid(store, target, axes="yx")
    assert np.array_equal(omnizarr.open_array(target, path="0")[:], values)
