"""Files in a hierarchy that are not Zarr: every verb that copies carries them, or says which it leaves out."""

import itertools
import os
import re
import sqlite3
import tracemalloc
import zipfile
from pathlib import Path

import pytest

import omnizarr
from omnizarr.errors import NodeExistsError, NotRepresentableError, StoreError
from omnizarr.stores import LocalStore, ReadOnlyStore
from omnizarr.tools.strangers import above_numbers
from tests.fakes import UnlistableStore, failing
from tests.tools.hierarchies import FORMATS

FILES = {
    "README.md": b"# tissue",
    ".DS_Store": b"\0\0\0\1Bud1",
    "empty": b"",
    "points/transcripts/points.parquet/part.0.parquet": bytes(range(256)) * 40,
    "shapes/cells/shapes.parquet": b"PAR1",
    "images/labels/notes.txt": b"within an array",
    "OME/METADATA.ome.xml": b"<OME/>",
    "data.csv": b"1,2",
    "2024": b"named like a chunk",
    "photos/001": b"the same, in a folder",
    "gone/0.0": b"a chunk of an array that was deleted",
}
GARBAGE = {
    "images/labels/7.7": b"a chunk beyond the grid",
    "images/labels/c/9/9": b"the same, as another format spells it",
    "images/labels/0.0.0123456789abcdef0123456789abcdef.partial": b"what a writer left",
    "images/labels/.zarray.lock": b"",
}


def spatial(place, zarr_format):
    """Make a hierarchy with files as SpatialData, OME and people leave them."""
    root = omnizarr.create_group(place, zarr_format=zarr_format) if zarr_format != 1 else None
    for path in ("images", "points", "points/transcripts", "shapes/cells") if root is not None else ():
        root.create_group(path)
    layout = {"shape": (4, 4), "chunks": (2, 2), "dtype": "i4", "zarr_format": zarr_format}
    labels = omnizarr.create_array(place, name="images/labels", **layout)
    labels[...] = 1
    store = labels.store_path.store
    for key, value in {**FILES, **GARBAGE}.items():
        store.set(key, value)
    return place


def files_in(place):
    """Return the files of a hierarchy as another program sees them."""
    if isinstance(place, dict):
        found = {key: bytes(value) for key, value in place.items()}
    elif str(place).endswith(".zip"):
        with zipfile.ZipFile(place) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
    elif str(place).endswith(".sqlite"):
        with sqlite3.connect(place) as database:
            found = dict(database.execute("SELECT k, v FROM zarr"))
    else:
        top = Path(place)
        found = {path.relative_to(top).as_posix(): path.read_bytes() for path in top.rglob("*") if path.is_file()}
    return {key: value for key, value in found.items() if key in FILES or key in GARBAGE}


def place_of(kind, tmp_path, name):
    return {} if kind == "memory" else str(tmp_path / f"{name}.{kind}")


# -- what carries them --------------------------------------------------------------------------


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_files_are_carried_between_all_formats_and_back(source, target):
    old, new, back = spatial({}, source), {}, {}
    done = omnizarr.convert(old, new, zarr_format=target)
    assert files_in(new) == FILES
    assert sorted(done.files) == sorted(FILES)
    assert done.is_lossless or target == 1  # which has no groups
    omnizarr.convert(new, back, zarr_format=source)
    assert files_in(back) == FILES


@pytest.mark.parametrize("kind", ["memory", "zarr", "zip", "sqlite"])
def test_files_are_carried_into_every_kind_of_store(kind, tmp_path):
    place = place_of(kind, tmp_path, "new")
    done = omnizarr.convert(spatial({}, 2), place, strict=True)
    assert files_in(place) == FILES
    assert f"{len(FILES)} files that are not Zarr (" in str(done)
    assert done.to_json()["files"] == sorted(FILES)


def copied_by_copy_store(old, new):
    omnizarr.copy_store(old, new)


def copied_by_copy(old, new):
    omnizarr.copy(omnizarr.open_group(old, mode="r"), omnizarr.create_group(new, zarr_format=2), "in")


def copied_by_copy_to_another_format(old, new):
    omnizarr.copy(omnizarr.open_group(old, mode="r"), omnizarr.create_group(new, zarr_format=3), "in")


def copied_by_copy_all(old, new):
    omnizarr.copy_all(omnizarr.open_group(old, mode="r"), omnizarr.create_group(new, zarr_format=3))


def copied_by_copy_node(old, new):
    omnizarr.copy_node(old, new)


def copied_by_rechunk(old, new):
    omnizarr.rechunk(old, new, chunks=(4, 4))


VERBS = [
    copied_by_copy_store,
    copied_by_copy,
    copied_by_copy_to_another_format,
    copied_by_copy_all,
    copied_by_copy_node,
    copied_by_rechunk,
]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_every_verb_that_copies_a_hierarchy_carries_files(verb):
    old, new = spatial({}, 2), {}
    verb(old, new)
    found = {key.removeprefix("in/"): bytes(value) for key, value in new.items()}
    assert {key: found.get(key) for key in FILES} == FILES


def test_a_dry_run_names_files_and_writes_none():
    done = omnizarr.convert(spatial({}, 2), target := {}, dry_run=True)
    assert (sorted(done.files), target) == (sorted(FILES), {})
    assert "would be copied unchanged" in str(done)


def test_only_files_below_the_converted_node_are_carried():
    new = {}
    omnizarr.convert(spatial({}, 2), new, path="points")
    assert [key for key in new if key.endswith(".parquet")] == ["transcripts/points.parquet/part.0.parquet"]
    assert "README.md" not in new


def test_garbage_is_not_carried_and_told():
    told = str(omnizarr.convert(spatial({}, 2), new := {}))
    assert not set(new) & set(GARBAGE)
    assert "not carried: 2 lock or temporary files" in told


@pytest.mark.parametrize("beside", [{"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'}, {".zmetadata": b"{}"},
                                    {"images/labels/.nczarray": b"{}", ".nczgroup": b"{}"}])  # fmt: skip
def test_documents_of_other_formats_are_no_files(beside):
    old = {**spatial({}, 2), **beside}
    done = omnizarr.convert(old, {}, source_format=2, zarr_format=2)
    assert not set(done.files) & set(beside)


# -- what cannot be carried -----------------------------------------------------------------------


def test_files_with_names_of_documents_are_losses():
    old = spatial({}, 2)
    old["meta"] = b"measured in May"
    assert omnizarr.convert(old, {}, zarr_format=3, dry_run=True).is_lossless
    done = omnizarr.convert(old, new := {}, zarr_format=1)
    assert any("'meta'" in loss.what for loss in done.losses)
    assert "meta" not in new
    with pytest.raises(NotRepresentableError, match="the file 'meta'"):
        omnizarr.convert(old, {}, zarr_format=1, strict=True)


@pytest.mark.parametrize("draft", ["3-draft2019", "3-draft2020"])
def test_files_where_a_draft_keeps_its_chunks_are_losses(draft):
    old = spatial({}, 3)
    old["data/table.csv"] = b"1,2"
    done = omnizarr.convert(old, new := {}, zarr_format=draft)
    assert [loss.what for loss in done.losses] == ["the file 'data/table.csv'"]
    assert "data/table.csv" not in new


def test_a_file_with_the_name_of_a_directory_is_a_loss_in_a_directory(tmp_path):
    old = spatial({}, 3)
    old["images"] = b"a key that is also a prefix"
    done = omnizarr.convert(old, tmp_path / "new.zarr", zarr_format=3)
    assert [(loss.path, loss.what) for loss in done.losses] == [("", "the file 'images'")]
    assert omnizarr.convert(old, {}, zarr_format=3).is_lossless


@pytest.mark.skipif(os.name == "nt", reason="needs a symbolic link")
def test_a_link_that_leads_out_of_the_store_is_a_loss(tmp_path):
    spatial(tmp_path / "old.zarr", 2)
    (tmp_path / "old.zarr" / "points" / "table").symlink_to("/etc/hostname")
    done = omnizarr.convert(tmp_path / "old.zarr", {})
    assert [(loss.path, loss.what) for loss in done.losses] == [("points", "the file 'points/table'")]


def test_a_netcdf_file_has_no_room_for_files(tmp_path):
    pytest.importorskip("netCDF4", reason="writes the file")
    done = omnizarr.convert(spatial(str(tmp_path / "old.zarr"), 2), tmp_path / "new.nc")
    lost = {loss.what for loss in done.losses}
    assert {f"the file {key!r}" for key in FILES if key != ".DS_Store"} <= lost
    with pytest.raises(NotRepresentableError, match="README"):
        omnizarr.convert(str(tmp_path / "old.zarr"), tmp_path / "other.nc", strict=True)


def test_a_store_that_cannot_list_is_told():
    old = spatial({}, 3)
    omnizarr.consolidate_metadata(old)
    unlisted = UnlistableStore(omnizarr.open_group(old, mode="r").store_path.store)
    assert "files that are not Zarr, if there are any, were not found" in str(omnizarr.convert(unlisted, {}))
    assert "files that are not Zarr are those of the other" in str(omnizarr.diff(unlisted, old))


# -- interruptions, and files that exist in the target -------------------------------------------------------


def test_a_file_in_the_way_is_not_replaced_unless_asked():
    old, new = spatial({}, 2), {"README.md": b"of another program"}
    with pytest.raises(NodeExistsError, match="a file is in the way") as caught:
        omnizarr.convert(old, new)
    assert caught.value.key == "README.md"
    assert new == {"README.md": b"of another program"}
    omnizarr.convert(old, new, overwrite=True)
    assert files_in(new) == FILES


def test_an_interrupted_conversion_is_continued_with_its_files(tmp_path):
    old, new = (
        spatial({}, 2),
        failing(
            LocalStore(tmp_path / "new.zarr"),
            StoreError("the disk is full"),
            verb="set",
            key="shapes.parquet$",
            once=True,
        ),
    )
    with pytest.raises(StoreError, match="the disk is full"):
        omnizarr.convert(old, new)
    assert omnizarr.convert(old, new, resume=True).is_lossless
    assert files_in(tmp_path / "new.zarr") == FILES


def test_files_of_any_size_are_copied_in_bounded_memory(tmp_path):
    old = spatial(tmp_path / "old.zarr", 3)
    big = tmp_path / "old.zarr" / "points" / "big.parquet"
    with big.open("wb") as file:
        file.seek(48 * 2**20)
        file.write(b"end")
    tracemalloc.start()
    omnizarr.convert(old, tmp_path / "new.zarr")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "new.zarr" / "points" / "big.parquet").read_bytes() == big.read_bytes()
    assert peak < 32 * 2**20


@pytest.mark.parametrize("size", [2**22 - 1, 2**22, 2**22 + 1, 2**23])
@pytest.mark.parametrize("kind", ["memory", "zarr", "zip", "sqlite"])
def test_files_of_sizes_about_those_of_pieces(size, kind, tmp_path):
    old = {**spatial({}, 3), "data.csv": os.urandom(16) * (size // 16) + b"x" * (size % 16)}
    place = place_of(kind, tmp_path, "new")
    omnizarr.convert(old, place)
    assert files_in(place)["data.csv"] == old["data.csv"]


# -- comparing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [2, 3, "3-draft2020"])
def test_diff_finds_every_change_of_a_file(target):
    old, new = spatial({}, 2), {}
    omnizarr.convert(old, new, zarr_format=target)
    found = omnizarr.diff(old, new)
    assert found.equal, str(found)
    assert found.files == len(FILES) - 1  # without that of an operating system
    new["README.md"] = b"# Tissue"
    new["data.csv"] += b"3"
    del new["shapes/cells/shapes.parquet"]
    new["images/labels/more.txt"] = b"new"
    new[".DS_Store"] = b"changes by itself"
    told = [(each.path, each.kind, each.name, each.only) for each in omnizarr.diff(old, new)]
    assert sorted(told) == [
        ("", "file", "README.md", ""),
        ("", "file", "data.csv", ""),
        ("images/labels", "file", "more.txt", "right"),
        ("shapes/cells", "file", "shapes.parquet", "left"),
    ]


def test_diff_without_values_does_not_look_for_files():
    old = spatial({}, 2)
    assert omnizarr.diff(old, {**old, "README.md": b"other"}, values=False).equal


def test_digest_says_which_files_it_does_not_cover():
    old = spatial({}, 2)
    found = omnizarr.digest(old)
    assert sorted(found.left_out) == sorted(set(FILES) - {".DS_Store"})
    assert str(found).splitlines()[-1].startswith("# without 10 files that are not Zarr (")
    assert found == omnizarr.digest({**old, "README.md": b"other"})
    assert not [each for each in omnizarr.check(old, digest=found) if each.code == "digest-differs"]


def test_read_only_sources_are_enough():
    old = spatial({}, 3)
    store = omnizarr.open_group(old, mode="r").store_path.store
    omnizarr.convert(ReadOnlyStore(store), new := {})
    assert files_in(new) == FILES


@pytest.mark.parametrize("zarr_format", ["3-draft2019", "3-draft2020"])
def test_copying_the_root_of_a_draft_copies_files(tmp_path, zarr_format):
    omnizarr.create_group(tmp_path / "old", zarr_format=zarr_format).create_array("a", data=[1, 2])
    before = omnizarr.copy_node(tmp_path / "old", tmp_path / "first").keys
    (tmp_path / "old" / "README.md").write_text("read me")
    (tmp_path / "old" / "tables").mkdir()
    (tmp_path / "old" / "tables" / "a.csv").write_text("a,b")
    assert omnizarr.copy_node(tmp_path / "old", tmp_path / "second", dry_run=True).keys == before + 2
    made = omnizarr.copy_node(tmp_path / "old", tmp_path / "second")
    assert (made.keys, made.remarks) == (before + 2, ())
    assert (tmp_path / "second" / "README.md").read_text() == "read me"
    assert (tmp_path / "second" / "tables" / "a.csv").read_text() == "a,b"
    assert omnizarr.copy_node(tmp_path / "old", tmp_path / "second", resume=True).remarks == (
        "the copy was complete already",
    )


@pytest.mark.parametrize("zarr_format", ["3-draft2019", "3-draft2020"])
def test_copying_the_root_of_a_draft_replaces_no_other_file(zarr_format):
    source, target = {}, {"README.md": b"mine"}
    omnizarr.create_group(source, zarr_format=zarr_format).create_array("a", data=[1, 2])
    source["README.md"] = b"read me"
    with pytest.raises(NodeExistsError, match=r"in the way"):
        omnizarr.copy_node(source, target)
    assert target == {"README.md": b"mine"}


def test_numbers_at_the_end_of_keys_are_those_of_a_plain_pattern():
    """The pattern says what is looked for, but takes time with the square of the key."""
    numbers = re.compile(r"(?:c/?)?[0-9]+(?:[./][0-9]+)*")
    for key in map("".join, itertools.product("c1/.a", repeat=5)):
        starts = [0, *(at + 1 for at, letter in enumerate(key) if letter == "/")]
        heads = [key[: max(0, start - 1)] for start in starts if numbers.fullmatch(key, start)]
        assert above_numbers(key) == (heads[0] if heads else None), key
