"""Executors: threads of this process, or the workers of a dask.distributed cluster.

A task processes many items: a job writes, a question returns an answer. Items run in any order, in any process, and
twice if necessary. So any worker can run any item, and the items of a killed worker simply run again.

Spec: https://distributed.dask.org/en/stable/client.html
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, NamedTuple, TypeVar

from omnizarr.errors import MissingDependencyError, Remedy, SchedulerError
from omnizarr.stores import Store, pool
from omnizarr.stores.base import Buffer
from omnizarr.stores.wrap.wrappers import WrapperStore
from omnizarr.support import extras
from omnizarr.support.locks import RLock
from omnizarr.support.progress import Tick

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Result = TypeVar("Result")

_AHEAD: Final = 2
"""Tasks for each thread of the cluster: one runs and one waits, so that no thread is idle."""
_PATIENCE: Final = 60.0
"""Seconds without any worker after which a task is given up."""
_SHARED: Final = Remedy("use a directory or an object store") | Remedy("leave out {scheduler}", scheduler=...)
_AGAIN: Final = Remedy("run it again").also("a conversion continues with {resume}", resume=True)
_GLANCE: Final = 1.0
"""Seconds between checks while waiting."""
_REPORT: Final = 0.5
"""Seconds between a worker's reports of the progress of its task."""


class Written(NamedTuple):
    """What a job has done.

    Attributes
    ----------
    values, nbytes : int
        Values that were written, and their bytes as they are stored.
    broken : mapping of str to str
        Keys of chunks that could not be read, and why.
    """

    values: int = 0
    nbytes: int = 0
    broken: Mapping[str, str] = {}


class Tally(WrapperStore):
    """A store that counts the values that are set through it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._written = Written()
        self._guard = RLock()
        self.on_set: Callable[[], object] | None = None
        """Called when a value has been set."""

    def set(self, key: str, value: Buffer) -> None:
        """Hand on, and count."""
        super().set(key, value)
        self.count(len(value))
        if self.on_set is not None:
            self.on_set()

    def count(self, nbytes: int) -> None:
        """Count a value that was set in another way."""
        with self._guard:
            self._written = Written(self._written.values + 1, self._written.nbytes + nbytes)

    @property
    def written(self) -> Written:
        """What was set so far."""
        return self._written

    def __repr__(self) -> str:
        return repr(self.store)


class Task(ABC, Generic[Item, Outcome]):
    """Work that is done for each of many items. It can be pickled, with everything that it needs."""

    @property
    @abstractmethod
    def at_once(self) -> int:
        """How many items one process works on at a time."""

    share: int = 1
    """How many items are worth being sent to another process."""

    @abstractmethod
    def perform(self, items: Iterable[Item], tick: Tick) -> Outcome:
        """Do the work in this process. `tick` is called with the bytes of processed elements."""


class _Ahead:
    """Reports values as they are written, and, when an item is done, its unreported rest. Threads may call it."""

    def __init__(self, tick: Tick, value_bytes: int) -> None:
        self._tick = tick
        self._value_bytes = value_bytes
        self._ahead = 0
        self._guard = RLock()

    def value(self) -> None:
        """Tell of a value."""
        with self._guard:
            self._ahead += self._value_bytes
        self._tick(self._value_bytes)

    def item(self, nbytes: int) -> None:
        """Tell of an item."""
        with self._guard:
            known = min(self._ahead, nbytes)
            self._ahead -= known
        self._tick(nbytes - known)


@dataclass(frozen=True, slots=True)
class InTwo(Generic[Item, Result]):
    """Work on an item in two parts: the first is done for the next item while the second is done for one.

    Attributes
    ----------
    take : callable
        Does the first part.
    use : callable
        Does the second part, as `omnizarr.stores.pool.relay` calls it, and returns what is done.
    """

    take: Callable[[Item], Result]
    use: Callable[[Item, list[Result], Callable[[], object]], int]

    def __call__(self, item: Item) -> int:
        """Do both."""
        return self.use(item, [self.take(item)], lambda: None)


class Job(Task[Item, Written]):
    """Work that writes, or that compares what was written."""

    @property
    def value_bytes(self) -> int:
        """Bytes of elements that are done with a value that is written, where an item becomes many; else 0."""
        return 0

    @property
    def checks_first(self) -> bool:
        """Whether `begin` finds out whether the work can be done, so that it is called if there is none, too."""
        return False

    def perform(self, items: Iterable[Item], tick: Tick) -> Written:
        """Do the work in this process. Return the results of writing."""
        if not self.checks_first:
            items = iter(items)
            some = list(islice(items, 1))
            if not some:
                return Written()
            items = chain(some, items)
        broken: dict[str, str] = {}
        work, tally = self.begin(broken)
        ahead = _Ahead(tick, self.value_bytes)
        if tally is not None and self.value_bytes:
            tally.on_set = ahead.value
        if isinstance(work, InTwo) and self.at_once == 1:
            in_two: InTwo[Item, Any] = work
            pool.relay(in_two.take, lambda item, held, go: ahead.item(in_two.use(item, held, go)), items)
        else:
            pool.run(lambda item: ahead.item(work(item)), items, self.at_once, 1)
        return (Written() if tally is None else tally.written)._replace(broken=broken)

    @abstractmethod
    def begin(self, broken: dict[str, str]) -> tuple[Callable[[Item], int], Tally | None]:
        """Return a function that several threads call with each item, and the store that it writes to.

        Of `InTwo`, one thread at a time calls each part. The call returns how many bytes of elements are done with
        that. Chunks that it cannot read, and need not, it enters in `broken`: their keys, and why.
        """


class Question(Task[Item, list[Result]], Generic[Item, Result]):
    """What is found out about each of many items."""

    def perform(self, items: Iterable[Item], tick: Tick) -> list[Result]:
        """Find it out in this process, in any order."""
        return list(self.answers(items, tick))

    def answers(self, items: Iterable[Item], tick: Tick) -> Iterator[Result]:
        """Yield the results of items, in any order. Only a few results exist at a time."""
        work = self.begin()
        for _, (nbytes, result) in pool.gather(work, items, self.at_once):
            tick(nbytes)
            yield result

    @abstractmethod
    def begin(self) -> Callable[[Item], tuple[int, Result]]:
        """Return a function that several threads call with each item.

        The function returns the bytes of the elements that it processed, and its result.
        """


class Executor(ABC):
    """Runs jobs."""

    width: int
    """How many parts of a job are done at a time, each with the threads and the memory of one process."""

    @abstractmethod
    def run(self, job: Job[Item], items: Iterable[Item], tick: Tick) -> Written:
        """Do a job. The first error is raised when all have come to rest."""

    @abstractmethod
    def ask(self, question: Question[Item, Result], items: Iterable[Item], tick: Tick) -> Iterator[Result]:
        """Yield the answers as they come, in any order. The first error is raised when all have come to rest."""

    @abstractmethod
    def expect(self, store: Store, keys: Iterable[str]) -> None:
        """Let only workers run that see in the store what this process sees, by the first of the keys with a value.

        This replaces earlier expectations for the same store.
        """


class Local(Executor):
    """The threads of this process."""

    width = 1

    def run(self, job: Job[Item], items: Iterable[Item], tick: Tick) -> Written:
        """Do a job here."""
        return job.perform(items, tick)

    def ask(self, question: Question[Item, Result], items: Iterable[Item], tick: Tick) -> Iterator[Result]:
        """Find it out here."""
        return question.answers(items, tick)

    def expect(self, store: Store, keys: Iterable[str]) -> None:
        """Every worker sees what exists."""


@contextlib.contextmanager
def executor(scheduler: Any = None) -> Iterator[Executor]:
    """Return an executor: this process, or the workers of a cluster, given its client or address.

    A client that is made here is closed in the end.

    Raises
    ------
    MissingDependencyError
        If distributed is not installed.
    SchedulerError
        If there is no answer at the address.
    TypeError
        If it is neither a client nor an address.
    """
    if scheduler is None or isinstance(scheduler, Executor):
        yield scheduler or Local()
        return
    distributed = _distributed()
    if isinstance(scheduler, distributed.Client):
        if scheduler.asynchronous:
            raise TypeError("the client is asynchronous: give the address of its scheduler")
        yield Distributed(scheduler)
        return
    if not isinstance(scheduler, (str, distributed.deploy.Cluster)):
        raise TypeError(f"scheduler must be a dask.distributed client, or an address, not {type(scheduler).__name__}")
    try:
        client = distributed.Client(scheduler, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise SchedulerError(
            f"the scheduler cannot be reached: {error}", found=str(scheduler), expected="such as 'tcp://10.0.0.1:8786'"
        ) from error
    with client:
        yield Distributed(client)


def _distributed() -> Any:
    try:
        return import_module("distributed")  # takes half a second
    except ImportError as error:
        raise MissingDependencyError("working on a cluster needs distributed", remedy=extras.remedy("dask")) from error


@dataclass(frozen=True)
class _Witness:
    """A value that every worker must see; otherwise it reads and writes another store."""

    store: Store
    key: str
    digest: str | None

    @classmethod
    def of(cls, store: Store, key: str) -> _Witness:
        value = store.get(key)
        return cls(store, key, None if value is None else hashlib.sha256(value).hexdigest())

    def check(self) -> None:
        found = _Witness.of(self.store, self.key).digest
        if found != self.digest:
            raise SchedulerError(
                "a worker does not see the data that this process sees",
                store=str(self.store),
                key=self.key,
                found="nothing there" if found is None else "another value there",
                remedy="use a store that all workers can reach, by the same name",
            )


class Distributed(Executor):
    """The workers of a cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._witnesses: dict[object, _Witness] = {}
        self._counted = (0, -math.inf)
        self.width = max(1, self._threads())

    def expect(self, store: Store, keys: Iterable[str]) -> None:
        """Look at the value, to be compared with what workers see; refuse a store that they cannot reach."""
        if not store.features.is_shared:
            raise SchedulerError(
                "the store is in the memory of this process: workers of a cluster cannot reach it",
                store=str(store),
                remedy=_SHARED,
            )
        _refuse_unsendable(store, "the store")
        for key in keys:
            witness = _Witness.of(store, key)
            if witness.digest is not None:
                self._witnesses[store.origin()] = witness
                return

    def run(self, job: Job[Item], items: Iterable[Item], tick: Tick) -> Written:
        """Do a job, by tasks of a few items each; no more are sent than are soon begun."""
        values = nbytes = 0
        broken: dict[str, str] = {}
        for written in self._outcomes(job, items, tick):
            values += written.values
            nbytes += written.nbytes
            broken.update(written.broken)
        return Written(values, nbytes, broken)

    def ask(self, question: Question[Item, Result], items: Iterable[Item], tick: Tick) -> Iterator[Result]:
        """Find it out by tasks of a few items each."""
        for results in self._outcomes(question, items, tick):
            yield from results

    def _outcomes(self, task: Task[Item, Outcome], items: Iterable[Item], tick: Tick) -> Iterator[Outcome]:
        """Yield the result of each share of the items as it completes."""
        _refuse_unsendable(task, "the work")
        run = _Run(self._client, task, tuple(self._witnesses.values()), tick)
        iterator = iter(items)
        try:
            while True:
                for _ in range(max(1, _AHEAD * self._threads()) - run.pending):
                    share = list(islice(iterator, task.share))
                    if not share:
                        break
                    run.submit(share)
                if not run.pending:
                    return
                yield from run.next()
        finally:
            run.stop()

    def _threads(self) -> int:
        """Return how many threads all workers have, or had a moment ago: workers come and go."""
        counted, at = self._counted
        if time.monotonic() - at > _GLANCE:
            try:
                counted = sum(self._client.nthreads().values())
            except (OSError, RuntimeError) as error:
                raise _lost(error) from error
            self._counted = counted, time.monotonic()
        return counted


def _refuse_unsendable(thing: object, name: str) -> None:
    try:
        import_module("cloudpickle").dumps(thing)  # as distributed does
    except Exception as error:
        raise SchedulerError(
            f"{name} cannot be sent to the workers of a cluster: {error}",
            store=str(thing) if isinstance(thing, Store) else None,
            remedy=_SHARED,
        ) from error


class _Run:
    """The shares of one task on a cluster.

    Workers tell from time to time how far they are. What a worker that died had told counts, and is not counted again
    when another one does the same.
    """

    def __init__(self, client: Any, job: Task[Any, Any], witnesses: tuple[_Witness, ...], tick: Tick) -> None:
        self._client = client
        self._job = job
        self._witnesses = witnesses
        self._tick = tick
        self._name = f"omnizarr-{type(job).__name__.strip('_').lower()}-{uuid.uuid4().hex}"
        self._futures: dict[Any, int] = {}
        self._told: dict[int, int] = {}
        self._landed: SimpleQueue[Any] = SimpleQueue()
        self._number = 0
        client.subscribe_topic(self._name, self._landed.put)

    @property
    def pending(self) -> int:
        """Number of tasks that were sent and have not come back."""
        return len(self._futures)

    def submit(self, share: list[Any]) -> None:
        """Send a task."""
        self._number += 1
        future = self._client.submit(
            _work,
            (self._name, self._number),
            self._job,
            share,
            self._witnesses,
            key=f"{self._name}-{self._number}",
            pure=False,
        )
        self._futures[future] = self._number
        future.add_done_callback(self._landed.put)

    def next(self) -> list[Any]:
        """Return the results of completed tasks, at least one. Raise the error of a task that failed."""
        landed = [self._wait()]
        with contextlib.suppress(Empty):
            while True:
                landed.append(self._landed.get_nowait())
        futures = [future for future in landed if not self._is_report(future)]
        numbers = [self._futures.pop(future) for future in futures]
        try:
            results = self._client.gather(futures)
        except _distributed().KilledWorker as error:
            raise SchedulerError(
                f"a task was given up, as workers that ran it died again and again: {error}",
                remedy=(Remedy("give workers more memory") | Remedy("choose a smaller {max_memory}", max_memory=...))
                .also("then run it again")
                .also("a conversion continues with {resume}", resume=True),
            ) from error
        except CancelledError as error:
            raise _lost(error) from error
        for number, (done, _) in zip(numbers, results, strict=True):
            self._count(number, done)
        return [outcome for _, outcome in results]

    def _wait(self) -> Any:
        alone = None
        while True:
            with contextlib.suppress(Empty):
                landed = self._landed.get(timeout=_GLANCE)
                if not self._is_report(landed):
                    return landed
                continue
            if self._client.status in ("closed", "closing"):
                raise _lost(None)
            if self._client.nthreads():
                alone = None
            elif alone is None:
                alone = time.monotonic()
            elif time.monotonic() - alone > _PATIENCE:
                raise SchedulerError(f"the cluster has had no worker for {_PATIENCE:g} seconds", remedy="start some")

    def _is_report(self, landed: Any) -> bool:
        """Count what a worker tells of its task, unless it is the task itself that has landed."""
        if not isinstance(landed, tuple):
            return False
        number, done = landed[1]
        self._count(number, done)
        return True

    def _count(self, number: int, done: int) -> None:
        """Count `done` bytes of a task. Some of them may have been counted before."""
        more = done - self._told.get(number, 0)
        if more > 0:
            self._told[number] = done
            self._tick(more)

    def stop(self) -> None:
        """Call off what has not begun, and wait until all workers are idle."""
        if self._client.status == "running":
            with contextlib.suppress(ValueError):  # it was never told to the scheduler
                self._client.unsubscribe_topic(self._name)
        if self._futures and self._client.status == "running":
            self._client.cancel(list(self._futures))
            self._client.run(_come_to_rest, self._name, on_error="ignore")


def _lost(error: BaseException | None) -> SchedulerError:
    return SchedulerError(
        f"the connection to the scheduler was lost{'' if error is None else f': {error}'}",
        remedy=_AGAIN,
    )


# Functions that workers run. They may run several tasks at a time, each in a thread.


class _StoppedError(Exception):
    """The result is no longer wanted."""


_at_work: dict[str, int] = {}
_stopped: set[str] = set()
_guard = RLock()


def _work(
    place: tuple[str, int], task: Task[Item, Outcome], share: list[Item], witnesses: tuple[_Witness, ...]
) -> tuple[int, Outcome]:
    """Do a part of a task; return the bytes of its elements, and its result."""
    name, number = place
    reports = _Reports(name, number)

    def tick(nbytes: int) -> None:
        reports.tick(nbytes)
        if name in _stopped:
            raise _StoppedError

    with _guard:
        if name in _stopped:
            raise _StoppedError
        _at_work[name] = _at_work.get(name, 0) + 1
    try:
        for witness in witnesses:
            witness.check()
        outcome = task.perform(share, tick)
    finally:
        with _guard:
            _at_work[name] -= 1
            if not _at_work[name]:
                del _at_work[name]
    return reports.done, outcome


class _Reports:
    """Tells the waiting process, now and then, how many bytes of elements are done. Threads may call it."""

    def __init__(self, name: str, number: int) -> None:
        self.done = 0
        self._topic, self._number = name, number
        self._due = time.monotonic() + _REPORT
        self._guard = RLock()
        self._worker = None
        with contextlib.suppress(ValueError):  # this is not a worker
            self._worker = _distributed().get_worker()

    def tick(self, nbytes: int) -> None:
        """Count `nbytes` more as done."""
        with self._guard:
            self.done += nbytes
            if self._worker is None or time.monotonic() < self._due:
                return
            self._due = time.monotonic() + _REPORT
            self._worker.log_event(self._topic, (self._number, self.done))


async def _come_to_rest(name: str) -> None:
    """Let no thread of this worker begin with another item of a job, and wait until all are done with theirs."""
    with _guard:
        _stopped.add(name)
    until = time.monotonic() + _PATIENCE
    while name in _at_work and time.monotonic() < until:  # noqa: ASYNC110 - threads cannot set an event of the loop
        await asyncio.sleep(0.01)
