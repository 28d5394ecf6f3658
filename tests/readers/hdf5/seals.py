"""The checksums of metadata in HDF5 files that tests change: where they are, and how they become right again."""

from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numcodecs.jenkins import jenkins_lookup3

import omnizarr
from omnizarr.errors import OmnizarrError
from omnizarr.readers.hdf5.source import Source
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import MemoryStore


class Seal(NamedTuple):
    """A structure, from `start` to `stop` with its checksum, which is at `at`."""

    title: str
    start: int
    stop: int
    at: int


def of(raw):
    """Return the checksums of a sound file."""
    given = {}
    with patch.object(Source, "check_seal", lambda _, __, data, seal, title: given.setdefault((data, seal), title)):
        read(raw)
    found = set()
    for (data, seal), title in given.items():
        start = raw.find(data + seal)
        if start >= 0:
            found.add(Seal(title, start, start + len(data) + 4, start + len(data)))
        else:  # in the midst of the structure, where it counts as zeros
            at = next(at for at in range(5, 40) if raw.find(data[:at] + seal + data[at + 4 :]) >= 0)
            start = raw.find(data[:at] + seal + data[at + 4 :])
            found.add(Seal(title, start, start + len(data), start + at))
    return sorted(found, key=lambda seal: seal.start)


def read(raw):
    """Read everything in a file, as far as it can be read."""
    store = HDF5Store(MemoryStore({"x.h5": raw}), "x.h5")
    for path, node in omnizarr.open_group(store, mode="r").members(max_depth=None):
        try:
            node.attrs.asdict()
            if isinstance(node, omnizarr.Array):
                list(store.list_prefix(path))
                node[-30:]
        except OmnizarrError:
            continue


def renewed(raw, seals):
    """Return a changed file in which the checksums are right."""
    changed = bytearray(raw)
    for each in seals:
        if each.stop <= len(changed):
            data = bytes(changed[each.start : each.at])
            if each.at + 4 < each.stop:
                data += bytes(4) + bytes(changed[each.at + 4 : each.stop])
            number = jenkins_lookup3(np.frombuffer(data, "u1"), 0)
            changed[each.at : each.at + 4] = int(number).to_bytes(4, "little")
    return bytes(changed)


@contextmanager
def unchecked():
    """Read files as if all checksums were right: a hostile writer makes them so."""
    with patch.object(Source, "check_seal", lambda *_: None):
        yield
