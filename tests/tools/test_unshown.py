"""Bytes that are not UTF-8 in an open HDF5 file: every copy that has U+FFFD in their place says so."""

import warnings

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr.readers.hdf5 import arrays
from omnizarr.stores import CacheStore, MemoryStore, PrefixStore, verbs

STORED = [b"plain", b"caf\xe9", b"\xb0C"]  # Latin-1
SHOWN = [each.decode("utf-8", "replace") for each in STORED]
TEXT = h5py.string_dtype()
UNITS = "the attribute 'units' is shown with U+FFFD in place of bytes that are not UTF-8"
BYTES = "bytes of strings that are not UTF-8"
WARNING = "U\\+FFFD in place of bytes of strings that are not UTF-8"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "old.h5"
    with h5py.File(path, "w") as made:
        for group, texts in (("odd", STORED), ("even", ["a", "é", "°C"])):
            array = made.create_dataset(f"{group}/text", (3,), dtype=TEXT, chunks=(2,))
            array[...] = np.array(texts, object)
            array.attrs.create("units", texts[1], dtype=TEXT)
            made[f"{group}/number"] = [1.5]
    return path


def opened(file, name):
    return omnizarr.open(file, mode="r")[name]


def told_by_report(report):
    return [loss for node in report.nodes for loss in node.losses]


def combined(file, name):
    del name
    paths = [f"{file}.{number}.nc" for number in (0, 1)]
    for number, path in enumerate(paths):
        with h5py.File(path, "w") as made:
            made["x"] = [number]
            made["x"].make_scale("x")
            made.create_dataset("text", (1,), dtype=TEXT)[0] = STORED[1]
            made["text"].dims[0].attach_scale(made["x"])
            made["text"].attrs.create("units", STORED[2], dtype=TEXT)
    return omnizarr.combine(paths, "x")


REPORTED = {
    "convert array": lambda node, target: told_by_report(omnizarr.convert(node["text"], target)),
    "convert group": lambda node, target: told_by_report(omnizarr.convert(node, target)),
    "convert to v2": lambda node, target: told_by_report(omnizarr.convert(node, target, zarr_format=2)),
    "convert store": lambda node, target: told_by_report(omnizarr.convert(node.store, target)),
    "convert part of a store": lambda node, target: told_by_report(
        omnizarr.convert(node.store, target, path=node.path)
    ),
    "rechunk array": lambda node, target: told_by_report(omnizarr.rechunk(node["text"], target, chunks=(1,))),
    "rechunk group": lambda node, target: told_by_report(omnizarr.rechunk(node, target, chunks=(1,))),
    "copy array": lambda node, target: omnizarr.copy(node["text"], omnizarr.open_group(target, mode="w")).losses,
    "copy group": lambda node, target: omnizarr.copy(node, omnizarr.open_group(target, mode="w")).losses,
    "copy with other codecs": lambda node, target: (
        omnizarr.copy(node["text"], omnizarr.open_group(target, mode="w"), compressors=None).losses
    ),
    "copy_all": lambda node, target: omnizarr.copy_all(node, omnizarr.open_group(target, mode="w")).losses,
    "copy_store": lambda node, target: omnizarr.copy_store(node.store, target, node.path).losses,
}


def texts_in(target):
    """Return all strings at a place and below."""
    node = omnizarr.open(target, mode="r")
    nodes = [node] if isinstance(node, omnizarr.Array) else [each for _, each in node.members(None)]
    arrays = [each for each in nodes if isinstance(each, omnizarr.Array)]
    return [text for each in arrays if each.dtype.kind in "OT" for text in each[...].tolist()]


@pytest.mark.parametrize("way", REPORTED)
def test_copies_of_what_is_open_report_texts_and_attributes(file, tmp_path, way):
    found = REPORTED[way](opened(file, "odd"), tmp_path / "new.zarr")
    assert set(SHOWN) <= set(texts_in(tmp_path / "new.zarr"))
    assert [each.kept for each in found if each.what == BYTES] == ["U+FFFD"]
    assert [each.why for each in found if each.what == "/odd/text"] == [UNITS]
    assert not [each for each in found if "even" in each.path + each.what or "number" in each.path + each.what]


@pytest.mark.parametrize("way", [way for way in REPORTED if "store" not in way])
def test_nothing_is_said_of_texts_in_utf8(file, tmp_path, way):
    assert not list(REPORTED[way](opened(file, "even"), tmp_path / "new.zarr"))


@pytest.mark.parametrize("name", ["odd", "even"])
def test_copy_node_says_it(file, tmp_path, name):
    remarks = omnizarr.copy_node(opened(file, name), tmp_path / "new.zarr").remarks
    assert len(remarks) == (2 if name == "odd" else 0)
    assert not remarks or (UNITS in remarks[0] and BYTES in remarks[1])


SAVED = {
    "save": lambda array, target: omnizarr.save(target, array),
    "save in a group": lambda array, target: omnizarr.save(target, array, again=array),
    "replace": lambda array, target: [omnizarr.save(target, np.arange(2)), omnizarr.save(target, array)],
    "create_array": lambda array, target: omnizarr.create_array(target, data=array),
    "item of a group": lambda array, target: omnizarr.create_group(target).__setitem__("x", array),
    "save lazy": lambda array, target: omnizarr.save(target, array.lazy[1:]),
    "save joined": lambda array, target: omnizarr.save(target, omnizarr.concat([array, array])),
}


@pytest.mark.parametrize("way", SAVED)
def test_functions_without_a_report_warn(file, tmp_path, way):
    with pytest.warns(UserWarning, match=WARNING) as warned:
        SAVED[way](opened(file, "odd/text"), tmp_path / "new.zarr")
    assert {each.filename for each in warned} == {__file__}
    with warnings.catch_warnings(action="error"):
        SAVED[way](opened(file, "even/text"), tmp_path / "even.zarr")


def test_copy_store_reads_nothing_that_it_does_not_copy(file, tmp_path, monkeypatch):
    store = opened(file, "odd").store
    omnizarr.copy_store(store, tmp_path / "new.zarr")
    store, number, of = opened(file, "odd").store, [], arrays.Shown.of
    monkeypatch.setattr(arrays.Shown, "of", lambda self, *args: (number.append(args[0]), of(self, *args))[1])
    assert not omnizarr.copy_store(store, tmp_path / "new.zarr", if_exists="skip").losses
    found = omnizarr.copy_store(store, tmp_path / "part.zarr", excludes="^odd/").losses
    assert BYTES not in [each.what for each in found]
    assert len(number) == 2  # of the array that it copies


def test_combined_files_are_reported(file, tmp_path):
    group = combined(file, "odd")
    assert group.store.notes == ("'text': the attribute 'units' has U+FFFD, as for bytes that are not UTF-8",)
    found = told_by_report(omnizarr.convert(group, tmp_path / "new.zarr"))
    assert [(each.path, each.what) for each in found] == [("text", BYTES)]


@pytest.mark.parametrize("wrap", [lambda store: store, CacheStore, lambda store: PrefixStore(store, "")])
def test_a_store_that_has_read_nothing_looks(file, wrap):
    """Workers on other machines have read it, or an interrupted conversion has."""
    store = wrap(opened(file, "odd").store)
    found = {
        path: verbs.replaces_text(store, f"{path}/", True) for path in ("odd/text", "even/text", "odd/number", "none")
    }
    assert found == {"odd/text": True, "even/text": False, "odd/number": False, "none": False}
    assert not verbs.replaces_text(MemoryStore({}), "", True)


@pytest.mark.parametrize(
    "show",
    [lambda array: array.lazy[:1], lambda array: omnizarr.concat([array, array]).lazy[:1]],
    ids=["part", "joined"],
)
def test_of_a_part_only_what_was_read_is_reported(tmp_path, show, monkeypatch):
    with h5py.File(tmp_path / "old.h5", "w") as made:
        made.create_dataset("text", (3,), dtype=TEXT, chunks=(1,))[...] = np.array(STORED, object)
    array, numbers, of = opened(tmp_path / "old.h5", "text"), [], arrays.Shown.of
    monkeypatch.setattr(
        arrays.Shown, "of", lambda self, number, *args: (numbers.append(number), of(self, number, *args))[1]
    )
    with warnings.catch_warnings(action="error"):
        omnizarr.save(tmp_path / "new.zarr", show(array))
    assert set(numbers) == {0}
