"""Checksums of metadata: what h5py refuses because a byte has changed, omnizarr refuses, and reads all else."""

import io
from functools import cache

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr.errors import MetadataError, OmnizarrError
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import MemoryStore
from tests.readers.hdf5 import seals

CHUNKED = {  # by the index of chunks: shape, largest shape
    "fixed": ((50,), None),
    "fixed, pages": ((3000,), None),
    "extensible": ((300,), (None,)),
    "extensible, pages": ((140_000,), (None,)),
    "tree": ((40, 30), (None, None)),
}
TITLES = {
    *("the superblock", "an object header", "a part of an object header", "the mappings of a virtual dataset"),
    *("a fractal heap", "a block of a fractal heap", "a block of addresses of a fractal heap"),
    *("a B-tree", "a node of a B-tree", "a fixed array", "a block of a fixed array", "a page of a fixed array"),
    *("an extensible array", "the first block of an extensible array", "a block of an extensible array"),
    *("a block of addresses of an extensible array", "a page of an extensible array"),
}


@cache
def sample():
    """Return a file with all structures that have checksums, but the table of shared messages."""
    memory = io.BytesIO()
    with h5py.File(memory, "w", libver="latest") as file:
        for name, (shape, most) in CHUNKED.items():
            dataset = file.create_dataset(name, shape, "i4", maxshape=most, chunks=(1,) * len(shape))
            dataset[-30:] = np.arange(dataset[-30:].size).reshape(dataset[-30:].shape)
        for number in range(6):
            file["fixed"].attrs[f"{number}"] = "a text " * 10 * number
        many = file.create_group("many")
        for number in range(300):
            many.attrs[f"attribute {number}"] = "of some length" * 2
        for number in range(20):
            file.create_group(f"group/{number}")
        file["plain"] = np.arange(5)
        layout = h5py.VirtualLayout((5,), "i8")
        layout[:] = h5py.VirtualSource(".", "plain", (5,))
        file.create_virtual_dataset("virtual", layout)
    return memory.getvalue()


PATHS = ("plain", "virtual", "many", "group", "group/3", *CHUNKED)


def by_h5py(raw):
    """Return what h5py reads: values by path, and by path with @ those of attributes."""
    found = {}
    try:
        file = h5py.File(io.BytesIO(raw))
    except OSError:
        return found
    with file:
        for path in PATHS:
            try:
                each = file[path]
                found[path] = each[-300:].tolist() if isinstance(each, h5py.Dataset) else None
            except (OSError, KeyError, RuntimeError):
                continue
            try:
                found[f"{path}@"] = {name: str(value) for name, value in each.attrs.items()}
            except (OSError, KeyError, RuntimeError):
                continue
    return found


def by_omnizarr(raw):
    """Return the same as omnizarr reads it, and the errors."""
    found, errors = {}, []
    try:
        root = omnizarr.open_group(HDF5Store(MemoryStore({"x.h5": raw}), "x.h5"), mode="r")
    except OmnizarrError as error:
        return found, [error]
    for path in PATHS:
        try:
            each = root[path]
            found[path] = each[-300:].tolist() if isinstance(each, omnizarr.Array) else None
        except OmnizarrError as error:
            errors.append(error)
            continue
        if not any(note.startswith(f"/{path}: some of its attributes cannot be read") for note in root.store.notes):
            found[f"{path}@"] = {name: str(value) for name, value in each.attrs.asdict().items()}
    return found, errors


@cache
def as_written():
    return by_h5py(sample())


@cache
def kinds():
    """Return the first structure of each kind."""
    return {each.title: each for each in reversed(seals.of(sample()))}


def test_the_sample_has_all_structures():
    assert set(kinds()) == TITLES
    assert by_omnizarr(sample())[0] == by_h5py(sample())
    assert seals.renewed(sample(), kinds().values()) == sample()


@pytest.mark.parametrize("title", sorted(TITLES))
def test_a_changed_byte_makes_unreadable_what_h5py_refuses_too(title):
    whole, structure = as_written(), kinds()[title]
    raw = bytearray(sample())
    raw[structure.stop - 9] ^= 4
    theirs, (ours, errors) = by_h5py(bytes(raw)), by_omnizarr(bytes(raw))
    assert len(theirs) < len(whole)
    assert ours.keys() == theirs.keys()
    assert all(ours[name] == whole[name] for name in ours)
    if errors:
        assert type(errors[0]) is MetadataError
        said = str(errors[0])
        assert f"the checksum of {title} is wrong" in said
        assert "x.h5" in said
        assert f"byte {structure.start}" in said or title == "the mappings of a virtual dataset"
        assert errors[0].found != errors[0].expected


def test_a_wrong_checksum_itself_is_found():
    raw = bytearray(sample())
    raw[kinds()["the superblock"].at] ^= 1
    with pytest.raises(MetadataError, match="the checksum of the superblock is wrong"):
        HDF5Store(MemoryStore({"x.h5": bytes(raw)}), "x.h5")
