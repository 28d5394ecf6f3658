"""Broken and hostile HDF5 files: clear errors, in bounded time and memory."""

import random
import time
from contextlib import nullcontext

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import omnizarr
from omnizarr.cli.convert import convert
from omnizarr.errors import MetadataError, OmnizarrError
from omnizarr.readers.hdf5 import chunks, messages
from omnizarr.readers.hdf5.file import File
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import LocalStore, MemoryStore
from tests.readers.hdf5 import seals

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
    """Read everything in a file, and return the notes."""
    store = HDF5Store(MemoryStore({"x.h5": raw}), "x.h5")
    for path, node in omnizarr.open_group(store, mode="r").members(max_depth=None):
        node.attrs.asdict()
        if isinstance(node, omnizarr.Array) and node.nbytes < 1 << 20:
            list(store.list_prefix(path))
            node[...]
    return store.notes


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
    assert not look(raw)
    refused = noted = 0
    for number in range(300):
        start = time.process_time()
        try:
            with seals.unchecked() if number % 3 else nullcontext():
                noted += bool(look(mutated(raw, rng)))
        except OmnizarrError:
            refused += 1
        assert time.process_time() - start < 10
    assert refused > 10
    assert noted > 10
    assert 50 < refused + noted < 300


def whole(path, version):
    """Write a file of which one part will be broken, and return the objects by path, as the reader finds them."""
    with h5py.File(path, "w", libver=version) as file:
        file["whole"] = np.arange(5)
        file.create_dataset("part", (40,), "i4", chunks=(2,), compression="gzip", maxshape=(None,))[:] = range(40)
        file["part"].attrs["good"], file["part"].attrs["bad"] = 1, "text"
        file["group/x"], file["group/below/y"] = np.arange(3), np.arange(4)
        file["second"] = file["part"]
    opened = File(LocalStore(path.parent, read_only=True), path.name)
    return opened, {name: opened.find(name) for name in ("part", "group")}


def place_of(part, file, objects):
    """Return where a part of the file begins."""
    if part == "header":
        return objects["part"].address
    if part == "group":
        return objects["group"].address
    if part == "tree":
        table = objects["group"].find(messages.SYMBOL_TABLE)
        return next(objects["group"].each(messages.LINK)).address if table is None else table.defined("")
    if part == "index":
        return file.dataset(objects["part"]).layout.address
    kind = {"attribute": messages.ATTRIBUTE, "filters": messages.FILTERS}[part]
    found = [each for each in objects["part"].messages if each.kind == kind][-1]
    if part == "attribute":  # its datatype, behind the name
        return found.address + found.data.find(b"bad\0") + (8 if found.data[0] == 1 else 4)
    return found.address


BROKEN = {  # what is not shown, and the beginning of the note
    "header": ({"part", "second"}, "/part: not shown"),
    "group": ({"group", "group/x", "group/below", "group/below/y"}, "/group: not shown"),
    "tree": ({"group", "group/x", "group/below", "group/below/y"}, "/group: not shown"),
    "filters": ({"part", "second"}, "/part: not shown"),
    "attribute": (set(), "/part: the attribute 'bad' cannot be read"),
    "index": (set(), None),
}


@pytest.mark.parametrize("version", ["earliest", "latest"])
@pytest.mark.parametrize("part", BROKEN)
def test_one_broken_object_leaves_the_others_readable(part, version, tmp_path):
    path = tmp_path / "x.h5"
    file, objects = whole(path, version)
    at = place_of(part, file, objects)
    raw = bytearray(path.read_bytes())
    raw[at : at + 4] = b"\xfe" * 4
    path.write_bytes(seals.renewed(raw, seals.of(path.read_bytes())))
    gone, said = BROKEN[part]
    root = omnizarr.open_group(path, mode="r")
    shown = {"whole", "part", "second", "group", "group/x", "group/below", "group/below/y"} - gone
    assert set(dict(root.members(max_depth=None))) == shown
    if said is not None:
        assert any(note.startswith(said) and "byte" in note for note in root.store.notes)
    for name in gone:
        with pytest.raises(MetadataError, match=rf"{tmp_path}.*x\.h5.* at byte ") as caught:
            root[name]
        assert str(caught.value.path) in {"part", "second", "group"}
    for name in shown & {"whole", "group/x", "group/below/y"}:
        np.testing.assert_array_equal(root[name][...], np.arange(root[name].size))
    if part == "index":
        with pytest.raises(OmnizarrError, match=r"x\.h5.* at byte "):
            root["part"][...]
    elif "part" in shown:
        assert root["part"][...].tolist() == list(range(40))
    if part == "attribute":
        assert root["part"].attrs.asdict() == {"good": 1}
    done = omnizarr.convert(path, tmp_path / "x.zarr")
    lost = {f"{each.path}{each.pointer}".replace("/variables/", "/").lstrip("/") for each in done.losses}
    is_lost = {"attribute": {"part/attributes/bad", "second/attributes/bad"}, "index": {"part", "second"}}
    assert lost == is_lost.get(part, gone & {"part", "second", "group"})
    assert all("byte" in each.why for each in done.losses)
    copy = omnizarr.open_group(tmp_path / "x.zarr", mode="r")
    assert set(dict(copy.members(max_depth=None))) == shown - {each for each in lost if "attributes" not in each}
    assert CliRunner().invoke(convert, [str(path), str(tmp_path / "y.zarr"), "--strict"]).exit_code == 1


def test_the_root_must_not_be_broken(tmp_path):
    file, _ = whole(tmp_path / "x.h5", "earliest")
    raw = bytearray((tmp_path / "x.h5").read_bytes())
    at = file.root.find(messages.SYMBOL_TABLE).defined("")
    raw[at : at + 4] = b"\xfe" * 4
    (tmp_path / "x.h5").write_bytes(raw)
    for read in (omnizarr.open, lambda path: omnizarr.convert(path, tmp_path / "x.zarr")):
        with pytest.raises(MetadataError, match=f"at byte {at}: there is another structure here"):
            read(tmp_path / "x.h5")


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
