"""`omnizarr.tools.copy`."""

import numpy as np
import pytest
import xarray as xr

import omnizarr
from omnizarr import errors
from omnizarr.stores import MemoryStore
from omnizarr.tools.convert.moving import Move

FORMATS = (2, 3)
VALUES = np.arange(12).reshape(3, 4)
pairs = pytest.mark.parametrize(("old", "new"), [(2, 2), (2, 3), (3, 2), (3, 3)])


def make(zarr_format):
    root = omnizarr.create_group(MemoryStore(), zarr_format=zarr_format, attributes={"title": "t"})
    root.create_array("g/x", data=VALUES, chunks=(2, 3), fill_value=-1, attributes={"units": "K"})
    root.create_array("y", data=VALUES + 0.5)
    return root


class TestCopy:
    @pairs
    def test_array(self, old, new):
        source, dest = make(old), omnizarr.create_group({}, zarr_format=new)
        result = omnizarr.copy(source["g/x"], dest)
        assert result == (1, 0, VALUES.nbytes)
        made = dest["x"]
        np.testing.assert_array_equal(made[...], VALUES)
        assert (made.chunks, made.fill_value, made.zarr_format) == ((2, 3), -1, new)
        assert made.attrs["units"] == "K"

    @pairs
    def test_group(self, old, new):
        source, dest = make(old), omnizarr.create_group({}, zarr_format=new)
        assert omnizarr.copy(source["g"], dest, name="h")[:2] == (2, 0)
        np.testing.assert_array_equal(dest["h/x"][...], VALUES)

    @pairs
    def test_all(self, old, new):
        source, dest = make(old), omnizarr.create_group({}, zarr_format=new)
        assert omnizarr.copy_all(source, dest)[:2] == (3, 0)
        assert [path for path, _ in dest.members(None)] == ["g", "g/x", "y"]
        assert dest.attrs["title"] == "t"

    def test_same_format_copies_stored_bytes(self):
        source, dest = make(3), omnizarr.create_group(MemoryStore())
        omnizarr.copy_all(source, dest)
        assert {key: bytes(dest.store.get(key)) for key in dest.store.list()} == {
            key: bytes(source.store.get(key)) for key in source.store.list()
        }

    def test_keywords_change_what_is_made(self):
        dest = omnizarr.create_group({})
        omnizarr.copy(make(3)["g/x"], dest, chunks=(3, 4), compressors=None)
        assert (dest["x"].chunks, dest["x"].compressors) == ((3, 4), ())
        np.testing.assert_array_equal(dest["x"][...], VALUES)

    def test_without_attributes(self):
        for zarr_format in FORMATS:
            dest = omnizarr.create_group({}, zarr_format=zarr_format)
            omnizarr.copy(make(3)["g/x"], dest, without_attrs=True)
            assert dest["x"].attrs == {}

    def test_shallow(self):
        dest = omnizarr.create_group({})
        source = omnizarr.create_group({})
        source["g/sub/z"] = source["g/x"] = VALUES
        omnizarr.copy(source["g"], dest, shallow=True)
        assert [path for path, _ in dest.members(None)] == ["g", "g/x"]

    def test_dry_run_says_what_it_would_do(self):
        lines = []
        dest = omnizarr.create_group({})
        assert omnizarr.copy_all(make(3), dest, dry_run=True, log=lines.append)[:2] == (3, 0)
        assert len(lines) == 3
        assert list(dest) == []

    @pytest.mark.parametrize(
        ("if_exists", "result"), [("replace", (1, 0)), ("skip", (0, 1)), ("skip_initialized", (0, 1))]
    )
    def test_existing_data(self, if_exists, result):
        source, dest = make(3), omnizarr.create_group({})
        dest["x"] = [1]
        with pytest.raises(errors.NodeExistsError):
            omnizarr.copy(source["g/x"], dest)
        assert omnizarr.copy(source["g/x"], dest, if_exists=if_exists)[:2] == result
        assert dest["x"].shape == ((3, 4) if if_exists == "replace" else (1,))

    def test_empty_array_is_replaced_by_skip_initialized(self):
        source, dest = make(3), omnizarr.create_group({})
        dest.create_array("x", shape=1, dtype="i1")
        omnizarr.copy(source["g/x"], dest, if_exists="skip_initialized")
        assert dest["x"].shape == (3, 4)

    def test_root_needs_a_name(self):
        with pytest.raises(ValueError, match="name"):
            omnizarr.copy(make(3), omnizarr.create_group({}))
        with pytest.raises(ValueError, match="if_exists"):
            omnizarr.copy(make(3)["y"], omnizarr.create_group({}), if_exists="perhaps")


class TestCopyStore:
    def test_everything(self):
        source, dest = make(3).store, {}
        result = omnizarr.copy_store(source, dest)
        assert dest == {key: bytes(source.get(key)) for key in source.list()}
        assert result == (len(dest), 0, sum(map(len, dest.values())))

    def test_part(self):
        dest = {}
        omnizarr.copy_store(make(3).store, dest, source_path="g", dest_path="a/b")
        assert omnizarr.open(dest, path="a/b/x").shape == (3, 4)

    def test_patterns(self):
        dest = {}
        omnizarr.copy_store(make(3).store, dest, excludes=["/c/", "^y"], includes="/c/0/0")
        assert set(dest) == {"zarr.json", "g/zarr.json", "g/x/zarr.json", "g/x/c/0/0", "y/c/0/0"}

    def test_existing_data(self):
        source, dest = make(3).store, {"zarr.json": b"old"}
        with pytest.raises(errors.NodeExistsError):
            omnizarr.copy_store(source, dest)
        assert dest == {"zarr.json": b"old"}
        assert omnizarr.copy_store(source, dest, if_exists="skip").skipped == 1
        assert dest["zarr.json"] == b"old"
        omnizarr.copy_store(source, dest, if_exists="replace")
        assert dest["zarr.json"] != b"old"

    def test_dry_run(self):
        dest, lines = {}, []
        assert omnizarr.copy_store(make(3).store, dest, dry_run=True, log=lines.append).copied == len(lines)
        assert dest == {}

    def test_an_archive_is_complete_when_the_call_returns(self, tmp_path):
        source = make(3)
        omnizarr.copy_store(source.store, tmp_path / "new.zip")
        assert [each.name for each in tmp_path.iterdir()] == ["new.zip"]
        omnizarr.copy_store(tmp_path / "new.zip", tmp_path / "again.zarr")
        np.testing.assert_array_equal(omnizarr.open(tmp_path / "again.zarr")["g/x"][...], VALUES)


class TestOverlap:
    """Nothing is copied over itself or into itself."""

    @pytest.mark.parametrize("keywords", [{}, {"chunks": 2}], ids=["bytes", "values"])
    def test_an_array_does_not_replace_itself(self, tmp_path, keywords):
        root = omnizarr.create_group(tmp_path)
        root["x"] = VALUES
        source = omnizarr.open_group(tmp_path, mode="r")["x"]
        with pytest.raises(errors.NodeNameError):
            omnizarr.copy(source, root, if_exists="replace", **keywords)
        np.testing.assert_array_equal(root["x"][...], VALUES)

    def test_a_group_is_not_copied_to_below_itself(self):
        root = make(3)
        root.create_group("g/below")
        for copied in (lambda: omnizarr.copy(root["g"], root["g/below"]), lambda: omnizarr.copy_all(root, root["g"])):
            with pytest.raises(errors.NodeNameError):
                copied()
        assert sorted(path for path, _ in root.members(None)) == ["g", "g/below", "g/x", "y"]


class TestMeaning:
    """What other programs understand is the same in another format."""

    @pytest.mark.parametrize(("old", "new"), [(2, 3), (3, 2)])
    @pytest.mark.parametrize("whole", [True, False])
    def test_xarray_reads_the_same(self, tmp_path, old, new, whole):
        packed = {"dtype": "i2", "_FillValue": -99, "scale_factor": 0.5}
        dataset = xr.Dataset(
            {
                "packed": ("x", [0.5, np.nan, 1.5]),
                "n": ("x", [0, 1, 2]),
                "s": ((), 5),
                "text": ("x", np.array(["a", "b", ""], object)),
            },
            coords={"x": [1.0, 2.0, 3.0]},
            attrs={"title": "t"},
        )
        dataset.to_zarr(tmp_path / "old" / "g", zarr_format=old, consolidated=False, encoding={"packed": packed})
        source = omnizarr.open_group(tmp_path / "old", mode="r")
        dest = omnizarr.create_group(tmp_path / "new", zarr_format=new)
        if whole:
            omnizarr.copy(source["g"], dest)
        else:
            omnizarr.copy_all(source["g"], dest.create_group("g"))
        found = [xr.open_zarr(tmp_path / each / "g", consolidated=False).load() for each in ("old", "new")]
        assert found[0].identical(found[1])
        assert np.isnan(found[1]["packed"].values).tolist() == [False, True, False]

    @pytest.mark.parametrize(("old", "new"), [(2, 3), (3, 2)])
    def test_names_of_dimensions_and_compressors_stay(self, old, new):
        source = omnizarr.create_group({}, zarr_format=old)
        names = {"dimension_names": ("y", "x")} if old == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["y", "x"]}}
        source.create_array("a", data=VALUES, compressors="gzip", **names)
        dest = omnizarr.create_group({}, zarr_format=new)
        omnizarr.copy(source["a"], dest)
        assert dest["a"].dimension_names == ("y", "x")
        assert "gzip" in str(dest["a"].compressors).lower()

    def test_ome_metadata_move_to_where_readers_look(self):
        axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
        scale = [{"type": "scale", "scale": [1.0, 1.0]}]
        told = {"version": "0.4", "axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}
        source = omnizarr.create_group({}, zarr_format=2)
        source.create_group("image", attributes={"multiscales": [told]}).create_array("0", data=VALUES)
        dest = omnizarr.create_group({})
        omnizarr.copy(source["image"], dest)
        assert dest["image"].attrs["ome"]["version"] == "0.5"
        assert "multiscales" not in dest["image"].attrs

    def test_nothing_is_copied_if_something_would_be_lost(self):
        source = omnizarr.create_group({})
        source["g/a"] = VALUES
        source["g"].create_array("r", shape=(3,), dtype="f4", fill_value="0x7fc00abc")
        dest = omnizarr.create_group({}, zarr_format=2)
        with pytest.raises(errors.NotRepresentableError, match="/r: "):
            omnizarr.copy(source["g"], dest)
        assert list(dest) == []

    @pytest.mark.parametrize("shallow", [True, False])
    def test_what_is_not_copied_may_be_what_would_be_lost(self, shallow):
        source, dest = omnizarr.create_group({}), omnizarr.create_group({}, zarr_format=2)
        source["g/a"] = VALUES
        source.create_array("g/below/r", shape=(3,), dtype="f4", fill_value="0x7fc00abc")
        if shallow:
            assert omnizarr.copy(source["g"], dest, shallow=True)[:2] == (2, 0)
        else:
            with pytest.raises(errors.NotRepresentableError, match="/below/r: "):
                omnizarr.copy(source["g"], dest)

    def test_a_broken_chunk_leaves_nothing_of_the_array(self):
        source, dest = omnizarr.create_group({}), omnizarr.create_group({}, zarr_format=2)
        array = source.create_array("a", data=VALUES, chunks=(1, 4), shards=(2, 4))
        array.store.set("a/c/1/0", b"broken")
        before = set(dest.store.list())
        with pytest.raises(errors.ChunkError, match="c/1/0"):
            omnizarr.copy(array, dest)
        assert set(dest.store.list()) == before

    @pytest.mark.parametrize(("old", "new"), [(2, 2), (2, 3), (3, 2), (3, 3)])
    def test_files_of_other_programs_stay_where_an_array_is_replaced(self, tmp_path, old, new):
        source = omnizarr.create_group({}, zarr_format=old)
        source["a"] = VALUES
        dest = omnizarr.create_group(tmp_path, zarr_format=new)
        dest["a"] = VALUES + 1
        (tmp_path / "a" / "README").write_text("mine")
        omnizarr.copy(source["a"], dest, if_exists="replace")
        np.testing.assert_array_equal(dest["a"][...], VALUES)
        assert (tmp_path / "a" / "README").read_text() == "mine"

    def test_a_copy_that_fails_leaves_what_another_writer_has_made_meanwhile(self, tmp_path, monkeypatch):
        source, dest = omnizarr.create_group({}), omnizarr.create_group(tmp_path, zarr_format=2)
        source["a"] = VALUES

        def compare(move, *_):
            omnizarr.create_array(tmp_path / "a", data=VALUES + 1, zarr_format=2)
            raise errors.ChunkError("torn")

        monkeypatch.setattr(Move, "compare", compare)
        with pytest.raises(errors.ChunkError, match="torn"):
            omnizarr.copy(source["a"], dest)
        np.testing.assert_array_equal(dest["a"][...], VALUES + 1)


def test_what_makes_a_node_is_copied_after_its_other_documents():
    source, told = make(2), []
    omnizarr.copy_store(source.store, {}, log=told.append)
    keys = [text.removeprefix("copy ") for text in told]
    assert keys[-2:] == [".zattrs", ".zgroup"]
    assert keys.index("g/x/.zattrs") < keys.index("g/x/.zarray") < keys.index("g/.zgroup")
    chunks = [number for number, key in enumerate(keys) if not key.rpartition("/")[2].startswith(".z")]
    assert max(chunks) < keys.index("g/x/.zattrs")
