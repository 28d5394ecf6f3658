"""Documents are never read without a bound, whatever reads them."""

import asyncio
import json

import pytest

import omnizarr
import omnizarr.aio
from omnizarr import check, config, diff
from omnizarr.errors import OmnizarrError, StoreLimitError
from omnizarr.storage import LoggingStore
from omnizarr.stores import (
    CacheStore,
    Features,
    LocalStore,
    MemoryStore,
    MetricsStore,
    PrefixStore,
    ReadOnlyStore,
    Store,
    bounded,
    verbs,
)
from omnizarr.stores.base import Stamped, answers
from tests.fakes import FaultyStore

pytestmark = pytest.mark.rules

DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs", "__zmeta__", ".nczarray"}


class Sized(MemoryStore):
    """A store that knows sizes, and notes each document that is asked for without a bound."""

    features = Features(concurrency=2, listing="complete")

    def __init__(self, values=()):
        super().__init__(dict(values))
        self.unbounded = []

    def _note(self, key, span=None):
        name = key.rpartition("/")[2]
        if span is None and (name in DOCUMENTS or name.endswith((".array.json", ".group.json"))):
            self.unbounded.append(key)

    def get(self, key, span=None):
        self._note(key, span)
        return super().get(key, span)

    @answers(verbs.get_stamped)
    def _get_stamped(self, key, unless=None):
        self._note(key)
        return verbs.get_stamped.default(self, key, unless)

    @answers(verbs.get_within)
    def _get_within(self, key, most):
        verbs.check_limit(self, key, self.size(key) or 0, most)
        return super().get(key)

    @answers(verbs.get_stamped_within)
    def _get_stamped_within(self, key, unless, most):
        return Stamped(verbs.get_within(self, key, most), None)

    @answers(verbs.has_any)
    def _has_any(self, prefix, names):
        return any(self.exists(prefix + name) for name in names)

    def size(self, key):
        value = self.store_dict.get(key)
        return None if value is None else len(value)

    def exists(self, key):
        return self.size(key) is not None


def filled(zarr_format, *, consolidated=False):
    store = MemoryStore()
    if zarr_format == 1:
        omnizarr.create_array(store, name="", shape=(4,), chunks=(2,), dtype="int32", zarr_format=1)[...] = 1
        return store
    group = omnizarr.create_group(store, zarr_format=zarr_format)
    for name in ("a", "b"):
        group.create_group(name).create_array("x", shape=(4,), chunks=(2,), dtype="int32", attributes={"u": 1})[...] = 1
    if consolidated:
        omnizarr.consolidate_metadata(store)
    return store


def looks(store):
    """Read documents in every way."""
    node = omnizarr.open(store, mode="r")
    dict(node.attrs)
    if isinstance(node, omnizarr.Group):
        assert node["a/x"][...].tolist() == [1] * 4
        assert [name for name, _ in node.members(max_depth=None)] != []
        node.tree()
    else:
        assert node[...].tolist() == [1] * 4
    assert check(store).ok
    assert not diff(store, store)


HIERARCHIES = [(1, False), (2, False), (2, True), (3, False), (3, True), ("3-draft2019", False), ("3-draft2020", False)]


@pytest.mark.parametrize("wrap", [lambda store: store, CacheStore, MetricsStore, ReadOnlyStore])
@pytest.mark.parametrize(("zarr_format", "consolidated"), HIERARCHIES)
def test_documents_are_read_within_a_bound(zarr_format, consolidated, wrap):
    store = Sized(filled(zarr_format, consolidated=consolidated).store_dict)
    looks(wrap(store))
    assert store.unbounded == []


@pytest.mark.parametrize(("zarr_format", "consolidated"), HIERARCHIES)
def test_documents_are_changed_within_a_bound(zarr_format, consolidated):
    store = Sized(filled(zarr_format, consolidated=consolidated).store_dict)
    node = omnizarr.open(store, mode="a")
    node.attrs["title"] = "t"
    if isinstance(node, omnizarr.Group):
        node.create_group("c")
        del node["a"]
    assert store.unbounded == []


WRAPPERS = {
    "none": lambda store: store,
    "cache": CacheStore,
    "metrics": MetricsStore,
    "log": LoggingStore,
    "faults": FaultyStore,
    "read-only": ReadOnlyStore,
    "prefix": lambda store: PrefixStore(store, ""),
    "cached metrics": lambda store: CacheStore(MetricsStore(store)),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_wrappers_pass_bounds_on(wrap):
    store = Sized({"zarr.json": b" " * 100})
    wrapped = wrap(store)
    for ask in (
        lambda: verbs.get_within(wrapped, "zarr.json", 99),
        lambda: list(verbs.get_many_within(wrapped, ["zarr.json"], 99)),
        lambda: verbs.get_stamped_within(wrapped, "zarr.json", None, 99),
    ):
        with pytest.raises(StoreLimitError, match="100 bytes"):
            ask()
    assert store.unbounded == []


def test_error_names_the_document_and_the_setting(tmp_path):
    (tmp_path / "zarr.json").write_bytes(b" " * 100)
    with config.set({"documents.max_bytes": 99}), pytest.raises(StoreLimitError) as caught:
        omnizarr.open(tmp_path, mode="r")
    assert caught.value.key == "zarr.json"
    assert (caught.value.found, caught.value.expected) == ("100 bytes", "at most 99 bytes")
    assert "documents.max_bytes" in caught.value.remedy


def test_documents_as_large_as_the_setting_are_read(tmp_path):
    group = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {"x": "y" * 100}}).encode()
    (tmp_path / "zarr.json").write_bytes(group)
    with config.set({"documents.max_bytes": len(group)}):
        assert omnizarr.open_group(tmp_path, mode="r").attrs["x"] == "y" * 100
        assert asyncio.run(omnizarr.aio.open_group(tmp_path)).attrs["x"] == "y" * 100
    with config.set({"documents.max_bytes": len(group) - 1}), pytest.raises(OmnizarrError):
        asyncio.run(omnizarr.aio.open_group(tmp_path))


def test_one_document_that_is_too_large_is_a_finding_of_check(tmp_path):
    group = omnizarr.create_group(tmp_path)
    group.create_group("a")
    (tmp_path / "a" / "zarr.json").write_bytes(b" " * 1000)
    with config.set({"documents.max_bytes": 500}):
        problems = check(LocalStore(tmp_path))
    assert any("larger than it may be" in str(problem) for problem in problems)


class Own(Store):
    """A store of a user, with the fewest methods."""

    def __init__(self, values):
        self.values = values

    def get(self, key, span=None):
        return self.values.get(key)

    set = delete = None

    def list(self):
        return iter(self.values)


Own.__abstractmethods__ = frozenset()


def test_stores_of_users_need_no_method_for_bounds():
    store = Own({"a": b"123", "b": b"4567"})
    with config.set({"documents.max_bytes": 3}):
        assert bounded.document(store, "a") == b"123"
        assert list(bounded.documents(store, ["a", "c"])) == [(0, b"123"), (1, None)]
        with pytest.raises(StoreLimitError, match=r"documents\.max_bytes"):
            bounded.document(store, "b")
        with pytest.raises(StoreLimitError, match=r"documents\.max_bytes"):
            list(bounded.documents(store, ["a", "b"]))
