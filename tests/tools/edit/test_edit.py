"""`omnizarr.copy_node`, `move_node` and `delete_node`."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.stores import LocalStore, MemoryStore, WrapperStore, verbs
from omnizarr.stores.base import answers
from omnizarr.tools.edit import cp
from tests.corpus.test_corpus import CORPUS

CASES = sorted(CORPUS.glob("*/*/store.zip"))
VALUES = np.arange(12.0).reshape(3, 4)
FORMATS = (2, 3, "3-draft2019", "3-draft2020")
formats = pytest.mark.parametrize("zarr_format", FORMATS)
kinds = pytest.mark.parametrize("kind", ["a.zarr", "a.zip", "a.sqlite", "memory"])


def make(place, zarr_format=3):
    root = omnizarr.create_group(place, zarr_format=zarr_format, attributes={"title": "t"})
    root.create_array("g/x", data=VALUES, chunks=(1, 4), attributes={"units": "K"})
    root.create_array("y", data=np.arange(5))
    root.store.close()
    return place


def paths(place, **options):
    with omnizarr.open(place, mode="r", **options).store as store:
        return sorted(path for path, _ in omnizarr.open(store, mode="r", **options).members(None))


def values(place):
    """All keys and values of a store."""
    store = omnizarr.stores.resolve(place, "r")[0] if not isinstance(place, omnizarr.stores.Store) else place
    return {key: bytes(store.get(key)) for key in store.list()}


def tree(folder):
    """All files and directories below a directory, hidden ones included."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


@pytest.fixture
def place_of(tmp_path):
    """Return a function from the name of a place to the place."""
    return lambda name: {} if name == "memory" else str(tmp_path / name)


class TestCopy:
    @formats
    @kinds
    def test_hierarchy_is_equal_byte_for_byte(self, zarr_format, kind, place_of):
        source, target = make(place_of("s.zarr"), zarr_format), place_of(kind)
        outcome = omnizarr.copy_node(source, target)
        assert values(target) == values(source)
        assert outcome.keys == len(values(source))
        assert outcome.bytes_stored == sum(map(len, values(source).values()))
        assert outcome.verified
        np.testing.assert_array_equal(omnizarr.open(target, mode="r")["g/x"][...], VALUES)

    @formats
    @kinds
    def test_node_goes_into_another_hierarchy(self, zarr_format, kind, place_of):
        source, target = make(place_of("s.zarr"), zarr_format), make(place_of(kind), zarr_format)
        omnizarr.copy_node(source, target, path="g", target_path="h/k")
        assert paths(target) == ["g", "g/x", "h", "h/k", "h/k/x", "y"]
        copied = omnizarr.open(target, mode="r")["h/k/x"]
        assert copied.attrs["units"] == "K"
        np.testing.assert_array_equal(copied[...], VALUES)

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_paths_within_a_hierarchy_renew_its_consolidated_metadata(self, zarr_format, tmp_path):
        place = make(str(tmp_path / "a.zarr"), zarr_format)
        omnizarr.consolidate_metadata(place)
        omnizarr.copy_node(f"{place}/g", f"{place}/h/k")
        known = omnizarr.open_group(place, use_consolidated=True, check_consolidated=True)
        assert [path for path, _ in known.members(None)] == ["g", "g/x", "h", "h/k", "h/k/x", "y"]

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("case", CASES, ids=lambda case: "/".join(case.parts[-3:-1]))
    def test_hierarchies_of_all_writers(self, case):
        target = {}
        try:
            omnizarr.copy_node(case, target)
        except errors.NodeNotFoundError:
            pytest.skip("a directory of several hierarchies")
        store, above = omnizarr.stores.resolve(str(case), "r")  # some archives have all in one folder
        assert values(target) == {
            key.removeprefix(f"{above}/"): bytes(store.get(key)) for key in store.list_prefix(above)
        }

    def test_existing_data_stays(self, tmp_path):
        source, target = make(str(tmp_path / "a.zarr")), make(str(tmp_path / "b.zarr"))
        before = tree(tmp_path)
        with pytest.raises(errors.ContainsGroupError, match="overwrite=True"):
            omnizarr.copy_node(source, target)
        with pytest.raises(errors.ContainsArrayError):
            omnizarr.copy_node(source, f"{target}/y")
        with pytest.raises(errors.ContainsArrayError, match="nodes cannot lie below it"):
            omnizarr.copy_node(source, f"{target}/y/z")
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "README").write_text("mine")
        with pytest.raises(errors.NodeExistsError, match="not a Zarr node"):
            omnizarr.copy_node(source, tmp_path / "notes")
        (tmp_path / "notes" / "README").unlink()
        (tmp_path / "notes").rmdir()
        assert tree(tmp_path) == before

    @kinds
    def test_overwrite(self, kind, place_of):
        source, target = make(place_of("s.zarr")), place_of(kind)
        omnizarr.create_array(target, data=np.zeros(300), chunks=(2,)).store.close()
        omnizarr.copy_node(source, target, overwrite=True)
        assert values(target) == values(source)

    def test_overwrite_that_fails_keeps_the_old_node_and_leaves_no_residue(self, tmp_path):
        target = make(str(tmp_path / "b.zarr"))
        before = tree(tmp_path)
        source = Failing(MemoryStore(), 4)
        make(source)
        source.after = 3
        with pytest.raises(OSError, match="torn"):
            omnizarr.copy_node(source, f"{target}/g", overwrite=True)
        assert tree(tmp_path) == before

    def test_overwrite_refuses_files_of_others(self, tmp_path):
        source, target = make(str(tmp_path / "a.zarr")), make(str(tmp_path / "b.zarr"))
        (tmp_path / "b.zarr" / "g" / "README").write_text("mine")
        with pytest.raises(errors.StoreError, match="g/README"):
            omnizarr.copy_node(source, target, overwrite=True)
        assert (tmp_path / "b.zarr" / "g" / "README").read_text() == "mine"

    def test_interrupted_copy_is_not_seen_and_can_be_resumed(self, tmp_path):
        source, target = Failing(MemoryStore()), str(tmp_path / "b.zarr")
        make(source)
        for after in range(4):
            source.after = after
            with pytest.raises(OSError, match="torn"):
                omnizarr.copy_node(source, target, resume=after > 0)
            with pytest.raises(errors.NodeNotFoundError):
                omnizarr.open(target, mode="r")
        source.after = None
        with pytest.raises(errors.NodeExistsError, match="resume=True"):
            omnizarr.copy_node(source, target)
        omnizarr.copy_node(source, target, resume=True)
        assert values(target) == values(source)

    def test_resume_takes_the_source_as_it_is_now(self, tmp_path):
        source, target = Failing(MemoryStore()), str(tmp_path / "b.zarr")
        make(source)
        source.after = 3
        with pytest.raises(OSError, match="torn"):
            omnizarr.copy_node(source, target)
        source.after = None
        omnizarr.open(source)["g/x"][0] = 0  # its chunk goes, as it holds the fill value
        omnizarr.open(source)["g/x"][1] = 9
        omnizarr.copy_node(source, target, resume=True)
        assert values(target) == values(source)

    def test_resume_of_a_complete_copy_compares_and_changes_nothing(self, tmp_path):
        source, target = make(str(tmp_path / "a.zarr")), str(tmp_path / "b.zarr")
        omnizarr.copy_node(source, target)
        before = tree(tmp_path)
        for dry_run in (True, False):
            outcome = omnizarr.copy_node(source, target, resume=True, dry_run=dry_run)
            assert (outcome.keys, outcome.verified) == (0, True)
            assert outcome.remarks == ("the copy was complete already",)
        assert tree(tmp_path) == before

    @pytest.mark.parametrize("change", ["value", "attribute", "more", "less"])
    def test_resume_refuses_a_node_that_differs(self, tmp_path, change):
        source, target = make(str(tmp_path / "a.zarr")), str(tmp_path / "b.zarr")
        omnizarr.copy_node(source, target)
        node = omnizarr.open(target)
        if change == "value":
            node["g/x"][1] = 99
        elif change == "attribute":
            node["g/x"].attrs["changed"] = True
        elif change == "more":
            node.create_array("g/more", shape=3, dtype="i4")
        else:
            del node["g/x"]
        before = tree(tmp_path)
        with pytest.raises(errors.NodeExistsError, match="differs from the source"):
            omnizarr.copy_node(source, target, resume=True)
        assert tree(tmp_path) == before

    def test_interrupted_copy_is_removed_by_delete_and_replaced_by_overwrite(self, tmp_path):
        source = Failing(MemoryStore())
        make(source)
        for name in ("b.zarr", "c.zarr"):
            source.after = 3
            with pytest.raises(OSError, match="torn"):
                omnizarr.copy_node(source, tmp_path / name)
        source.after = None
        omnizarr.delete_node(tmp_path / "b.zarr")
        assert not (tmp_path / "b.zarr").exists()
        omnizarr.copy_node(source, tmp_path / "c.zarr", overwrite=True)
        assert values(str(tmp_path / "c.zarr")) == values(source)

    def test_archive_stays_as_it_was_if_a_copy_fails(self, tmp_path):
        target = make(str(tmp_path / "a.zip"))
        before = tree(tmp_path)
        source = Failing(MemoryStore())
        make(source)
        source.after = 3
        with pytest.raises(OSError, match="torn"):
            omnizarr.copy_node(source, target, target_path="new")
        assert tree(tmp_path) == before

    def test_store_with_wrong_answers_is_found_out(self):
        class Lying(MemoryStore):
            def set(self, key, value):
                super().set(key, bytes(value)[:-1] + b"?" if key.endswith("c/0") else value)

        source = MemoryStore()
        make(source)
        with pytest.raises(errors.StoreError, match="differs"):
            omnizarr.copy_node(source, Lying())
        assert not omnizarr.copy_node(source, Lying(), verify=False).verified

    def test_dry_run_writes_nothing(self, tmp_path):
        source = make(str(tmp_path / "a.zarr"))
        before = tree(tmp_path)
        outcome = omnizarr.copy_node(source, tmp_path / "b.zarr", dry_run=True)
        assert (outcome.dry_run, outcome.keys) == (True, len(values(source)))
        assert tree(tmp_path) == before

    def test_other_format_is_left_to_convert(self, tmp_path):
        source, target = make(str(tmp_path / "a.zarr"), 2), make(str(tmp_path / "b.zarr"), 3)
        with pytest.raises(errors.NotRepresentableError, match="convert"):
            omnizarr.copy_node(f"{source}/y", f"{target}/z")

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_web_server_that_cannot_list(self, zarr_format, http_server, tmp_path):
        place = http_server.fresh()
        source = make(str(place.directory / "a.zarr"), zarr_format)
        omnizarr.consolidate_metadata(source)
        target = str(tmp_path / "b.zarr")
        omnizarr.copy_node(f"{place.url}/a.zarr", target, storage_options=place.options)
        assert values(target) == values(source)

    @pytest.mark.parametrize("server", ["s3_server", "gcs_server", "azurite_server"])
    def test_object_stores(self, server, request, tmp_path):
        place = request.getfixturevalue(server).fresh()
        source, options = make(str(tmp_path / "a.zarr")), {"storage_options": place.options}
        omnizarr.consolidate_metadata(source)
        omnizarr.copy_node(source, f"{place.url}/b.zarr", **options)
        omnizarr.copy_node(f"{place.url}/b.zarr/g", f"{place.url}/b.zarr/h", **options)
        omnizarr.move_node(f"{place.url}/b.zarr/h", f"{place.url}/b.zarr/k", **options)
        omnizarr.delete_node(f"{place.url}/b.zarr/y", **options)
        known = omnizarr.open_group(f"{place.url}/b.zarr", use_consolidated=True, check_consolidated=True, **options)
        assert [path for path, _ in known.members(None)] == ["g", "g/x", "k", "k/x"]
        omnizarr.delete_node(f"{place.url}/b.zarr", recursive=True, **options)
        store, _ = omnizarr.stores.resolve(place.url, "r", place.options)
        assert list(store.list()) == []

    def test_progress_counts_bytes(self, tmp_path):
        seen = []

        class Bar:
            def __init__(self, **options):
                seen.append(options)

            def update(self, count):
                seen.append(count)

            def close(self):
                seen.append("closed")

        source = make(str(tmp_path / "a.zarr"))
        omnizarr.copy_node(source, tmp_path / "b.zarr", progress=Bar)
        total = sum(map(len, values(source).values()))
        assert (seen[0]["total"], seen[0]["unit"], seen[-1]) == (total, "B", "closed")
        assert sum(seen[1:-1]) == total


class Failing(WrapperStore):
    """A store whose reads of values fail after so many."""

    def __init__(self, store, after=None):
        super().__init__(store)
        self.after = after

    def get(self, key, span=None):
        if self.after is not None and key[-1].isdigit():
            self.after -= 1
            if self.after < 0:
                raise OSError("torn")
        return super().get(key, span)


class TestMove:
    @formats
    @kinds
    def test_within_a_store(self, zarr_format, kind, place_of):
        place = make(place_of(kind), zarr_format)
        before = values(place)
        omnizarr.move_node(place, place, path="g", target_path="h/k")
        assert paths(place) == ["h", "h/k", "h/k/x", "y"]
        assert not [key for key in values(place) if "g/x" in key]
        omnizarr.move_node(place, place, path="h/k", target_path="g")
        assert before.items() <= values(place).items()

    @kinds
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_to_another_store(self, kind, zarr_format, place_of):
        source, target = make(place_of(kind), zarr_format), make(place_of("t.zarr"), zarr_format)
        omnizarr.move_node(source, target, path="g/x", target_path="z")
        assert (paths(source), paths(target)) == (["g", "y"], ["g", "g/x", "y", "z"])
        np.testing.assert_array_equal(omnizarr.open(target)["z"][...], VALUES)

    def test_directory_is_renamed(self, tmp_path):
        source = make(str(tmp_path / "a.zarr"))
        inode = (tmp_path / "a.zarr" / "zarr.json").stat().st_ino
        assert omnizarr.move_node(source, tmp_path / "below" / "b.zarr").is_rename
        assert (tmp_path / "below" / "b.zarr" / "zarr.json").stat().st_ino == inode
        assert not (tmp_path / "a.zarr").exists()

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_consolidated_metadata_of_both_hierarchies_is_renewed(self, zarr_format, tmp_path):
        one, other = (make(str(tmp_path / name), zarr_format) for name in ("a.zarr", "b.zarr"))
        for place in (one, other):
            omnizarr.consolidate_metadata(place)
        omnizarr.move_node(f"{one}/g/x", f"{other}/g/z")
        for place, there in ((one, ["g", "y"]), (other, ["g", "g/x", "g/z", "y"])):
            known = omnizarr.open_group(place, use_consolidated=True, check_consolidated=True)
            assert [path for path, _ in known.members(None)] == there

    def test_existing_data_stays(self, tmp_path):
        source, target = make(str(tmp_path / "a.zarr")), make(str(tmp_path / "b.zarr"))
        before = tree(tmp_path)
        for to in (target, f"{target}/y", f"{source}/g/x"):
            with pytest.raises((errors.NodeExistsError, errors.NodeNameError)):
                omnizarr.move_node(source, to)
        assert tree(tmp_path) == before


class TestDelete:
    @formats
    @kinds
    def test_node(self, zarr_format, kind, place_of):
        place = make(place_of(kind), zarr_format)
        omnizarr.delete_node(place, "g", recursive=True)
        assert paths(place) == ["y"]
        assert not [key for key in values(place) if "g/" in key or key.endswith(("g.array.json", "g.group.json"))]
        np.testing.assert_array_equal(omnizarr.open(place, mode="r")["y"][...], np.arange(5))

    @formats
    def test_hierarchy_goes_with_its_directory_and_its_archive(self, zarr_format, tmp_path):
        for name in ("a.zarr", "a.zip"):
            omnizarr.delete_node(make(str(tmp_path / name), zarr_format), recursive=True)
        assert [*tmp_path.iterdir()] == []

    def test_group_with_members_needs_recursive(self, tmp_path):
        place = make(str(tmp_path / "a.zarr"))
        before = tree(tmp_path)
        for path in ("", "g"):
            with pytest.raises(errors.ContainsGroupError, match="recursive=True"):
                omnizarr.delete_node(place, path)
        assert tree(tmp_path) == before
        omnizarr.create_group(place, path="empty")
        omnizarr.delete_node(place, "empty")
        assert paths(place) == ["g", "g/x", "y"]

    def test_directory_that_is_no_node_is_left_alone(self, tmp_path):
        make(str(tmp_path / "data" / "a.zarr"))
        before = tree(tmp_path)
        for place in (tmp_path, tmp_path / "data", tmp_path / "data" / "a.zarr" / "y" / "c"):
            with pytest.raises(errors.NodeNotFoundError):
                omnizarr.delete_node(place, recursive=True)
        assert tree(tmp_path) == before

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_files_of_others_are_left_alone(self, zarr_format, tmp_path):
        place = make(str(tmp_path / "a.zarr"), zarr_format)
        (tmp_path / "a.zarr" / "g" / "README").write_text("mine")
        before = tree(tmp_path)
        for path in ("", "g"):
            with pytest.raises(errors.StoreError, match="g/README"):
                omnizarr.delete_node(place, path, recursive=True)
        assert tree(tmp_path) == before

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_consolidated_metadata_is_renewed(self, zarr_format, tmp_path):
        place = make(str(tmp_path / "a.zarr"), zarr_format)
        omnizarr.consolidate_metadata(place)
        omnizarr.delete_node(f"{place}/g", recursive=True)
        known = omnizarr.open_group(place, use_consolidated=True, check_consolidated=True)
        assert [path for path, _ in known.members(None)] == ["y"]

    def test_interrupted_deletion_is_not_seen_and_is_finished_by_doing_it_again(self, tmp_path):
        class Torn(LocalStore):
            @answers(verbs.delete_many)
            def _delete_many(self, keys):
                for key in keys:
                    if key.endswith("c/1/0"):
                        raise OSError("torn")
                    self.delete(key)

        place = make(str(tmp_path / "a.zarr"))
        with pytest.raises(OSError, match="torn"):
            omnizarr.delete_node(Torn(place), "g/x")
        assert paths(place) == ["g", "y"]
        omnizarr.delete_node(place, "g/x")
        assert not (tmp_path / "a.zarr" / "g" / "x").exists()

    @pytest.mark.parametrize("path", ["g", "g/x"])
    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_deletion_that_is_killed_at_any_key_is_finished_by_doing_it_again(self, zarr_format, path):
        """Also within the hierarchy of a draft, in which chunks lie apart from documents."""

        class Killed(MemoryStore):
            left = 10**6

            def delete(self, key):
                if not self.left:
                    raise KeyboardInterrupt
                self.left -= 1
                super().delete(key)

            @answers(verbs.delete_many)
            def _delete_many(self, keys):
                for key in keys:
                    self.delete(key)

            @answers(verbs.delete_prefix)
            def _delete_prefix(self, prefix):
                for key in sorted(self.list_prefix(prefix)):
                    self.delete(key)

        def made():
            values = {}
            root = omnizarr.create_group(values, zarr_format=zarr_format)
            root.create_array("g/x", data=np.arange(6), chunks=(2,))
            root.create_array("y", data=np.arange(5))
            return values

        expected = made()
        omnizarr.delete_node(MemoryStore(expected), path, recursive=True)
        unseen = 0
        for survived in range(100):
            values = made()
            store = Killed(values)
            store.left = survived
            try:
                omnizarr.delete_node(store, path, recursive=True)
            except KeyboardInterrupt:
                pass
            else:
                break
            if path not in dict(omnizarr.open_group(values).members(None)):
                unseen += 1
                codes = {finding.code for finding in omnizarr.check(values).findings}
                assert "unfinished-conversion" in codes, codes
            omnizarr.delete_node(values, path, recursive=True)
            assert values == expected, survived
        assert survived > unseen > 0

    def test_dry_run_deletes_nothing(self, tmp_path):
        place = make(str(tmp_path / "a.zarr"))
        before = tree(tmp_path)
        assert omnizarr.delete_node(place, recursive=True, dry_run=True).keys == len(values(place))
        assert tree(tmp_path) == before

    def test_what_others_say_of_it_is_reported(self, tmp_path):
        place = str(tmp_path / "image.zarr")
        root = omnizarr.create_group(place, zarr_format=2)
        for level, size in (("0", 8), ("1", 4)):
            root.create_array(level, data=np.zeros((size, size)), dimension_separator="/")
        scale = [{"type": "scale", "scale": [1.0, 1.0]}]
        datasets = [{"path": level, "coordinateTransformations": scale} for level in "01"]
        axes = [{"name": name, "type": "space"} for name in "yx"]
        root.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": datasets}]
        outcome = omnizarr.delete_node(f"{place}/1")
        assert any("'1'" in remark or '"1"' in remark for remark in outcome.remarks), outcome


class TestNCZarr:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_lists_of_members_stay_right(self, zarr_format, tmp_path):
        place = str(tmp_path / "a.zarr")
        with omnizarr.netcdf.Dataset(place, "w", zarr_format=zarr_format) as dataset:
            dataset.createDimension("x", 3)
            dataset.createVariable("a", "f4", ("x",))[:] = [1, 2, 3]
            dataset.createVariable("b", "f4", ("x",))[:] = [4, 5, 6]
            dataset.createGroup("g").createVariable("c", "i4", ("x",))[:] = [7, 8, 9]
        omnizarr.delete_node(f"{place}/a")
        omnizarr.move_node(f"{place}/b", f"{place}/d")
        omnizarr.copy_node(f"{place}/g", f"{place}/h")
        with omnizarr.netcdf.Dataset(place) as dataset:
            assert (list(dataset.variables), sorted(dataset.groups)) == (["d"], ["g", "h"])
            assert dataset["d"].dimensions == ("x",)
            np.testing.assert_array_equal(dataset["d"][:], [4, 5, 6])
            np.testing.assert_array_equal(dataset["h/c"][:], [7, 8, 9])
        name = ".zgroup" if zarr_format == 2 else "zarr.json"
        text = (tmp_path / "a.zarr" / name).read_text()
        text += (tmp_path / "a.zarr" / ".zattrs").read_text() if zarr_format == 2 else ""
        assert '"b"' not in json.dumps(text)

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_references_to_dimensions_stay_right(self, zarr_format, tmp_path):
        place = str(tmp_path / "a.zarr")
        with omnizarr.netcdf.Dataset(place, "w", zarr_format=zarr_format) as dataset:
            dataset.createDimension("x", 2)
            group = dataset.createGroup("g")
            group.createDimension("y", 3)
            group.createVariable("v", "i4", ("x", "y"))[:] = [[1, 2, 3], [4, 5, 6]]
            group.createGroup("deep").createVariable("w", "i4", ("y",))[:] = [7, 8, 9]
        assert omnizarr.move_node(f"{place}/g", f"{place}/h").remarks == ()
        omnizarr.copy_node(f"{place}/h", f"{place}/k")
        with omnizarr.netcdf.Dataset(place) as dataset:
            for name in ("h", "k"):
                found = dataset[f"{name}/v"]
                assert (found.dimensions, found.shape) == (("x", "y"), (2, 3))
                assert found.get_dims()[1].group().path == f"/{name}"
                assert dataset[f"{name}/deep/w"].get_dims()[0].group().path == f"/{name}"
                np.testing.assert_array_equal(dataset[f"{name}/deep/w"][:], [7, 8, 9])
        other = str(tmp_path / "b.zarr")
        omnizarr.netcdf.Dataset(other, "w", zarr_format=zarr_format).close()
        (told,) = omnizarr.copy_node(f"{place}/h", f"{other}/z").remarks  # of the array, or the group that notes it
        assert told.startswith("/z")
        assert told.endswith(": refers to dimension '/x', which stayed behind")


class Keeping(LocalStore):
    """A store in which nothing can be deleted."""

    def delete(self, key):
        raise errors.StoreAccessError("denied", store=repr(self), key=key)


def test_journal_that_cannot_be_deleted_is_named_with_what_to_do(tmp_path):
    source = omnizarr.create_group({})
    source["t"] = [1, 2]
    for copy in (omnizarr.copy_node, omnizarr.convert):
        store = Keeping(tmp_path / copy.__name__)
        with pytest.raises(errors.StoreAccessError, match="everything is written, but the document") as caught:
            copy(source, store)
        assert caught.value.key == "omnizarr-conversion.json"
        assert "resume=True" in caught.value.remedy
        again = LocalStore(tmp_path / copy.__name__)
        copy(source, again, resume=True)
        assert "omnizarr-conversion.json" not in set(again.list())
        assert omnizarr.open(again)["t"][...].tolist() == [1, 2]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("zarr_format", ["3-draft2019", "3-draft2020"])
def test_copy_over_the_root_of_a_draft_leaves_other_files_alone(tmp_path, zarr_format, fails, monkeypatch):
    others = {"README.txt": b"who made this", "photos/2023": b"only digits", "other.zarr/zarr.json": b"{}"}
    for name in ("source", "target"):
        omnizarr.create_group(tmp_path / name, zarr_format=zarr_format).create_array(name, data=np.arange(4))
    for key, value in others.items():
        (tmp_path / "target" / key).parent.mkdir(exist_ok=True)
        (tmp_path / "target" / key).write_bytes(value)
    (tmp_path / "source/README.txt").write_bytes(others["README.txt"])  # the same
    (tmp_path / "source/notes.txt").write_bytes(b"copied")

    def files():
        return {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}

    before = files()
    if fails:
        monkeypatch.setattr(cp.Copy, "_refuse_name", failing_at(3))
        with pytest.raises(OSError, match="injected"):
            omnizarr.copy_node(tmp_path / "source", tmp_path / "target", overwrite=True)
        assert files() == before
        np.testing.assert_array_equal(omnizarr.open_array(tmp_path / "target", path="target")[:], np.arange(4))
        return
    omnizarr.copy_node(tmp_path / "source", tmp_path / "target", overwrite=True)
    assert {key: (tmp_path / "target" / key).read_bytes() for key in others} == others
    assert (tmp_path / "target/notes.txt").read_bytes() == b"copied"
    assert {name.partition("/")[2] for name in files() if name.startswith("target/")} == {
        *(name.partition("/")[2] for name in before if name.startswith("source/")),
        *others,
    }


def failing_at(nth):
    """Return a method that fails when it is called for the nth time."""
    calls = iter(range(1, nth))

    def method(*_):
        if next(calls, None) is None:
            raise OSError("injected")

    return method
