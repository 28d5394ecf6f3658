"""The loader: batches of arrays, in an order that is known before anything is read."""

from __future__ import annotations

import inspect
import operator
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from omnizarr import engine
from omnizarr.data import batches, caching, orders, whole
from omnizarr.data.assembly import Assembler, explain
from omnizarr.data.keeping import RUN, Batch, Planner, StoppedError
from omnizarr.data.permutations import key_of
from omnizarr.data.sources import Field, fields_of
from omnizarr.data.whole import Whole
from omnizarr.errors import SettingError, ShapeError, ValueTypeError
from omnizarr.stores import pool
from omnizarr.stores.wrap.cached import Place
from omnizarr.support import amounts, workers
from omnizarr.support.locks import RLock
from omnizarr.support.progress import Progress, Tracker

if TYPE_CHECKING:
    from numpy.typing import NDArray

_READERS: Final = 2
_READERS_FAR: Final = 16
"""Threads that read steps from other machines: each waits for answers most of the time."""
_MOST_THREADS: Final = 4
_PATIENCE: Final = 1.0
"""Seconds after which a loop that waits looks whether its threads are there."""
_PASSING_SHARE: Final = 4
_BATCHES: Final = 4
"""Batches that are left out of the memory for blocks that are mixed, so that their order does not depend on more."""
_INDEX_SHARE: Final = 16
"""The part of the memory for chunks that indexes of shards may take,"""
_MOST_INDEXES: Final = 2**26
"""at most so many bytes,"""
_ONE_INDEX_SHARE: Final = 4
"""and the part of it that one index may take if that is more: without any, each read would ask for one."""
_VERSION: Final = 1


@dataclass(slots=True)
class Stats:
    """What a loader has done so far.

    Attributes
    ----------
    batches : int
        Batches that you got.
    samples : int
        Samples in them.
    nbytes : int
        Bytes of their elements.
    waited : float
        Seconds for which your loop waited for batches.
    reads : int
        Chunks that were read and decoded.
    hits : int
        How often a batch found a chunk in memory. Samples of one chunk in one batch count once.
    skipped : int
        Samples that could not be read, with ``on_error="skip"``.
    most_nbytes : int
        The most bytes of decoded chunks that were kept at a time.
    cached : int
        Stored values, or parts of them, that were in the cache on disk.
    fetched : int
        Those that were not, and were fetched from a remote store. Counted with ``cache=`` only.
    """

    batches: int = 0
    samples: int = 0
    nbytes: int = 0
    waited: float = 0.0
    reads: int = 0
    hits: int = 0
    skipped: int = 0
    most_nbytes: int = 0
    cached: int = 0
    fetched: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of uses of chunks that found them in memory, from 0 to 1.

        Examples
        --------
        >>> import omnizarr
        >>> omnizarr.data.Stats(reads=1, hits=3).hit_rate
        0.75
        """
        return self.hits / max(1, self.hits + self.reads)


class Loader:
    """Batches of arrays for training, which threads read ahead.

    A ``for`` loop gives one epoch, and the next loop the next one, in another order. Each sample comes once in each
    epoch. You may leave a loop early: its threads stop.

    Parameters
    ----------
    arrays : mapping of str to array
        The entries of a batch. An array (`omnizarr.Array`, `omnizarr.LazyArray` or NumPy) has its rows as samples, a
        list of arrays the rows of all, and `windows` has boxes. All have the same number of samples.
    batch : int
        Samples per batch.
    shuffle : "full", "blocks" or None
        ``"full"`` permutes all samples. ``"blocks"`` puts chunks (or shards, if eight of them fit) in random order,
        and permutes the samples of as many of them as fit into a third of `memory`: each chunk is read once (with
        windows across chunks and little `memory`, some are read again), and `mixed` says how many are mixed.
        None: the order in which they are stored.
    seed : int
        The order depends on the seed and the epoch (with ``"blocks"``, on `memory` too), on every machine.
    prefetch : int
        Batches that are ready, or being put together, while you use one.
    memory : int or str
        Bytes for chunks and batches, as a number or as text: ``"2GB"``. Chunks are kept if they are used again soon.
    cache : path or mapping, optional
        A directory on a local disk, for what is read from buckets and web servers: the next epoch, the next program and
        other processes find it there. A mapping has options of `omnizarr.stores.CacheStore`:
        ``{"path": "cache", "max_bytes": "100GB", "max_age": math.inf}``. By default it has at most 10 GB, and each
        value is checked once for each loader (``max_age="once"``). Arrays on local disks are read without it.
    epochs : int or None
        Epochs of one loop; None: it never ends.
    drop_last : bool
        Leave out the last samples of an epoch if they do not fill a batch. All processes then have equally many
        batches.
    rank, world : int
        Number of this process, and of all processes that train together. Each sample comes in one of them.
    transform : callable, optional
        Called with each sample, a mapping of names to arrays, or with the sample and a `numpy.random.Generator` that
        depends on the seed, the epoch and the sample. Returns the mapping to use.
    transform_batch : callable, optional
        The same for batches.
    to : "numpy", "torch", "jax" or "cupy"
        The library of the arrays in a batch.
    on_error : "raise" or "skip"
        What to do with samples of which a chunk is broken or cannot be fetched: ``"skip"`` makes their batches shorter,
        and `Stats.skipped` counts them.
    threads : int, optional
        Threads that put batches together, and call the transforms. The default is one per processor, at most four.
    progress : bool, bar or callable, optional
        Shows how many samples were loaded, and which share of the time your loop waited: see `omnizarr.convert`.

    Attributes
    ----------
    stats : Stats
    epoch : int
        The epoch of the next batch. Assign to it to go on with another one.
    mixed : int
        Number of samples among which a batch is drawn.

    Raises
    ------
    ShapeError
        If the arrays have different numbers of samples.
    SettingError
        If `memory` is too small for one batch and one chunk, or another parameter is not valid.

    Notes
    -----
    A batch is yours for as long as you keep it, or a view or tensor of it. Only memory that your program does not hold
    is used for later batches. The memory of chunks is kept for the next loop, until the loader is gone.

    The number of samples is that of the moment when you make the loader: what is appended later is not loaded.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> images = omnizarr.create_array({}, data=np.arange(40).reshape(10, 2, 2), chunks=(4, 2, 2))
    >>> loader = omnizarr.data.Loader({"x": images, "y": np.arange(10)}, batch=4, shuffle="full", seed=1)
    >>> for batch in loader:
    ...     print(batch["x"].shape, batch["y"])
    (4, 2, 2) [...]
    (4, 2, 2) [...]
    (2, 2, 2) [...]
    >>> loader.stats.samples, loader.stats.reads
    (10, 3)
    """

    def __init__(
        self,
        arrays: Mapping[str, Any],
        batch: int = 64,
        *,
        shuffle: Literal["full", "blocks"] | None = None,
        seed: int = 0,
        prefetch: int = 2,
        memory: int | str = "1GB",
        cache: Place | Mapping[str, Any] = None,
        epochs: int | None = 1,
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
        transform: Callable[..., Mapping[str, Any]] | None = None,
        transform_batch: Callable[..., Mapping[str, Any]] | None = None,
        to: Literal["numpy", "torch", "jax", "cupy"] = "numpy",
        on_error: Literal["raise", "skip"] = "raise",
        threads: int | None = None,
        progress: Progress = None,
    ) -> None:
        self._caches = None if cache is None else caching.Caches(cache)
        self._fields = fields_of(arrays, None if self._caches is None else self._caches.through)
        self._count = self._fields[0].count
        self._batch = _at_least(batch, 1, "batch")
        self._shuffle = shuffle
        self._seed = operator.index(seed)
        self._memory = amounts.limit(memory, "memory") or 1
        self._epochs = None if epochs is None else _at_least(epochs, 0, "epochs")
        self._drop_last = bool(drop_last)
        self._rank, self._world = operator.index(rank), _at_least(world, 1, "world")
        if not 0 <= self._rank < self._world:
            raise SettingError("there is no such process", found=f"rank {rank}", expected=f"0 to {self._world - 1}")
        if on_error not in {"raise", "skip"}:
            raise SettingError("there is no such way to treat errors", found=on_error, expected='"raise" or "skip"')
        self._skips = on_error == "skip"
        self._transform, self._transform_batch = transform, transform_batch
        if to not in batches.LIBRARIES:
            raise SettingError(
                "batches cannot be made for this library", found=to, expected=f"one of {', '.join(batches.LIBRARIES)}"
            )
        self._to = to
        self._progress = progress
        wanted = _at_least(prefetch, 1, "prefetch")
        self._prefetch, self._limit, self._passing, self._index_nbytes = self._shares(wanted)
        self._threads = min(
            self._prefetch,
            min(_MOST_THREADS, pool.default_concurrency()) if threads is None else _at_least(threads, 1, "threads"),
        )
        self._make_order = self._orders_of()
        self._orders: dict[int, orders.Order] = {}
        self._indexes: Any = None
        self._spare: batches.Spare | None = None
        self._position = (0, 0)
        self._is_resumed = True
        self.stats = Stats()

    @property
    def _batch_nbytes(self) -> int:
        nbytes: int = sum(field.sample_nbytes for field in self._fields)
        return nbytes * min(self._batch, max(1, self._count))

    def _shares(self, prefetch: int) -> tuple[int, int, int, int]:
        """Return batches to prefetch, and bytes of cells to keep, of cells that only pass, and of indexes of shards."""
        nbytes = self._batch_nbytes
        largest = max(field.largest_cell for field in self._fields)
        prefetch = min(prefetch, max(1, (self._memory - 2 * largest) // max(1, nbytes)))
        # Your loop has one, and gets the next before it releases that.
        at_once = min(prefetch + 2, max(prefetch, (self._memory - 2 * largest) // max(1, nbytes)))
        rest = self._memory - at_once * nbytes
        if rest < largest:
            raise SettingError(
                "memory is too small for one batch and one chunk",
                found=f"memory={self._memory}",
                expected=f"at least {nbytes + largest} bytes: {nbytes} for a batch, {largest} for a chunk",
                remedy="give it more, or make batches or chunks smaller",
            )
        passing = max(largest, rest // _PASSING_SHARE)
        sizes = [part.index_nbytes for field in self._fields for part in field.parts]
        largest_index = max(one for one, _ in sizes)
        least = largest_index if largest_index <= rest // _ONE_INDEX_SHARE else 0
        indexes = min(sum(every for _, every in sizes), max(least, rest // _INDEX_SHARE), _MOST_INDEXES)
        return prefetch, max(0, rest - passing - indexes), passing, indexes

    # -- properties ------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of batches of one epoch, for this process."""
        return orders.steps_of(self._count, self._batch, self._rank, self._world, drop_last=self._drop_last)

    @property
    def samples(self) -> int:
        """Number of samples of one epoch, for all processes.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> omnizarr.data.Loader({"x": np.arange(10)}, batch=4).samples
        10
        """
        return self._count

    @property
    def mixed(self) -> int:
        """Number of samples among which a batch is drawn: a measure of how well they are shuffled.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> omnizarr.data.Loader({"x": np.arange(10)}, batch=4, shuffle="full").mixed
        10
        """
        return self._order(self._position[0]).mixed

    @property
    def epoch(self) -> int:
        """The epoch of the next batch. Assign to it to go on with another one.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> loader = omnizarr.data.Loader({"x": np.arange(10)}, batch=4)
        >>> for batch in loader:
        ...     pass
        >>> loader.epoch
        1
        """
        return self._position[0]

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._position = _at_least(epoch, 0, "epoch"), 0
        self._is_resumed = True

    def __repr__(self) -> str:
        names = ", ".join(f"{field.name} {field.sample_shape} {field.dtype}" for field in self._fields)
        return f"<Loader {self._count} samples, {len(self)} batches of {self._batch}: {names}>"

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_orders": {},
            "_make_order": None,
            "_progress": None,
            "_indexes": None,
            "_spare": None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_order = self._orders_of()

    # -- order -----------------------------------------------------------------------

    def _orders_of(self) -> Callable[[int], orders.Order]:
        return orders.make(self._fields, self._shuffle, self._seed, self._memory - _BATCHES * self._batch_nbytes)

    def _order(self, epoch: int) -> orders.Order:
        found = self._orders.get(epoch)
        if found is None:
            found = self._make_order(epoch)
            while len(self._orders) > 1:  # this epoch's and the next one's
                self._orders.pop(min(self._orders), None)
            self._orders[epoch] = found
        return found

    def indexes(self, epoch: int, step: int) -> NDArray[np.int64]:
        """Return which samples a batch has, without reading them.

        Parameters
        ----------
        epoch, step : int

        Returns
        -------
        numpy.ndarray of int64

        Raises
        ------
        SettingError
            If the epoch has no such step.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> omnizarr.data.Loader({"x": np.arange(10)}, batch=4).indexes(0, 2)
        array([8, 9])
        """
        if not 0 <= step < len(self):
            raise SettingError("the epoch has no such step", found=step, expected=f"0 to {len(self) - 1}")
        return self._samples_of(epoch, step, step + 1)

    def _samples_of(self, epoch: int, first: int, last: int) -> NDArray[np.int64]:
        """Return the samples of the steps from `first` up to `last`."""
        start, stop = orders.bounds(self._count, self._rank, self._world)
        places = np.arange(start + first * self._batch, min(start + last * self._batch, stop), dtype=np.int64)
        return self._order(epoch)(places)

    def _batches(self, epoch: int, step: int, epochs: int | None) -> Iterator[Batch]:
        number = 0
        while epochs is None or number < epochs:
            steps = len(self)
            if not steps:
                return
            while step < steps:
                last = min(step + (RUN if step else 1), steps)
                samples = self._samples_of(epoch, step, last)
                for at in range(step, last):
                    first = (at - step) * self._batch
                    yield Batch(epoch, at, samples[first : first + self._batch])
                step = last
            epoch, step, number = epoch + 1, 0, number + 1

    # -- state -----------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return where the loader is, after the batches that you got: to be saved, as JSON for example.

        Returns
        -------
        dict

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> loader = omnizarr.data.Loader({"x": np.arange(10)}, batch=4, shuffle="full")
        >>> first = next(iter(loader))
        >>> loader.state()["epoch"], loader.state()["step"]
        (0, 1)
        """
        epoch, step = self._position
        return {"version": _VERSION, "epoch": epoch, "step": step, **self._terms()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on where a loader was. The next loop begins with the batch that it would have had next.

        Parameters
        ----------
        state : mapping
            The result of `state`, of any of the processes.

        Raises
        ------
        SettingError
            If it is of a loader with other samples or batches.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> loader = omnizarr.data.Loader({"x": np.arange(10)}, batch=4)
        >>> first = next(iter(loader))
        >>> again = omnizarr.data.Loader({"x": np.arange(10)}, batch=4)
        >>> again.load_state(loader.state())
        >>> next(iter(again))["x"]
        array([4, 5, 6, 7])
        """
        if state.get("version") != _VERSION:
            raise SettingError("not the state of a loader", found=state.get("version"), expected=f"version {_VERSION}")
        for name, value in self._terms().items():
            if state.get(name) != value:
                raise SettingError(
                    f"the state is of a loader with another {name}",
                    found=state.get(name),
                    expected=value,
                    remedy="make the loader with the same parameters, or begin an epoch: loader.epoch = 3",
                )
        epoch, step = _at_least(state["epoch"], 0, "epoch"), _at_least(state["step"], 0, "step")
        if step > len(self):
            raise SettingError("the epoch has no such step", found=step, expected=f"0 to {len(self)}")
        self._position = (epoch, step)
        self._is_resumed = True

    def _terms(self) -> dict[str, Any]:
        """Return all on which the batches depend."""
        terms = {
            "samples": self._count,
            "batch": self._batch,
            "shuffle": self._shuffle,
            "seed": self._seed,
            "world": self._world,
            "drop_last": self._drop_last,
        }
        if self._shuffle == "blocks":
            terms["memory"] = self._memory
        return terms

    def part(self, number: int, parts: int, epoch: int) -> Loader:
        """Return a loader for a part of the samples of this process, for one of several workers.

        Parameters
        ----------
        number, parts : int
            Number of the worker, and of all workers of this process.
        epoch : int
            The epoch with which it begins.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> loader = omnizarr.data.Loader({"x": np.arange(10)}, batch=4)
        >>> [batch["x"].tolist() for batch in loader.part(1, 2, epoch=0)]
        [[5, 6, 7, 8], [9]]
        """
        found = object.__new__(type(self))
        found.__setstate__(self.__getstate__())
        found._rank, found._world = self._rank * parts + number, self._world * parts
        found._progress, found.stats = None, Stats()
        found.epoch = epoch
        return found

    def as_torch(self) -> Any:
        """Return an iterable dataset for ``torch.utils.data.DataLoader(dataset, batch_size=None)``.

        Each worker loads its own part of the samples, in batches of its own. Each time that the DataLoader is iterated,
        it gives the next epoch; ``set_epoch`` of the dataset chooses one. Workers may be forked or spawned, and
        persistent. The position within an epoch is that of the workers: to resume there, iterate the loader itself.

        Raises
        ------
        MissingDependencyError
            Without torch.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> loader = omnizarr.data.Loader({"x": np.arange(10)}, batch=4)
        >>> dataset = loader.as_torch()  # doctest: +SKIP
        """
        batches.converter("torch")
        return import_module("omnizarr.data.torch_dataset").batches_of(self)

    # -- loading ---------------------------------------------------------------------

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Load the batches of the next epoch, or the rest of one after `load_state`."""
        if not self._is_resumed and self._position[1]:  # the last loop was left early
            self._position = (self._position[0] + 1, 0)
        self._is_resumed = False
        return self._load(*self._position)

    def _begin_indexes(self) -> None:
        """Make what keeps indexes of shards, or let it begin another loop: data may have changed."""
        if self._indexes is not None:
            self._indexes.begin()
        elif self._index_nbytes:
            self._indexes = engine.shard_indexes(self._index_nbytes)

    def _load(self, epoch: int, step: int) -> Iterator[dict[str, Any]]:
        convert = batches.converter(self._to)
        stats = self.stats
        before, waited_before = (stats.reads, stats.hits), stats.waited
        cached = _CacheCounts(stats, self._caches)
        self._begin_indexes()
        spare, self._spare = self._spare or batches.Spare(self._limit), None  # a loop beside this one has its own
        run = _Run(
            _Terms(
                self._fields,
                self._batches(epoch, step, self._epochs),
                self._batch,
                self._prefetch,
                self._threads,
                self._limit,
                self._passing,
                self._epochs == 1,
                self._world == 1 and step == 0,
                self._skips,
                self._seed,
                self._rank,
                self._to,
                self._transform,
                self._transform_batch,
                self._indexes,
                spare,
                self._shuffle is None,
            )
        )
        start, stop = orders.bounds(self._count, self._rank, self._world)
        total = None if self._epochs is None else self._epochs * (stop - start)
        with Tracker(self._progress, "loading", chunks=total, unit="sample") as tracker:
            try:
                run.start()
                while True:
                    begun = time.perf_counter()
                    found = run.take()
                    stats.waited += time.perf_counter() - begun
                    if found is None:
                        run.planner.end()
                        self._spare = spare
                        break
                    batch, arrays, skipped = found
                    samples = len(batch.indexes) - skipped
                    stats.batches += 1
                    stats.samples += samples
                    stats.skipped += skipped
                    nbytes = sum(getattr(each, "nbytes", 0) for each in arrays.values())
                    stats.nbytes += nbytes
                    stats.reads, stats.hits = before[0] + run.planner.reads, before[1] + run.planner.hits
                    stats.most_nbytes = max(stats.most_nbytes, run.planner.most)
                    cached.update()
                    tracker.count(samples, nbytes)
                    if self._progress is not None:
                        waited = (stats.waited - waited_before) / max(tracker.state.seconds, 1e-9)
                        tracker.note(f"waited {100 * waited:.0f} % of the time")
                    at = (batch.epoch, batch.step + 1)
                    self._position = at if at[1] < len(self) else (batch.epoch + 1, 0)
                    if convert is not None:
                        arrays = {name: _converted(convert, each) for name, each in arrays.items()}
                    del found, batch
                    yield arrays
                    del arrays  # so that its memory can be used again
            finally:
                try:
                    run.end()
                except BaseException:  # on Ctrl-C: threads must not go on unknown
                    run.end()
                    raise


class _CacheCounts:
    """Adds what the caches of a loader do during one loop to its statistics."""

    def __init__(self, stats: Stats, caches: caching.Caches | None) -> None:
        self._stats, self._caches = stats, caches
        self._before = (0, 0) if caches is None else caches.counts()

    def update(self) -> None:
        """Add what was done since the last time."""
        if self._caches is None:
            return
        now = self._caches.counts()
        self._stats.cached += now[0] - self._before[0]
        self._stats.fetched += now[1] - self._before[1]
        self._before = now


class _BrokenSampleError(Exception):
    """Holds the arguments of `explain`, until the loop comes to the step."""


@dataclass(frozen=True, slots=True)
class _Terms:
    """What the threads of a loop need to know of its loader."""

    fields: list[Field]
    source: Iterator[Batch]
    """The batches of the loop, in order."""
    batch: int
    """Samples of a batch, at most."""
    prefetch: int
    threads: int
    limit: int
    """Bytes of cells that are kept."""
    passing: int
    """Bytes of cells that only pass."""
    is_one_epoch: bool
    is_whole: bool
    """All samples of an epoch are used."""
    skips: bool
    seed: int
    rank: int
    to: str
    transform: Callable[..., Mapping[str, Any]] | None
    transform_batch: Callable[..., Mapping[str, Any]] | None
    indexes: Any
    """Where indexes of shards are kept."""
    spare: batches.Spare
    is_in_order: bool


def _planner(terms: _Terms) -> tuple[Planner | Whole, Assembler | Whole]:
    """Return what plans and reads steps, and what puts them together."""
    known = {"is_one_epoch": terms.is_one_epoch, "is_whole": terms.is_whole, "is_in_order": terms.is_in_order}
    most_ahead = terms.prefetch + terms.threads
    if whole.can_hold(terms.fields, terms.limit, **known):
        with suppress(MemoryError):  # of a system that promises no more memory than it has
            held = Whole(terms.fields, terms.source, most_ahead, terms.spare, terms.indexes, is_whole=terms.is_whole)
            return held, held
    planner = Planner(terms.fields, terms.source, terms.limit, most_ahead, terms.spare, **known)
    return planner, Assembler(terms.fields, terms.passing, terms.threads, terms.indexes, terms.spare)


class _Run:
    """The threads of one loop. They stop when the loop ends, however it ends."""

    def __init__(self, terms: _Terms) -> None:
        self._terms = terms
        self._fields = terms.fields
        self._pid = os.getpid()
        is_remote = any(part.is_remote for field in self._fields for part in field.parts)
        self._readers = _READERS_FAR if is_remote else _READERS
        self._threads = terms.threads
        self.planner, self._assembler = _planner(terms)
        new = batches.pinned() if terms.to == "torch" else None
        self._memories = [
            batches.Memory((terms.batch, *field.sample_shape), field.dtype, terms.prefetch + 1, new)
            for field in self._fields
        ]
        self._planning = RLock()
        self._taking = RLock()
        self._planned: SimpleQueue[Any] = SimpleQueue()
        self._credits: SimpleQueue[None] = SimpleQueue()
        self._results: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
        self._waiting: dict[int, tuple[Any, BaseException | None]] = {}
        self._next = 0
        self._is_stopped = False
        self._jobs: list[workers.Job] = []
        for _ in range(terms.prefetch):
            self._credits.put(None)

    def start(self) -> None:
        """Start the threads."""
        for number in range(self._readers):
            self._jobs.append(workers.start(self._read, f"omnizarr-load-read-{number}"))
        for number in range(self._threads):
            self._jobs.append(workers.start(self._assemble, f"omnizarr-load-{number}"))

    def end(self) -> None:
        """Make all threads end soon, if they are those of this process."""
        if os.getpid() == self._pid:
            self.stop()

    def stop(self) -> None:
        """Make all threads end soon. It can be called again."""
        self._is_stopped = True
        self.planner.stop()
        for _ in range(self._threads):
            self._credits.put(None)
            self._planned.put(None)

    def take(self) -> tuple[Batch, dict[str, Any], int] | None:
        """Wait for the next batch, and return it with the number of samples that were skipped; None after the last."""
        if os.getpid() != self._pid:
            raise SettingError(
                "a loop over a loader cannot go on in a forked process",
                found=f"begun by process {self._pid}",
                expected=f"process {os.getpid()}",
                remedy="begin the loop in the process that uses the batches",
            )
        while self._next not in self._waiting:
            try:
                number, batch, error = self._results.get(timeout=_PATIENCE)
            except Empty:
                if all(job.is_over for job in self._jobs) and self._results.empty():
                    raise RuntimeError("the threads of the loader have ended without a result") from None
                continue
            self._waiting.setdefault(number, (batch, error))
        batch, error = self._waiting.pop(self._next)
        self._next += 1
        self._credits.put(None)
        if isinstance(error, _BrokenSampleError):  # steps share the error of a chunk
            error = explain(*error.args)
        if error is not None:
            try:
                raise error
            finally:
                del error
        found: tuple[Batch, dict[str, Any], int] | None = batch
        return found

    # -- threads ---------------------------------------------------------------------

    def _read(self) -> None:
        """Plan steps and read their cells, until all are planned."""
        while not self._is_stopped:
            with self._planning:
                if self._is_stopped:
                    return
                try:
                    step: Any = self.planner.next()
                except StoppedError:
                    return
                except BaseException as error:  # noqa: BLE001 - the loop raises it
                    self._fail(error)
                    return
                if step is None:
                    self._planned.put(None)
                    return
                self._planned.put(step)
            self._assembler.read(step)

    def _fail(self, error: BaseException) -> None:
        """Let the loop raise an error that belongs to no step, once it has come to it."""
        self._results.put((self.planner.planned, None, error))
        self._planned.put(None)

    def _assemble(self) -> None:
        """Put steps together in their order, as long as the loop takes them."""
        while True:
            with self._taking:
                self._credits.get()
                step = None if self._is_stopped else self._planned.get()
                if step is None:
                    self._planned.put(None)  # for the other threads
                    self._credits.put(None)
                    if not self._is_stopped:
                        self._results.put((self.planner.planned, None, None))
                    return
            try:
                found, error = self._made(step), None
            except BaseException as failure:  # noqa: BLE001 - the loop raises it
                found, error = None, failure
            self.planner.release(step)
            self._results.put((step.number, found, error))
            if error is not None:
                self.stop()
                return
            del step, found

    def _made(self, step: Any) -> tuple[Batch, dict[str, Any], int]:
        terms, batch = self._terms, step.batch
        outs = [memory.take(len(batch.indexes)) for memory in self._memories]
        failed = self._assembler.put(step, outs)
        skipped = 0
        indexes = batch.indexes
        if failed:
            at, name, error = min(failed, key=operator.itemgetter(0))
            if not terms.skips:
                raise _BrokenSampleError(error, name, int(indexes[at]), batch.epoch, batch.step)
            keep = np.ones(len(indexes), dtype=bool)
            keep[[position for position, *_ in failed]] = False
            outs = [out[keep] for out in outs]
            indexes = indexes[keep]
            skipped = len(batch.indexes) - len(indexes)
        arrays: dict[str, Any] = {field.name: out for field, out in zip(self._fields, outs, strict=True)}
        if terms.transform is not None:
            arrays = _each(terms.transform, arrays, indexes, terms.seed, batch.epoch)
        if terms.transform_batch is not None:
            key = key_of(terms.seed, batch.epoch, batch.step, terms.rank, 1)
            arrays = _mapping(_called(terms.transform_batch, arrays, key))
        return batch, arrays, skipped


def _each(
    transform: Callable[..., Mapping[str, Any]],
    arrays: Mapping[str, Any],
    indexes: NDArray[np.int64],
    seed: int,
    epoch: int,
) -> dict[str, Any]:
    """Return the batch of transformed samples."""
    found = []
    for at, index in enumerate(indexes.tolist()):
        try:
            sample = {name: each[at] for name, each in arrays.items()}
            found.append(_mapping(_called(transform, sample, key_of(seed, epoch, index))))
        except Exception as error:
            error.add_note(f"in the transform of sample {index}, in epoch {epoch}")
            raise
    if not found:
        return dict(arrays)
    for sample, index in zip(found, indexes.tolist(), strict=True):
        if sample.keys() != found[0].keys():
            raise ValueTypeError(
                "the transform has made samples with different names",
                found=f"{', '.join(map(str, sample))} of sample {index}",
                expected=f"{', '.join(map(str, found[0]))}, as of sample {int(indexes[0])}",
                remedy="give all of them the same names",
            )
    return {name: _stacked(name, [np.asarray(each[name]) for each in found], indexes) for name in found[0]}


def _stacked(name: str, samples: list[NDArray[Any]], indexes: NDArray[np.int64]) -> NDArray[Any]:
    for sample, index in zip(samples, indexes.tolist(), strict=True):
        if sample.shape != samples[0].shape:
            raise ShapeError(
                f"the transform has made samples of {name!r} of different shapes",
                found=f"{sample.shape} of sample {index}",
                expected=f"{samples[0].shape}, as of sample {int(indexes[0])}",
                remedy="give all of them one shape",
            )
    return np.stack(samples)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueTypeError(
            "a transform returns a mapping of names to arrays", found=type(value).__name__, expected='as in {"x": x}'
        )
    return dict(value)


def _called(function: Callable[..., Mapping[str, Any]], value: Mapping[str, Any], key: int) -> Mapping[str, Any]:
    if _takes_two(function):
        return function(value, np.random.Generator(np.random.Philox(key=key)))
    return function(value)


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a function in C
        return False
    return True


def _converted(convert: Callable[[Any], Any], value: Any) -> Any:
    return convert(value) if isinstance(value, np.ndarray) else value


def _at_least(value: Any, least: int, name: str) -> int:
    number = operator.index(value)
    if number < least:
        raise SettingError(f"{name} is too small", found=number, expected=f"{least} or more")
    return number
