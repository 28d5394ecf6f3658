"""Mutate small files of several formats and read all of them: ``python -m tests.readers.fuzz hdf5 10000``.

Each try has 10 s of CPU, and each process 2 GiB. What is no error of omnizarr is printed, and
``python -m tests.readers.fuzz hdf5 --one 77`` repeats it.
"""

import argparse
import collections
import io
import itertools
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np

import omnizarr
from omnizarr.errors import OmnizarrError
from omnizarr.readers import fits, grib, netcdf3, tiff
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import MemoryStore
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.store import ManifestStore
from tests.readers import fits_files, grib_files
from tests.readers.hdf5 import seals

SECONDS, BYTES = 10, 2 << 30
FILES = Path(__file__).parents[1] / "netcdf" / "data" / "files"
SIGNATURES = (
    *(b"TREE", b"SNOD", b"HEAP", b"GCOL", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTLF", b"BTIN", b"OHDR", b"OCHK"),
    *(b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"SMTB", b"\x89HDF", b"b2frame", b"zfp"),
)

READERS = {"netcdf3": netcdf3, "fits": fits, "grib": grib, "tiff": tiff}
KINDS = ("hdf5", *READERS)


@cache
def samples(kind):
    """Return values for a store, and the names of the files to change: all features of a format, small."""
    if kind == "netcdf3":
        return [
            ({"x": path.read_bytes()}, "x") for path in sorted(FILES.glob("*.nc")) if path.read_bytes()[:3] == b"CDF"
        ]
    if kind == "fits":
        return [({"x": fits_files.sample()}, "x")]
    if kind == "grib":
        return [({"x": grib_files.sample() + grib_files.packings()}, "x")]
    if kind == "tiff":
        return [({"x": content}, "x") for content in pictures()]
    found = []
    for version in (("earliest", "latest"), ("v110", "v110"), ("latest", "latest")):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), version)
            values = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        found += [(values, name) for name in ("types.h5", "structure.h5", "x.h5", "x.h5", "part1.h5")]
    plugins = (Path(__file__).parent / "hdf5" / "data" / "plugins.h5").read_bytes()
    return [*found, ({"x": plugins}, "x"), ({"x": (FILES / "everything.nc").read_bytes()}, "x")]


def pictures():
    """Return small TIFF files: pages, tiles, pyramids, compressions, predictors, classic and large."""
    import tifffile

    data = np.arange(3 * 40 * 50, dtype="u2").reshape(3, 40, 50)
    kept = {"photometric": "minisblack"}
    for options in (
        {"bigtiff": True},
        {"byteorder": ">"},
        {"ome": True},
        {"imagej": True},
    ):
        memory = io.BytesIO()
        with tifffile.TiffWriter(memory, **options) as file:
            if "imagej" in options:
                file.write(data)
            else:
                file.write(data, tile=(16, 32), compression="zlib", predictor=2, subifds=1, **kept)
                file.write(data[:, ::2, ::2], tile=(16, 32), subfiletype=1, **kept)
            if not {"imagej", "ome"} & set(options):
                file.write(data[0], rowsperstrip=7, compression="lzw", **kept)
                file.write(data[0].astype("u1"), compression="packbits", metadata={"a": 1}, **kept)
                file.write(data[0] / 7, compression="zstd", predictor=3, **kept)
                file.write(np.zeros((20, 30, 3), "u1"), photometric="rgb", planarconfig="separate")
        yield memory.getvalue()


def write(folder, version):
    import h5py

    from tests.readers.hdf5 import samples as whole
    from tests.readers.hdf5.test_broken import sample

    here = Path.cwd()
    os.chdir(folder)  # libhdf5 looks there for external files
    try:
        whole.write_elsewhere(folder, version)
    finally:
        os.chdir(here)
    (folder / "structure.h5").write_bytes(sample(version[1] if version[0] == "earliest" else version[0]))
    with h5py.File(folder / "types.h5", "w", libver=version) as file:
        whole._attributes(file)
        whole._groups(file)
        whole._types(file)
        text = h5py.string_dtype()
        for name, dtype in {"texts": text, "vectors": h5py.vlen_dtype("f4"), "nested": h5py.vlen_dtype(text)}.items():
            dataset = file.create_dataset(f"{name} in chunks", (5,), dtype, chunks=(2,), compression="gzip")
            dataset[1] = "abc" if dtype is text else np.array(["a", "b"], object) if name == "nested" else [1, 2]
        odd = h5py.h5t.STD_I32LE.copy()
        odd.set_precision(17)
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((7,))
        properties.set_filter(h5py.h5z.FILTER_NBIT, 0, ())
        h5py.h5d.create(file.id, b"nbit", odd, h5py.h5s.create_simple((20,)), properties)
        file["nbit"][...] = range(20)
        for name, options in {
            "lzf": {"compression": "lzf"},
            "scaleoffset": {"scaleoffset": 0},
            "szip": {"compression": "szip"},
            "checksum": {"fletcher32": True, "shuffle": True},
        }.items():
            file.create_dataset(name, data=np.arange(40, dtype="i4"), chunks=(16,), **options)
        file["data"] = np.zeros((3, 2))
        file["scale"] = [1, 2]
        file["scale"].make_scale("scale")
        file["data"].dims[1].attach_scale(file["scale"])


def mutated(raw, rng):
    """Return a file with one to four changes, most of them in its structures; or a part of it."""
    if rng.random() < 0.05:
        return raw[: rng.randrange(len(raw))]
    changed = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(raw))
        if rng.random() < 0.6:
            found = raw.find(rng.choice(SIGNATURES), at)
            at = at if found < 0 else min(found + rng.randrange(64), len(raw) - 1)
        elif rng.random() < 0.5 and raw[:3] == b"CDF":
            at = rng.randrange(min(len(raw), 2000))
        word = rng.choice([1, 2, 4, 8])
        new = rng.choice(
            [
                b"\xff" * word,
                bytes(word),
                rng.randrange(len(raw)).to_bytes(8, "little")[:word],
                rng.randrange(len(raw)).to_bytes(8, "big")[-word:],
                rng.randbytes(word),
                bytes([changed[at] ^ 1 << rng.randrange(8)]),
                bytes([(changed[at] + rng.choice([-1, 1])) % 256]),
                (1 << rng.randrange(64)).to_bytes(8, "little")[:word],
                raw[(start := rng.randrange(len(raw))) : start + 16],
            ]
        )
        changed[at : at + len(new)] = new[: len(raw) - at]
    return bytes(changed)


def look(kind, values, name):
    """Read everything in a file, as long as it is small."""
    if kind == "hdf5":
        store = HDF5Store(MemoryStore(values), name)
    else:
        file = File.of(MemoryStore(values), name)
        contents = READERS[kind].read(file)
        if contents is None:
            return
        store = ManifestStore(contents.documents, contents.manifests, [file])
    root = omnizarr.open(store, mode="r")
    failed = None
    members = root.members(max_depth=None) if isinstance(root, omnizarr.Group) else [("", root)]
    for path, node in members:
        try:
            node.attrs.asdict()
            if isinstance(node, omnizarr.Array):
                for key in itertools.islice(store.list_prefix(path), 20):
                    store.get(key)
                if node.nbytes < 1 << 20:
                    node[...]
        except OmnizarrError as error:
            failed = error
    if failed is not None:
        raise failed


def attempt(kind, number):
    """Read one mutated file; return the name of the error, or "" without one. Other errors are raised."""
    rng = random.Random(f"{kind} {number}")
    values, name = rng.choice(samples(kind))
    raw = values[name]
    try:
        changed = mutated(raw, rng)
        is_hostile = kind == "hdf5" and rng.random() < 0.7  # then checksums are those of the changed bytes
        with warnings.catch_warnings(), seals.unchecked() if is_hostile else nullcontext():
            warnings.simplefilter("ignore")
            look(kind, values | {name: changed}, name)
    except OmnizarrError as error:
        return type(error).__name__
    return ""


class TooSlowError(Exception):
    """A try takes too much time."""


def _alarm(*_):
    raise TooSlowError


def work(kind, numbers):
    """Try several, and return how each ended."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGPROF, _alarm)
    ends = {}
    for number in numbers:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            ends[number] = attempt(kind, number)
        except BaseException:  # noqa: BLE001 - all of them are printed
            ends[number] = "!" + traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return ends


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("tries", type=int, nargs="?", default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--one", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.one is not None:
        say(attempt(given.kind, given.one) or "read")
        return 0
    samples(given.kind)
    step = 50
    parts = [
        range(at, min(at + step, given.first + given.tries))
        for at in range(given.first, given.first + given.tries, step)
    ]
    counts, bad = collections.Counter(), 0
    context = multiprocessing.get_context("fork")
    with context.Pool(given.jobs, maxtasksperchild=4) as pool:
        waiting = [(part, pool.apply_async(work, (given.kind, part))) for part in parts]
        for part, result in waiting:
            try:
                ends = result.get(timeout=20 * step * SECONDS)
            except multiprocessing.TimeoutError:
                say(f"!! {part} ended without an answer: a crash, or a hang")
                bad += 1
                continue
            for number, end in ends.items():
                counts[end.strip().splitlines()[-1][:100] if end[:1] == "!" else end or "read"] += 1
                if end[:1] == "!":
                    bad += 1
                    say(f"try {number}: {end[1:]}")
    say(str(counts.most_common()))
    return bad


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
