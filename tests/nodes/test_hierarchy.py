"""`omnizarr.nodes.hierarchy`."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.formats import V2, V3
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.nodes import creating, detection, hierarchy
from omnizarr.nodes import location as places
from omnizarr.storage import StorePath
from omnizarr.stores import LocalStore, MemoryStore, PrefixStore, WrapperStore
from tests.fakes import FaultyStore

DIALECTS = (V2, V3)
both = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


def group(dialect, **fields):
    return GroupMetadata(dialect=dialect.name, **fields)


def array(dialect):
    return omnizarr.nodes.new_metadata.array_metadata(dialect, shape=3, dtype="i4")


def at(path="", store=None):
    return StorePath(MemoryStore() if store is None else store, path)


class TestPaths:
    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            *[("", ""), ("/", ""), ("a", "a"), ("/a//b/", "a/b"), ("///", ""), (None, ""), ("a.b/..c", "a.b/..c")],
            *[("a\\b", "a/b"), ("\\a\\b", "a/b")],  # as the text of v2 says
        ],
    )
    def test_normalized(self, path, expected):
        assert places.normalize(path) == expected

    @pytest.mark.parametrize("path", [".", "..", "a/../b", "./a", "a/./b", "a\\..\\b", 5])
    def test_refused(self, path):
        with pytest.raises(errors.NodeNameError):
            places.normalize(path)

    def test_store_path(self):
        place = at("a/b")
        assert (place.name, place.prefix, place.parent.path) == ("b", "a/b/", "a")
        assert [above.path for above in place.ancestors()] == ["", "a"]
        assert (place / "/c/d").path == "a/b/c/d"
        assert at().parent.path == ""
        assert list(at().ancestors()) == []


class TestCreate:
    @both
    def test_groups_above_become_explicit(self, dialect):
        place = at("a/b/c")
        hierarchy.create(place, array(dialect))
        for above in place.ancestors():
            assert detection.find(above) == group(dialect)

    @both
    @pytest.mark.parametrize("old", [group, array])
    @pytest.mark.parametrize("new", [group, array])
    def test_existing_data_is_not_replaced_unasked(self, dialect, old, new):
        place = at("a")
        hierarchy.create(place, old(dialect))
        kind = errors.ContainsGroupError if old is group else errors.ContainsArrayError
        with pytest.raises(kind) as caught:
            hierarchy.create(place, new(dialect))
        assert caught.value.path == "a"
        assert caught.value.store is not None
        assert "overwrite" in caught.value.remedy

    @pytest.mark.parametrize(("old", "new"), [(V2, V3), (V3, V2)], ids=lambda dialect: dialect.name)
    def test_nor_if_it_is_of_another_format(self, old, new):
        place = at("a")
        hierarchy.create(place, array(old))
        with pytest.raises(errors.ContainsArrayError):
            hierarchy.create(place, group(new))

    @both
    def test_overwriting_removes_all_below(self, dialect):
        store = MemoryStore()
        hierarchy.create(at("a/b", store), array(dialect))
        store.set("ab/other", b"")
        hierarchy.create(at("a", store), array(dialect), overwrite=True)
        assert not any(key.startswith("a/b") for key in store.list())
        assert store.exists("ab/other")

    @both
    def test_overwriting_where_no_node_is_removes_nothing(self, dialect):
        store = MemoryStore({"notes.txt": b"mine"})
        hierarchy.create(at("", store), group(dialect), overwrite=True)
        assert store.get("notes.txt") == b"mine"

    @both
    def test_nothing_is_below_an_array(self, dialect):
        store = MemoryStore()
        hierarchy.create(at("a", store), array(dialect))
        for overwrite in (False, True):
            with pytest.raises(errors.ContainsArrayError) as caught:
                hierarchy.create(at("a/b/c", store), group(dialect), overwrite=overwrite)
            assert caught.value.path == "a"

    def test_names_follow_the_dialect(self):
        for name in ("...", "zarr.json"):
            with pytest.raises(errors.NodeNameError):
                hierarchy.create(at(name), group(V3))
        with pytest.raises(errors.NodeNameError):
            hierarchy.create(at(".zarray"), group(V2))
        for dialect in (V2, V3):
            hierarchy.create(at("__reserved"), group(dialect))

    def test_what_cannot_be_written_deletes_nothing(self):
        place = at("a")
        hierarchy.create(place, array(V2))
        with pytest.raises(errors.NotRepresentableError):
            hierarchy.create(place, replace(array(V2), dimension_names=("x",)), overwrite=True)
        assert detection.find(place) == array(V2)

    def test_read_only_store(self):
        with pytest.raises(errors.ReadOnlyError):
            hierarchy.create(at("a", MemoryStore(read_only=True)), group(V3))

    @both
    def test_of_many_creators_one_wins(self, dialect, tmp_path):
        def attempt(number):
            place = StorePath(LocalStore(tmp_path), "a/b")
            kind = array(dialect) if number % 2 else group(dialect)
            try:
                hierarchy.create(place, replace(kind, attributes={"number": number}))
            except (errors.ContainsArrayError, errors.ContainsGroupError):
                return None
            return number

        with ThreadPoolExecutor(8) as pool:
            winners = [number for number in pool.map(attempt, range(16)) if number is not None]
        assert len(winners) == 1
        assert detection.find(StorePath(LocalStore(tmp_path), "a/b")).attributes == {"number": winners[0]}

    @both
    def test_array_and_what_would_be_below_it_are_not_both_created(self, dialect, tmp_path):
        def attempt(number):
            place = StorePath(LocalStore(tmp_path), "a" if number % 2 else f"a/b{number}")
            try:
                hierarchy.create(place, array(dialect))
            except errors.NodeExistsError:
                return None
            return place.path

        with ThreadPoolExecutor(8) as pool:
            made = {path for path in pool.map(attempt, range(16)) if path is not None}
        assert ("a" in made) != any(path.startswith("a/") for path in made)
        detection.open_node(StorePath(LocalStore(tmp_path), "a"))

    @both
    def test_requiring_a_group_never_fails_in_a_race(self, dialect, tmp_path):
        def require(_):
            return creating.require_group(StorePath(LocalStore(tmp_path), "a/b"), group(dialect)).metadata

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(require, range(16))) == [group(dialect)] * 16

    @both
    def test_requiring_a_group_where_an_array_is(self, dialect):
        place = at("a")
        hierarchy.create(place, array(dialect))
        with pytest.raises(errors.ContainsArrayError):
            creating.require_group(place, group(dialect))


class TestFind:
    @pytest.mark.parametrize("opener", [detection.open_node, detection.open_array, detection.open_group])
    def test_nothing_there(self, opener):
        with pytest.raises(errors.NodeNotFoundError) as caught:
            opener(at("a"))
        assert isinstance(caught.value, KeyError)
        assert isinstance(caught.value, FileNotFoundError)
        assert caught.value.path == "a"

    def test_did_you_mean(self):
        store = MemoryStore()
        hierarchy.create(at("ocean/temperature", store), array(V3))
        with pytest.raises(errors.ArrayNotFoundError, match=r"did you mean 'ocean/temperature'\?"):
            detection.open_array(at("ocean/temprature", store))
        with pytest.raises(errors.NodeNotFoundError, match=r"did you mean 'ocean/temperature'\?"):
            detection.open_node(at("Ocean/temperature", store))

    def test_wrong_kind(self):
        place = at("a")
        hierarchy.create(place, array(V3))
        with pytest.raises(errors.ContainsArrayError):
            detection.open_group(place)
        with pytest.raises(errors.ContainsGroupError):
            detection.open_array(place.parent)

    def test_only_the_format_asked_for(self):
        place = at("a")
        hierarchy.create(place, array(V2))
        assert detection.find(place, 3) is None
        assert detection.find(place, 2).dialect == "v2"
        assert detection.find(place, "v2").dialect == "v2"
        with pytest.raises(ValueError, match="no Zarr format 7"):
            detection.find(place, 7)

    def test_broken_document_says_where(self):
        place = at("a", MemoryStore({"a/zarr.json": b"{"}))
        with pytest.raises(errors.MetadataError) as caught:
            detection.find(place)
        assert caught.value.key == "a/zarr.json"
        assert caught.value.path == "a"

    @both
    def test_implicit_groups_are_read(self, dialect):
        store = MemoryStore()
        hierarchy.create(at("a/b/c", store), array(dialect))
        for key in list(store.list()):
            if not key.startswith("a/b/c/"):
                store.delete(key)
        for path in ("", "a", "a/b"):
            assert detection.open_group(at(path, store)).metadata == group(dialect, implicit=True)
            with pytest.raises(errors.ContainsGroupError):
                detection.open_array(at(path, store))
        with pytest.raises(errors.NodeNotFoundError):
            detection.open_node(at("a/x", store))

    def test_directory_of_other_things_is_not_searched_to_the_bottom(self):
        store = MemoryStore({f"{n}/{m}/file": b"" for n in range(60) for m in range(60)})
        with pytest.raises(errors.NodeNotFoundError):
            detection.open_node(at("", store))

    def test_chunks_make_no_group(self):
        store = MemoryStore()
        omnizarr.create_array(store, name="a", data=[1, 2])
        with pytest.raises(errors.NodeNotFoundError):
            detection.open_node(at("a/c", store))

    def test_writing_makes_an_implicit_group_explicit(self):
        store = MemoryStore()
        hierarchy.create(at("a/b", store), array(V3))
        store.delete("a/zarr.json")
        changed = hierarchy.update(
            at("a", store), GroupMetadata, lambda found: replace(found, implicit=False, attributes={"x": 1})
        )
        assert detection.find(at("a", store)) == changed


class TestUpdate:
    @both
    def test_change_applies_to_current_data(self, dialect):
        place = at("a")
        hierarchy.create(place, array(dialect))
        hierarchy.update(place, ArrayMetadata, lambda found: replace(found, attributes={"n": 1}))
        seen = hierarchy.update(
            place, ArrayMetadata, lambda found: replace(found, attributes={"n": found.attributes["n"] + 1})
        )
        assert seen.attributes == {"n": 2}
        assert detection.find(place).attributes == {"n": 2}

    @both
    def test_only_documents_that_differ_are_written(self, dialect):
        store = FaultyStore(MemoryStore())
        place = at("a", store)
        hierarchy.create(place, array(dialect))
        store.log.clear()
        hierarchy.update(place, ArrayMetadata, lambda found: found)
        assert [key for verb, key in store.log if verb == "set"] == []
        hierarchy.update(place, ArrayMetadata, lambda found: replace(found, attributes={"n": 1}))
        assert [key for verb, key in store.log if verb == "set"] == ["a/.zattrs" if dialect is V2 else "a/zarr.json"]

    @both
    def test_concurrent_changes_are_all_there(self, dialect, tmp_path):
        hierarchy.create(StorePath(LocalStore(tmp_path), "a"), group(dialect))

        def add(number):
            place = StorePath(LocalStore(tmp_path), "a")
            hierarchy.update(
                place, GroupMetadata, lambda found: replace(found, attributes={**found.attributes, str(number): number})
            )

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(add, range(32)))
        assert len(detection.find(StorePath(LocalStore(tmp_path), "a")).attributes) == 32

    def test_node_that_has_gone(self):
        with pytest.raises(errors.NodeNotFoundError):
            hierarchy.update(at("a"), GroupMetadata, lambda found: found)

    def test_node_that_has_become_another(self):
        place = at("a")
        hierarchy.create(place, array(V3))
        with pytest.raises(errors.ContainsArrayError):
            hierarchy.update(place, GroupMetadata, lambda found: found)


class TestChildren:
    @both
    def test_names_are_sorted_and_only_nodes(self, dialect):
        store = MemoryStore()
        for name in ("b", "a", "c"):
            hierarchy.create(at(name, store), group(dialect))
        store.set("files/readme", b"")
        store.set("__private/x", b"")
        place = at("", store)
        names = detection.children(place)
        assert [name for name, _ in detection.load_children(place, names, dialect.name)] == ["a", "b", "c"]

    @both
    def test_broken_child_does_not_hide_its_siblings(self, dialect):
        store = MemoryStore()
        for name in ("a", "b", "c"):
            hierarchy.create(at(name, store), array(dialect))
        store.set("b/.zarray" if dialect is V2 else "b/zarr.json", b"not JSON")
        place = at("", store)
        found = dict(detection.load_children(place, detection.children(place), dialect.name))
        assert list(found) == ["a", "b", "c"]
        assert isinstance(found["b"], errors.MetadataError)


class TestCopy:
    @both
    def test_everything_is_copied(self, dialect):
        store = MemoryStore()
        hierarchy.create(at("a/b", store), array(dialect))
        store.set("a/b/chunk", b"1")
        hierarchy.copy(at("a", store), at("x/y", store))
        assert detection.find(at("x/y/b", store)) == array(dialect)
        assert store.get("x/y/b/chunk") == b"1"
        assert detection.find(at("x", store)) == group(dialect)
        hierarchy.move(at("x", store), at("z", store))
        assert detection.find(at("z/y/b", store)) == array(dialect)
        assert not any(key.startswith("x/") for key in store.list())

    def test_into_itself_is_refused(self):
        store = MemoryStore()
        hierarchy.create(at("a", store), group(V3))
        for target in ("a/b", "a"):
            with pytest.raises(errors.NodeNameError):
                hierarchy.copy(at("a", store), at(target, store))
        hierarchy.copy(at("a", store), at("ab", store))

    def test_existing_data_is_not_replaced_unasked(self):
        store = MemoryStore()
        hierarchy.create(at("a", store), group(V3))
        hierarchy.create(at("b", store), array(V3))
        with pytest.raises(errors.ContainsArrayError):
            hierarchy.copy(at("a", store), at("b", store))
        hierarchy.copy(at("a", store), at("b", store), overwrite=True)
        assert detection.find(at("b", store)) == group(V3)

    def test_nothing_to_copy(self):
        with pytest.raises(errors.NodeNotFoundError):
            hierarchy.copy(at("a"), at("b"))

    def test_deleting_removes_all_below(self):
        store = MemoryStore()
        hierarchy.create(at("a/b", store), array(V3))
        hierarchy.delete(at("a", store))
        assert list(store.list()) == ["zarr.json"]


class TestOverlap:
    """A node is not replaced by what is in it: that would be gone before it is read."""

    @pytest.mark.parametrize("path", ["a", ""])
    def test_a_node_does_not_replace_one_above_it(self, path):
        store = MemoryStore()
        omnizarr.create_array(store, name="a/b", data=[1, 2])
        before = dict(store._values)
        with pytest.raises(errors.NodeNameError):
            hierarchy.copy(at("a/b", store), at(path, store), overwrite=True)
        assert store._values == before

    def test_stores_on_the_same_data_are_known(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "real")
        store = LocalStore(tmp_path / "real")
        omnizarr.create_array(store, name="a/b", data=[1, 2])
        places = [
            at("a/b", LocalStore(tmp_path / "real", read_only=True)),
            at("a/b", LocalStore(tmp_path / "link")),
            at("real/a/b", LocalStore(tmp_path)),
            at("b", PrefixStore(store, "a")),
        ]
        for place in places:
            with pytest.raises(errors.NodeNameError):
                hierarchy.copy(place, at("a/b", store), overwrite=True)
        np.testing.assert_array_equal(omnizarr.open_group(store)["a/b"][...], [1, 2])

    def test_names_that_begin_equally_do_not_overlap(self):
        assert not at("ab", store := MemoryStore()).lies_in(at("a", store))
        assert not at("a").lies_in(at("a"))


class TestTwoFormatsAtOnePlace:
    """What was opened in one format is changed in that one, though another has documents there too."""

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_array(self, zarr_format):
        store = MemoryStore()
        for other in (2, 3):
            values = {}
            omnizarr.create_array(values, data=[1, 2, 3], zarr_format=other)
            store._values.update(values)
        array = omnizarr.open_array(store, zarr_format=zarr_format)
        array.resize(5)
        array.append([6])
        array.attrs["a"] = 1
        array.refresh()
        assert array.zarr_format == zarr_format
        np.testing.assert_array_equal(array[...], [1, 2, 3, 0, 0, 6])
        opened = {other: omnizarr.open_array(store, zarr_format=other) for other in (2, 3)}
        assert {other: (found.shape, dict(found.attrs)) for other, found in opened.items()} == {
            zarr_format: ((6,), {"a": 1}),
            5 - zarr_format: ((3,), {}),
        }

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_group(self, zarr_format):
        store = MemoryStore()
        for other in (2, 3):
            values = {}
            omnizarr.create_group(values, zarr_format=other)
            store._values.update(values)
        group = omnizarr.open_group(store, zarr_format=zarr_format)
        group.attrs["a"] = 1
        group.refresh()
        assert (group.zarr_format, dict(group.attrs)) == (zarr_format, {"a": 1})
        assert not omnizarr.open_group(store, zarr_format=5 - zarr_format).attrs


@pytest.mark.parametrize("zarr_format", [1, 2, 3])
@pytest.mark.parametrize("kind", ["local", "wrapper"])
def test_store_that_overrides_set_gets_every_document(tmp_path, kind, zarr_format):
    class Own(LocalStore if kind == "local" else WrapperStore):
        keys = ()

        def set(self, key, value):
            self.keys += (key,)
            super().set(key, value)

    store = Own(tmp_path / "a" if kind == "local" else LocalStore(tmp_path / "a"))
    where = omnizarr.create_group(store).store_path / "x"
    omnizarr.create_array(where, shape=(3,), dtype="i4", zarr_format=zarr_format, attributes={"a": 1})
    written = {path.relative_to(tmp_path / "a").as_posix() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert set(store.keys) == written
