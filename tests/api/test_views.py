"""Saved views: what they open to, what is refused, and what a stranger's document cannot do."""

import json
import os
import pickle
import random
import shutil
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import (
    JoinError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    OmnizarrError,
    ReadOnlyError,
    StaleError,
    StoreAccessError,
)
from omnizarr.nodes.lazy import sources
from omnizarr.stores import MemoryStore, ZipStore, verbs
from omnizarr.stores.base import answers
from tests.nodes.lazy.test_against_numpy import a_change, a_selection


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def years(*numbers, **options):
    for number in numbers:
        values = np.arange(6.0).reshape(2, 3) + number
        omnizarr.create_array(f"{number}.zarr", data=values, dimension_names=["time", "x"], **options)
    return [f"{number}.zarr" for number in numbers]


def test_a_saved_array_opens_as_what_it_was(folder):
    joined = omnizarr.concat(years(2000, 2001, 2002))
    omnizarr.save_view("all.zview", joined)
    again = omnizarr.open("all.zview")
    assert (again.shape, again.dtype, again.dimension_names) == (joined.shape, joined.dtype, ("time", "x"))
    np.testing.assert_array_equal(again[...], joined[...])
    np.testing.assert_array_equal(again.lazy[::2, [2, 0]][...], joined[::2, [2, 0]])


def test_a_saved_group_opens_as_what_it_was(folder):
    for year in (2000, 2001):
        group = omnizarr.create_group(f"{year}.zarr", zarr_format=2 + year % 2, attributes={"title": "t"})
        for name, data, dims, attributes in (
            ("time", [0, 1], ["time"], {"units": f"days since {year}-12-30"}),
            ("deep/p", np.int16([[year, -1], [1, 2]]), ["time", "x"], {"scale_factor": year / 100, "_FillValue": -1}),
        ):
            named = {"dimension_names": dims} if year % 2 else {}
            array = group.create_array(name, data=data, **named)
            array.attrs.update(attributes if named else {**attributes, "_ARRAY_DIMENSIONS": dims})
    both = omnizarr.combine(["2001.zarr", "2000.zarr"], "time", gaps="keep")
    omnizarr.save_view("all.zview", both)
    again = omnizarr.open_group("all.zview")
    assert again.store.notes == both.store.notes
    assert again.attrs["title"] == "t"
    assert again["deep/p"].attrs.asdict() == both["deep/p"].attrs.asdict()
    np.testing.assert_array_equal(again["deep/p"][...], both["deep/p"][...])
    np.testing.assert_array_equal(again["time"][...], [0, 1, 365, 366])
    xr.testing.assert_identical(
        xr.open_datatree("all.zview", engine="omnizarr").load(), xr.open_datatree(both, engine="omnizarr").load()
    )


@settings(max_examples=150)
@given(data=st.data())
def test_any_tree_of_operations_is_saved(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("views")
    shape = data.draw(st.lists(st.integers(1, 5), max_size=3).map(tuple))
    expected = (
        np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(data.draw(st.sampled_from(["i4", "f8", ">i2"])))
    )
    omnizarr.create_array(folder / "a.zarr", data=expected, zarr_format=data.draw(st.sampled_from([2, 3])))
    view = omnizarr.open_array(folder / "a.zarr", mode="r").lazy[...]
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from([a_selection, a_change, "join"]))
        if step == "join":
            if expected.ndim:
                view, expected = omnizarr.concat([view, expected + 1]), np.concatenate([expected, expected + 1])
        else:
            view, expected = data.draw(step(view, expected))
    omnizarr.save_view(folder / "v.zview", view)
    again = omnizarr.open_array(folder / "v.zview").lazy[...]
    assert again.dtype == view.dtype
    np.testing.assert_array_equal(again[...], expected)


@pytest.mark.parametrize(
    "step",
    [
        lambda view: view.unpack(2.5, offset=1e300, fill=[1, 3]),
        lambda view: view.unpack(scale=0.1, fill=np.nan, dtype="float32"),
        lambda view: view.pack("int16", scale=0.5, fill=-1),
        lambda view: view.astype("complex64"),
        lambda view: omnizarr.block([[view, None], [None, view]], fill_value=np.nan),
    ],
)
def test_conversions_and_gaps_are_saved(folder, step):
    view = step(omnizarr.open_array(years(2000)[0], mode="r").lazy[...])
    omnizarr.save_view("v.zview", view)
    np.testing.assert_array_equal(omnizarr.open("v.zview")[...], view[...])


@pytest.mark.parametrize(
    "values", [np.array(["a", "bcd", ""], "T"), np.array(["a", "bé"]), np.array(["2000-01-01"], "M8[D]")]
)
def test_elements_that_are_in_no_store_are_saved(folder, values):
    omnizarr.save_view("v.zview", omnizarr.concat([values, values]))
    assert omnizarr.open("v.zview")[...].tolist() == np.concatenate([values, values]).tolist()


# ---- opening


def test_opening_opens_no_source_and_reading_opens_those_that_are_asked(folder):
    paths = years(*range(2000, 2010))
    omnizarr.save_view("all.zview", omnizarr.concat(paths))
    for path in paths[:3] + paths[4:]:
        shutil.rmtree(path)
    again = omnizarr.open("all.zview")
    assert again[6, 1] == 2004.0
    assert again[6:8].shape == (2, 3)
    with pytest.raises(NodeNotFoundError, match=r"2004\.zarr"):
        again[7:9]


def test_view_moves_with_its_sources(folder):
    (folder / "a").mkdir()
    os.chdir("a")
    omnizarr.save_view("all.zview", omnizarr.concat(years(2000, 2001)))
    os.chdir("..")
    shutil.move("a", "b")
    assert omnizarr.open("b/all.zview")[3, 0] == 2004.0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda array: array.resize((1, 3)), "has changed: found shape.*1, 3.*expected.*2, 3"),
        (lambda array: array.attrs.update(scale_factor=2), "has changed: found other metadata"),
        (lambda array: array.store.delete("zarr.json"), "2001"),
        (
            lambda array: omnizarr.create_array(array.store, data=np.zeros((2, 3), "i4"), overwrite=True),
            "has changed.*int32.*float64",
        ),
    ],
)
def test_a_source_that_changed_is_an_error_that_names_it(folder, change, match):
    omnizarr.save_view("all.zview", omnizarr.concat(years(2000, 2001)))
    change(omnizarr.open_array("2001.zarr", mode="r+"))
    again = omnizarr.open("all.zview")
    assert again[0, 0] == 2000.0
    with pytest.raises(OmnizarrError, match=match) as found:
        again[...]
    assert "2001.zarr" in str(found.value)
    assert isinstance(found.value, StaleError | NodeNotFoundError)


# ---- sources that are files


def in_files(ending, *numbers):
    """Write each array to a file of its own, whose times are a day old."""
    for number in numbers:
        with omnizarr.stores.resolve(f"{number}.{ending}", "w")[0] as store:
            omnizarr.create_array(store, data=np.arange(4) + number, chunks=(2,), compressors=None)
        age(f"{number}.{ending}")
    return [f"{number}.{ending}" for number in numbers]


def age(path, seconds=86_400):
    status = Path(path).stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - seconds * 10**9))


def replace_chunk(path):
    with omnizarr.stores.resolve(path, "r+")[0] as store:
        store.set("c/0", np.array([70, 71]).tobytes())


@pytest.mark.parametrize("ending", ["zip", "sqlite"])
def test_a_chunk_that_was_replaced_in_a_file_is_noticed_when_it_is_opened(folder, ending):
    omnizarr.save_view("all.zview", omnizarr.concat(in_files(ending, 1, 2)))
    assert omnizarr.open("all.zview")[...].tolist() == [1, 2, 3, 4, 2, 3, 4, 5]
    size = Path(f"2.{ending}").stat().st_size
    replace_chunk(f"2.{ending}")
    assert Path(f"2.{ending}").stat().st_size == size
    again = omnizarr.open("all.zview")
    assert again[:4].tolist() == [1, 2, 3, 4]
    with pytest.raises(StaleError, match=rf"2\.{ending}.*saved view has changed: found another file.*expected of"):
        again[4:]
    omnizarr.save_view("all.zview", omnizarr.concat([f"1.{ending}", f"2.{ending}"]), overwrite=True)
    assert omnizarr.open("all.zview")[4:].tolist() == [70, 71, 4, 5]


def copied_over(path):
    """Put a file with other elements in the place of one, of the same size and time."""
    status, other = Path(path).stat(), f"new-{path}"
    shutil.copy(path, other)
    os.link(path, f"old-{path}")  # its number is not used again
    replace_chunk(other)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    Path(other).replace(path)
    assert (Path(path).stat().st_size, Path(path).stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)


@pytest.mark.parametrize("ending", ["zip", "sqlite"])
def test_a_file_of_the_same_size_and_time_in_the_place_of_another_is_noticed(folder, ending):
    omnizarr.save_view("all.zview", omnizarr.concat(in_files(ending, 1, 2)))
    copied_over(f"2.{ending}")
    with pytest.raises(StaleError, match=rf"2\.{ending}.*found another file.*number.*expected of.*number"):
        omnizarr.open("all.zview")[4:]


def test_a_file_that_is_changed_as_soon_as_a_view_is_saved_is_noticed(folder):
    """Within a tick of the clock, its time would stay the same."""
    in_files("sqlite", 1)
    for number in range(5):
        with omnizarr.stores.resolve("1.sqlite", "r+")[0] as store:
            store.set("c/0", np.array([number, number]).tobytes())
        omnizarr.save_view("all.zview", omnizarr.concat(["1.sqlite"]), overwrite=True)
        before, data = Path("1.sqlite").stat(), bytearray(Path("1.sqlite").read_bytes())
        assert time.time() - before.st_mtime > 0.09  # ten of the longest ticks
        data[data.index(np.array([number, number]).tobytes())] = 9
        Path("1.sqlite").write_bytes(data)
        assert Path("1.sqlite").stat().st_mtime_ns != before.st_mtime_ns
        with pytest.raises(StaleError, match="another file"):
            omnizarr.open("all.zview")[...]


def test_views_that_were_saved_without_numbers_of_files_are_opened(folder):
    omnizarr.save_view("v.zview", omnizarr.concat(in_files("sqlite", 1)))
    document = json.loads(Path("v.zview").read_text())
    document["marks"] = [mark[:3] for mark in document["marks"]]
    Path("v.zview").write_text(json.dumps(document))
    assert omnizarr.open("v.zview")[...].tolist() == [1, 2, 3, 4]
    copied_over("1.sqlite")  # nothing of it is known
    assert omnizarr.open("v.zview")[0] == 70
    age("1.sqlite", 5)
    with pytest.raises(StaleError, match="another file"):
        omnizarr.open("v.zview")[0]


def test_a_view_moves_with_files_and_archives_may_be_copied(folder):
    for ending in ("zip", "sqlite"):
        Path(ending).mkdir()
        os.chdir(ending)
        omnizarr.save_view("all.zview", omnizarr.concat(in_files(ending, 1, 2)))
        os.chdir("..")
        shutil.move(ending, "moved")
        assert omnizarr.open("moved/all.zview")[3:5].tolist() == [4, 2]
        shutil.copytree("moved", ending)  # keeps the times
        assert omnizarr.open(f"{ending}/all.zview")[3:5].tolist() == [4, 2]
        shutil.rmtree("moved")
    age("zip/1.zip", 5)  # as a copy that does not keep them
    assert omnizarr.open("zip/all.zview")[0] == 1
    age("sqlite/1.sqlite", 5)
    with pytest.raises(StaleError, match="another file"):
        omnizarr.open("sqlite/all.zview")[0]


def test_what_is_known_of_files_outlives_a_view_of_a_view(folder):
    omnizarr.save_view("a.zview", omnizarr.concat(in_files("zip", 1, 2)))
    omnizarr.save_view("b.zview", omnizarr.concat(["a.zview"]))
    replace_chunk("1.zip")
    with pytest.raises(StaleError, match="another file"):
        omnizarr.open("b.zview")[...]


def test_an_archive_in_a_store_is_known_by_its_version(folder):
    values = {"a.zip": Path(in_files("zip", 1)[0]).read_bytes()}
    versions = ["1"]

    class Versioned(MemoryStore):
        @answers(verbs.stamp)
        def _stamp(self, key):
            return versions[0], ""

    store = ZipStore("a.zip", store=Versioned(values), mode="r")
    before = sources.mark_of(store)
    assert before is not None
    assert sources.mark_of(store, before) == before
    versions[0] = "2"
    assert sources.mark_of(store, before) != before


@pytest.mark.parametrize(
    "mark",
    [
        [1, 2],
        [1, 2, 3],
        [-1, 2, ""],
        [1, 2**70, ""],
        ["1", 2, ""],
        5,
        "abc",
        [1.5, 2, ""],
        [True, 1, ""],
        [1, 2, "", "3"],
        [1, 2, "", 3, 4],
    ],
)
def test_broken_marks_are_errors(folder, mark):
    omnizarr.save_view("v.zview", omnizarr.concat(in_files("zip", 1)))
    document = json.loads(Path("v.zview").read_text())
    document["marks"] = [mark]
    Path("v.zview").write_text(json.dumps(document))
    with pytest.raises(MetadataError, match="broken"):
        omnizarr.open("v.zview")


def test_packing_is_known_of_sources_that_are_not_open(folder):
    array = omnizarr.create_array("a.zarr", data=np.int16([1, -1]))
    array.attrs.update({"scale_factor": 0.5, "_FillValue": -1})
    omnizarr.save_view("v.zview", omnizarr.concat(["a.zarr"]))
    again = omnizarr.open("v.zview")
    np.testing.assert_array_equal(again.lazy.unpack()[...], [0.5, np.nan])
    plain = omnizarr.create_array({}, data=[3.0])
    np.testing.assert_array_equal(omnizarr.concat([again, plain])[...], [0.5, np.nan, 3.0])


def test_the_commands_take_it_as_any_hierarchy(folder, capsys):
    omnizarr.save_view("all.zview", omnizarr.concat(years(2000, 2001)))
    assert main(["info", "all.zview"]) in (0, None)
    assert "4×3" in capsys.readouterr().out
    assert main(["convert", "all.zview", "all.zarr"]) in (0, None)
    np.testing.assert_array_equal(omnizarr.open("all.zarr")[...], omnizarr.open("all.zview")[...])
    assert main(["diff", "all.zview", "all.zarr"]) in (0, None)


def test_it_pickles_and_is_read_by_dask(folder):
    import dask.array

    omnizarr.save_view("all.zview", omnizarr.concat(years(2000, 2001)))
    again = omnizarr.open("all.zview")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again))[...], again[...])
    found = dask.array.from_array(again.lazy[...], chunks=again.chunks).sum().compute(scheduler="processes")
    assert found == again[...].sum()


def test_it_is_read_over_http(folder):
    omnizarr.save_view("all.zview", omnizarr.concat(years(2000, 2001)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert omnizarr.open(f"http://127.0.0.1:{server.server_port}/all.zview", mode="r")[3, 2] == 2006.0
    finally:
        server.shutdown()
        server.server_close()


# ---- refusals


def test_what_cannot_be_saved(folder):
    with pytest.raises(JoinError, match="in memory"):
        omnizarr.save_view("v.zview", omnizarr.concat([omnizarr.create_array({}, data=[1])]))
    with pytest.raises(ValueError, match="ends in"):
        omnizarr.save_view("v.json", omnizarr.concat([np.arange(3)]))
    with pytest.raises(TypeError, match="only lazy arrays"):
        omnizarr.save_view("v.zview", omnizarr.open_array(years(2000)[0]))
    import dask.array

    with pytest.raises(JoinError, match="cannot be saved by its place"):
        omnizarr.save_view("v.zview", omnizarr.concat([dask.array.zeros(3)]))
    assert not Path("v.zview").exists()
    omnizarr.save_view("v.zview", omnizarr.concat([np.arange(3)]))
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        omnizarr.save_view("v.zview", omnizarr.concat([np.arange(4)]))
    omnizarr.save_view("v.zview", omnizarr.concat([np.arange(4)]), overwrite=True)
    assert omnizarr.open("v.zview").shape == (4,)


def test_it_is_not_written(folder):
    omnizarr.save_view("v.zview", omnizarr.concat(years(2000)))
    with pytest.raises(ReadOnlyError, match="saved views are read-only"):
        omnizarr.open("v.zview", mode="r+")
    for attempt in (lambda a: a.__setitem__(0, 1), lambda a: a.lazy[...].__setitem__(0, 1)):
        with pytest.raises(ReadOnlyError):
            attempt(omnizarr.open_array("v.zview", mode="r"))
    with pytest.raises(NodeNotFoundError):
        omnizarr.open("other.zview")


@pytest.mark.parametrize("elsewhere", ["absolute", "above", "link"])
def test_a_document_leads_elsewhere_only_if_it_is_trusted(folder, elsewhere):
    omnizarr.create_array("secret.zarr", data=[42])
    (folder / "in").mkdir()
    omnizarr.create_array("in/mine.zarr", data=[1])
    omnizarr.save_view("in/v.zview", omnizarr.concat(["in/mine.zarr"]))
    place = {"absolute": str(folder / "secret.zarr"), "above": "../secret.zarr", "link": "mine.zarr"}[elsewhere]
    if elsewhere == "link":
        shutil.rmtree("in/mine.zarr")
        Path("in/mine.zarr").symlink_to(folder / "secret.zarr")
    document = json.loads((folder / "in/v.zview").read_text())
    document["sources"] = [place]
    for kind in document["kinds"]:
        kind["digest"] = ""
    (folder / "in/v.zview").write_text(json.dumps(document))
    with pytest.raises(StoreAccessError, match="only if you trust them"):
        omnizarr.open("in/v.zview")[...]
    for trusted in ("trusted", [str(folder)]):
        assert omnizarr.open("in/v.zview", storage_options={"references": trusted})[...].tolist() == [42]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "file:///etc", "s3://bucket/x", "memory://x", "sqlite:///x"])
def test_urls_need_trust(folder, url):
    omnizarr.save_view("v.zview", omnizarr.concat(years(2000)))
    text = (folder / "v.zview").read_text().replace('"2000.zarr"', json.dumps(url))
    (folder / "v.zview").write_text(text)
    with pytest.raises(StoreAccessError, match="only if you trust them"):
        omnizarr.open("v.zview")


def test_a_view_that_contains_itself(folder):
    omnizarr.save_view("a.zview", omnizarr.concat(years(2000)))
    omnizarr.save_view("b.zview", omnizarr.concat(["a.zview"]))
    assert omnizarr.open("b.zview")[0, 0] == 2000.0
    for name, other in (("a", "b"), ("b", "a")):
        document = json.loads((folder / f"{name}.zview").read_text())
        document["sources"] = [f"{other}.zview"]
        for kind in document["kinds"]:
            kind["digest"] = ""
        (folder / f"{name}.zview").write_text(json.dumps(document))
    with pytest.raises(JoinError, match="contains itself"):
        omnizarr.open("a.zview")[...]


def test_broken_documents_are_errors(folder):
    parts = [omnizarr.open_array(path, mode="r").lazy[::-1, [1, 0]] for path in years(2000, 2001)]
    omnizarr.save_view("v.zview", omnizarr.concat([*parts, np.zeros((1, 2))]).unpack(scale=2))
    text = (folder / "v.zview").read_bytes()
    generator = random.Random(0)
    refused = 0
    for _ in range(600):
        mutated = bytearray(text)
        for _ in range(generator.randint(1, 3)):
            at = generator.randrange(len(mutated))
            how = generator.randrange(3)
            if how == 0:
                mutated[at] = generator.choice(b'0123456789-[]{},:"ntf')
            elif how == 1:
                del mutated[at : at + generator.randint(1, 9)]
            else:
                mutated[at:at] = generator.choice([b"0", b"9999999999", b"-1", b"null", b"[]", b'""'])
        (folder / "v.zview").write_bytes(mutated)
        try:
            omnizarr.open("v.zview")[...]
        except OmnizarrError:
            refused += 1
    assert refused > 400
    (folder / "v.zview").write_bytes(b"[" * 100_000)
    with pytest.raises(MetadataError, match="broken"):
        omnizarr.open("v.zview")
    (folder / "v.zview").write_bytes(text.replace(b'"omnizarr_view":1', b'"omnizarr_view":2'))
    with pytest.raises(MetadataError, match="another version"):
        omnizarr.open("v.zview")
