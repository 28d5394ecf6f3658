"""Random arrays that omnizarr, zarr-python and TensorStore write and read in turn, beside one that NumPy holds.

``python -m tests.differential --minutes 30`` runs it for long. Each array is a number; ``--first N --arrays 1`` repeats
one. Between reads and writes, arrays are resized, grow by `append`, and writes of omnizarr fail: then each chunk holds
its old or its new values, and the shape is the old or the new one.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore
import zarr

import omnizarr
from omnizarr.stores import LocalStore
from tests.fakes import FaultyStore

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
ENGINES = ["native", "reference"]
V2_COMPRESSORS = [
    None,
    {"id": "zlib", "level": 1},
    {"id": "gzip", "level": 1},
    {"id": "bz2", "level": 1},
    {"id": "zstd", "level": 1},
    *({"id": "blosc", "cname": name, "clevel": 3, "shuffle": 1, "blocksize": 0} for name in ("lz4", "zstd", "zlib")),
]
V3_COMPRESSORS: list[list[dict[str, Any]]] = [
    [],
    [{"name": "gzip", "configuration": {"level": 1}}],
    [{"name": "zstd", "configuration": {"level": 1, "checksum": True}}],
    [{"name": "crc32c", "configuration": {}}],
    [{"name": "zstd", "configuration": {"level": 0, "checksum": False}}, {"name": "crc32c", "configuration": {}}],
]
FAULTS = ["set", "set_partial", "get", "delete", "lock"]
TRIED = 12


class DifferenceError(AssertionError):
    """Something is not what NumPy says."""


class Run:
    """One array: where it is, and what it should hold.

    Parameters
    ----------
    folder : Path
    number : int
        All that is random follows from it.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.random = np.random.default_rng(number)
        self.path = folder / f"{number}.zarr"
        self.number = number
        self.done: Counter[str] = Counter()
        self.story: list[str] = []
        ndim = int(self.random.integers(1, 4))
        shape = tuple(self.random.integers(1, 30 if ndim < 3 else 12, ndim).tolist())
        self.dtype = np.dtype(self.pick(DTYPES))
        self.zarr_format = int(self.random.integers(2, 4))
        self.chunks = tuple(self.random.integers(1, 9, ndim).tolist())
        self.shards: tuple[int, ...] | None = None
        options: dict[str, Any] = {"chunks": self.chunks, "dtype": self.dtype, "shape": shape}
        if self.zarr_format == 2:
            options["compressors"] = self.pick(V2_COMPRESSORS)
            options["order"] = self.pick("CF")
            options["chunk_key_encoding"] = {"name": "v2", "separator": self.pick("./")}
            if self.dtype.itemsize > 1:
                options["dtype"] = self.dtype.newbyteorder(self.pick("<>"))
        else:
            options["compressors"] = self.pick(V3_COMPRESSORS) or None
            options["chunk_key_encoding"] = {
                "name": self.pick(["default", "v2"]),
                "configuration": {"separator": self.pick("./")},
            }
            if self.random.random() < 0.3:
                order = self.random.permutation(ndim).tolist()
                options["filters"] = [{"name": "transpose", "configuration": {"order": order}}]
            if self.random.random() < 0.4:
                many = self.random.integers(1, 4, ndim).tolist()
                self.shards = tuple(chunk * count for chunk, count in zip(self.chunks, many, strict=True))
                options["shards"] = self.shards
        # TensorStore reads no complex fill value of v2 but null or zero; to zarr-python null is zero.
        fill = self.values(()) if self.dtype.kind != "c" and self.random.random() < 0.7 else self.dtype.type(0)
        options["fill_value"] = None if self.zarr_format == 2 and self.dtype.kind == "c" else fill
        self.fill = fill
        self.model = np.full(shape, fill, self.dtype)
        self.story.append(f"v{self.zarr_format} {options}")
        omnizarr.create_array(self.path, zarr_format=self.zarr_format, **options)

    # -- choices

    def pick(self, items: Any) -> Any:
        return items[int(self.random.integers(len(items)))]

    def values(self, shape: tuple[int, ...]) -> Any:
        """Return any bits that are a value; NaN and infinities included."""
        if self.dtype.kind == "b":
            return self.random.integers(0, 2, shape).astype("?")[()]
        if self.dtype.kind in "fc" or self.random.random() < 0.5:
            return self.random.integers(-100, 100, shape).astype(self.dtype)[()]
        raw = self.random.integers(0, 256, (*shape, self.dtype.itemsize), dtype="u1")
        return raw.view(self.dtype)[..., 0][()]

    def selection(self) -> tuple[str, Any]:
        """Return how it is asked for, and a selection."""
        how = self.pick(["basic", "basic", "basic", "orthogonal", "coordinate", "mask", "block"])
        shape = self.model.shape
        if how == "basic":
            return how, tuple(self.item(length) for length in shape)
        if how == "orthogonal":
            return how, tuple(
                self.indices(length) if self.random.random() < 0.5 else self.slice(length) for length in shape
            )
        if how == "coordinate":
            count = int(self.random.integers(0, 12)) if 0 not in shape else 0
            return how, tuple(
                self.random.integers(0, length, count) if length else np.zeros(0, int) for length in shape
            )
        if how == "block":
            grid = [-(-length // chunk) for length, chunk in zip(shape, self.shards or self.chunks, strict=True)]
            if 0 in grid:
                return "basic", (...,)
            return how, tuple(int(self.random.integers(0, count)) for count in grid)
        return how, self.random.random(shape) < 0.3

    def item(self, length: int) -> Any:
        return (
            int(self.random.integers(-length, length)) if length and self.random.random() < 0.2 else self.slice(length)
        )

    def slice(self, length: int) -> slice:
        start, stop = sorted(self.random.integers(0, length + 1, 2).tolist())
        return slice(start, stop, self.pick([None, None, 1, 2, 3]))

    def indices(self, length: int) -> np.ndarray:
        count = int(self.random.integers(0, length + 1))
        return np.sort(self.random.permutation(length)[:count])

    def in_numpy(self, how: str, selection: Any) -> Any:
        """Return the selection in NumPy's words."""
        if how == "orthogonal":
            lists = [np.arange(n)[each] for n, each in zip(self.model.shape, selection, strict=True)]
            return np.ix_(*lists)
        if how == "block":
            sizes = self.shards or self.chunks
            return tuple(slice(at * size, (at + 1) * size) for at, size in zip(selection, sizes, strict=True))
        return selection

    # -- programs

    def ours(self, engine: str, store: Any = None) -> omnizarr.Array:
        with omnizarr.config.set({"engine": engine}):
            return omnizarr.open_array(store or self.path, mode="r+")

    def theirs(self) -> zarr.Array:
        return zarr.open_array(self.path, mode="r+", zarr_format=self.zarr_format)

    def tensorstore(self) -> Any:
        driver = {2: "zarr", 3: "zarr3"}[self.zarr_format]
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{self.path}/"}}
        return tensorstore.open(spec, open=True).result()

    # -- steps

    def run(self, steps: int) -> None:
        try:
            for _ in range(steps):
                self.step()
            self.compare_all()
        except Exception as error:
            told = "\n  ".join(self.story)
            raise DifferenceError(f"array {self.number}: {type(error).__name__}: {error}\n  {told}") from error
        shutil.rmtree(self.path)

    def step(self) -> None:
        kinds: list[Callable[[], None]] = [
            *([self.read] * 4),
            *([self.write] * 4),
            self.resize,
            self.append,
            self.fail,
            self.fail,
            self.peer_writes,
            self.peer_shrinks,
        ]
        self.pick(kinds)()

    def note(self, text: str) -> None:
        self.story.append(text)
        self.done[text.split(maxsplit=1)[0]] += 1

    def read(self) -> None:
        how, selection = self.selection()
        reader = self.pick([*ENGINES, *ENGINES, "zarr-python", "tensorstore"])
        self.note(f"read by {reader}: {how} {selection}")
        expected = self.model[self.in_numpy(how, selection)]
        if reader == "tensorstore":
            self.same(np.asarray(self.tensorstore().read().result()), self.model)
            return
        array = self.theirs() if reader == "zarr-python" else self.ours(reader)
        self.same(_selected(array, how)[selection], expected)

    def write(self) -> None:
        how, selection = self.selection()
        engine = self.pick(ENGINES)
        self.note(f"write by {engine}: {how} {selection}")
        at = self.in_numpy(how, selection)
        values = self.values(np.shape(self.model[at]))
        if how == "block":
            selection = at
            how = "basic"
        _selected(self.ours(engine), how)[selection] = values
        self.model[at] = values

    def peer_writes(self) -> None:
        """Let another program write, which stores whole chunks whatever they hold."""
        at = tuple(self.slice(length) for length in self.model.shape)
        values = self.values(np.shape(self.model[at]))
        peer = self.pick(["zarr-python", "tensorstore"])
        self.note(f"write by {peer}: basic {at}")
        if peer == "zarr-python":
            self.theirs()[at] = values
        elif np.size(values):
            self.tensorstore()[at].write(np.asarray(values)).result()
        self.model[at] = values

    def peer_shrinks(self) -> None:
        """Let zarr-python shorten the array: it leaves in chunks at the edge what was beyond."""
        shape = tuple(int(self.random.integers(1, length + 1)) if length else 0 for length in self.model.shape)
        self.note(f"resize by zarr-python to {shape}")
        self.theirs().resize(shape)
        self.become(shape)

    def resize(self) -> None:
        shape = tuple(self.random.integers(0, 30 if self.model.ndim < 3 else 12, self.model.ndim).tolist())
        engine = self.pick(ENGINES)
        self.note(f"resize by {engine} to {shape}")
        self.ours(engine).resize(shape)
        self.become(shape)

    def become(self, shape: tuple[int, ...]) -> None:
        old, self.model = self.model, np.full(shape, self.fill, self.dtype)
        common = tuple(slice(min(pair)) for pair in zip(old.shape, shape, strict=True))
        self.model[common] = old[common]

    def append(self) -> None:
        axis = int(self.random.integers(self.model.ndim))
        block = self.values(self.more(axis))
        engine = self.pick(ENGINES)
        self.note(f"append by {engine}: {block.shape} along {axis}")
        self.ours(engine).append(block, axis=axis)
        self.model = np.concatenate([self.model, block], axis=axis)

    def more(self, axis: int) -> tuple[int, ...]:
        shape = list(self.model.shape)
        shape[axis] = int(self.random.integers(1, 6))
        return tuple(shape)

    # -- failures

    def fail(self) -> None:
        """Let something fail; whole chunks are old or new, and the shape is old or new."""
        store = FaultyStore(LocalStore(self.path))
        engine = self.pick(ENGINES)
        what = self.pick(["write", "append", "resize"])
        by_size = self.random.random() < 0.3
        array = self.ours(engine, None if by_size else store)
        verb, nth = self.pick(FAULTS), int(self.random.integers(1, TRIED))
        told = "files of at most 60 bytes" if by_size else f"{verb} no. {nth}"
        if what == "write":
            at = tuple(self.slice(length) for length in self.model.shape)
            values = self.values(np.shape(self.model[at]))
            wanted = self.model.copy()
            wanted[at] = values
            attempt: Callable[[], Any] = lambda: array.__setitem__(at, values)  # noqa: E731
        elif what == "append":
            axis = int(self.random.integers(self.model.ndim))
            block = self.values(self.more(axis))
            wanted = np.concatenate([self.model, block], axis=axis)
            attempt = lambda: array.append(block, axis=axis)  # noqa: E731
        else:
            before = self.model
            self.become(tuple(self.random.integers(0, 12, self.model.ndim).tolist()))
            wanted, self.model = self.model, before
            shape = wanted.shape
            attempt = lambda: array.resize(shape)  # noqa: E731
        self.note(f"fail in {what} by {engine}, {told}, to {wanted.shape}")
        if not by_size:
            store.fail(verb, nth, OSError(28, "No space left on device"))
        try:
            with small_files() if by_size else _nothing():
                attempt()
        except OSError:
            self.done["failed"] += 1
            self.settle(wanted)
        else:
            self.model = wanted

    def settle(self, wanted: np.ndarray) -> None:
        """Take what exists after a failure, if it may be there."""
        found = self.ours("reference")[...]
        if found.shape not in (self.model.shape, wanted.shape):
            raise DifferenceError(f"shape {found.shape} is neither {self.model.shape} nor {wanted.shape}")
        before = self.model
        if found.shape != before.shape:
            self.become(found.shape)
            before, self.model = self.model, before
        after = wanted if wanted.shape == found.shape else before
        size = self.chunks  # within a shard too: at least a chunk is whole
        for corner in itertools.product(*(range(0, n, step) for n, step in zip(found.shape, size, strict=True))):
            box = tuple(slice(at, at + step) for at, step in zip(corner, size, strict=True))
            if _bits(found[box]) not in (_bits(before[box]), _bits(after[box])):
                raise DifferenceError(f"chunk at {corner} is neither old nor new: {found[box]}")
        self.model = found

    # -- comparing

    def compare_all(self) -> None:
        for engine in ENGINES:
            self.same(self.ours(engine)[...], self.model)
        self.same(self.theirs()[...], self.model)
        self.same(np.asarray(self.tensorstore().read().result()), self.model)
        left = [each.name for each in self.path.rglob("*") if ".partial" in each.name or each.name.endswith(".tmp")]
        if left:
            raise DifferenceError(f"files left behind: {left}")

    def same(self, found: Any, expected: Any) -> None:
        found, expected = np.asarray(found), np.asarray(expected)
        if found.shape != expected.shape:
            raise DifferenceError(f"shape {found.shape} in place of {expected.shape}")
        if found.dtype.newbyteorder("=") != expected.dtype.newbyteorder("="):
            raise DifferenceError(f"{found.dtype} in place of {expected.dtype}")
        if _bits(found) != _bits(expected):
            raise DifferenceError(f"{found!r} in place of {expected!r}")


def _selected(array: Any, how: str) -> Any:
    return {
        "basic": lambda: array,
        "orthogonal": lambda: array.oindex,
        "coordinate": lambda: array.vindex,
        "mask": lambda: array.vindex,
        "block": lambda: array.blocks,
    }[how]()


def _bits(values: Any) -> bytes:
    values = np.asarray(values)
    return np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"))).tobytes()


@contextmanager
def small_files() -> Iterator[None]:
    """Let every write to a file fail beyond 60 bytes, as on a full disk."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def run(folder: Path, numbers: Any, until: float, steps: int = 12) -> Counter[str]:
    """Run arrays by their numbers until it is so late; return what was done."""
    done: Counter[str] = Counter()
    for number in numbers:
        if time.monotonic() > until:
            break
        one = Run(folder, number)
        one.run(steps)
        done += one.done
        done["arrays"] += 1
    return done


def main() -> None:
    """Run for long, and say what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--arrays", type=int, default=sys.maxsize)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        numbers = range(asked.first, asked.first + asked.arrays)
        sys.stdout.write(str(dict(run(Path(folder), numbers, time.monotonic() + 60 * asked.minutes))) + "\n")


if __name__ == "__main__":
    main()
