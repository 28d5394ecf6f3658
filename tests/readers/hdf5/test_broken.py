"""Broken and hostile HDF5 files: clear errors, in bounded time and memory."""

import random
import time

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr.errors import MetadataError, OmnizarrError
from omnizarr.readers.hdf5 import chunks
from omnizarr.readers.hdf5.file import File
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import MemoryStore

SIGNATURES = (
    b"TREE",
    b"SNOD",
    b"HEAP",
    b"GCOL",
    b"FRHP",
    b"FHDB",
    b"BTHD",
    b"BTLF",
    b"OHDR",
    b"FAHD",
    b"EAHD",
    b"EAIB",
)


def sample(version):
    """Return the bytes of a small file with most structures of the format."""
    with h5py.File("x.h5", "w", libver=version, driver="core", backing_store=False) as file:
        for number in range(12):
            file.create_group(f"group/{number}").attrs["text"] = "some text"
            file["group"].attrs[f"{number}"] = np.arange(number)
        for number, most in enumerate(((20,), (None,), (40,))):
            file.create_dataset(f"{number}", (20,), "i4", chunks=(2,), maxshape=most, compression="gzip")[:] = 3
        file.create_dataset("both", (6, 6), "i4", chunks=(2, 2), maxshape=(None, None), shuffle=True)[:] = 4
        file["texts"] = np.array(["a", "bcd", ""], object)
        file["compound"] = np.zeros(3, [("a", "i2"), ("b", ">f8"), ("c", "S3")])
        file.flush()
        return file.id.get_file_image()


def look(raw):
    """Read everything in a file."""
    store = HDF5Store(MemoryStore({"x.h5": raw}), "x.h5")
    for path, node in omnizarr.open_group(store, mode="r").members(max_depth=None):
        node.attrs.asdict()
        if isinstance(node, omnizarr.Array) and node.nbytes < 1 << 20:
            list(store.list_prefix(path))
            node[...]


def mutated(raw, rng):
    """Return a file with one to three changes, most of them in its structures."""
    raw = bytearray(raw)
    for _ in range(rng.randint(1, 3)):
        at = raw.find(rng.choice(SIGNATURES), rng.randrange(len(raw)))
        at = rng.randrange(len(raw)) if at < 0 else min(at + rng.randrange(100), len(raw) - 1)
        new = rng.choice([b"\xff" * 8, bytes(8), rng.randrange(len(raw)).to_bytes(8, "little"), rng.randbytes(1)])
        raw[at : at + len(new)] = new[: len(raw) - at]
    return bytes(raw[: rng.randrange(len(raw))] if rng.random() < 0.03 else raw)


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_changed_bytes_give_errors_of_omnizarr(version):
    raw, rng = sample(version), random.Random(version)
    look(raw)
    refused = 0
    for _ in range(300):
        start = time.process_time()
        try:
            look(mutated(raw, rng))
        except OmnizarrError:
            refused += 1
        assert time.process_time() - start < 10
    assert 50 < refused < 300


def test_tree_that_leads_back_to_itself_is_an_error():
    raw = bytearray(sample("earliest"))
    with h5py.File("x.h5", "w", driver="core", backing_store=False) as file:
        file.create_dataset("x", (200,), "i4", chunks=(1,))[:] = 1
        file.flush()
        raw = bytearray(file.id.get_file_image())
    root = next(at for at in range(len(raw)) if raw[at : at + 6] == b"TREE\x01\x01")
    child = root + 24 + 8 + 2 * 8
    raw[child : child + 8] = root.to_bytes(8, "little")
    file = File(MemoryStore({"x.h5": bytes(raw)}), "x.h5")
    with pytest.raises(MetadataError, match="of chunks"):
        chunks.read(file.dataset(file.find("x")))


def test_group_that_contains_itself_ends():
    with h5py.File("x.h5", "w", driver="core", backing_store=False) as file:
        for number in range(30):
            group = file.require_group(f"{number}")
            if number < 29:
                group["a"] = group["b"] = file.require_group(f"{number + 1}")
        file["29"]["a"] = file["0"]
        file.flush()
        raw = file.id.get_file_image()
    look(raw)


def test_lengths_that_lie_allocate_nothing():
    raw = sample("earliest")
    for wrong in (2**40, 2**62, 2**63 - 1):
        at = raw.find(b"HEAP") + 8
        look_at = raw[:at] + wrong.to_bytes(8, "little") + raw[at + 8 :]
        with pytest.raises(MetadataError, match="beyond its end"):
            look(look_at)
