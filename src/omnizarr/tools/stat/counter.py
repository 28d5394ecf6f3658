"""Statistics of a hierarchy, array by array."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from omnizarr.errors import OmnizarrError, SchedulerError, StoreError
from omnizarr.model import UNDEFINED
from omnizarr.model.datatypes.optional import VALUE, absent, is_optional, present
from omnizarr.nodes.packing import Packing
from omnizarr.stores.base import NOT_LISTED
from omnizarr.support import amounts
from omnizarr.support.progress import Progress, Tick, Tracker
from omnizarr.tools.stat.moments import Fields, Moments, of_elements
from omnizarr.tools.stat.report import ArrayStat, Stat, Statistics
from omnizarr.tools.streaming.chunks import Chunks, box_of
from omnizarr.tools.streaming.equality import is_small
from omnizarr.tools.streaming.executors import Executor, Question, executor
from omnizarr.tools.streaming.nodes import documents_of, hierarchy, type_name
from omnizarr.tools.streaming.several import QUIET, worked_on
from omnizarr.tools.streaming.walking import BlocksToVisit, Effort, Elements, Walk, chunks_of, walk


def run(
    store: Any,
    *,
    path: str | None,
    zarr_format: int | str | None,
    skip_fill: bool,
    decoded: bool,
    allow_pickle: bool,
    concurrency: int | None,
    scheduler: Any,
    max_memory: int | str | None,
    progress: Progress,
    storage_options: Mapping[str, Any] | None,
) -> Stat:
    """Return statistics of the arrays of a hierarchy; see `omnizarr.stat`."""
    effort = Effort(amounts.limit(max_memory, "max_memory"), concurrency, allow_pickle)
    with ExitStack() as opened:
        found = hierarchy(opened, store, path, zarr_format, storage_options)
        workers = opened.enter_context(executor(scheduler))
        problems = [(at, str(error)) for at, error in found.nodes.errors.items()]
        arrays = [at for at in found.nodes if found.nodes.is_array(at)]
        sizes = [found.nodes.elements(at, effort).values_bytes() for at in arrays]
        found.nodes.look_for_chunks()
        stats = []
        with Tracker(progress, "reading", sum(sizes)) as shown:
            next_size = iter(sizes).__next__

            def begin(at: str) -> Tick:
                shown.begin(next_size(), at)
                return shown.tick

            def count(at: str, effort: Effort, tick: Tick) -> ArrayStat | str:
                try:
                    workers.expect(found.nodes.array(at).where.store, documents_of(found.nodes.array(at)))
                    elements = found.nodes.elements(at, effort)
                    return _of_array(at, elements, workers, tick, skip_fill=skip_fill, decoded=decoded)
                except (StoreError, SchedulerError):
                    raise
                except (OmnizarrError, MemoryError) as error:
                    return str(error)

            def chunks(at: str) -> list[Chunks]:
                array = found.nodes.array(at)
                return [Chunks.of(array.where, array.metadata)]

            store = found.top.where.store
            for at, each in worked_on(arrays, count, chunks, effort, workers, store, begin, QUIET):
                if isinstance(each, str):
                    problems.append((at, each))
                else:
                    stats.append(each)
    return Stat(tuple(stats), tuple(problems))


def _of_array(
    path: str,
    elements: Elements,
    workers: Executor,
    tick: Tick,
    *,
    skip_fill: bool,
    decoded: bool,
) -> ArrayStat:
    metadata = elements.metadata
    packing = Packing.of_array(metadata) if decoded else None
    if packing is not None and (packing.is_trivial or elements.bind().spec.dtype.kind not in "iuf"):
        packing = None
    question = _Counting(elements, _walk(elements), skip_fill, packing)
    seen = BlocksToVisit(question.laid, [elements])
    total = Fields()
    for each in workers.ask(question, seen, tick):
        total.add(each)
    size, spec = math.prod(metadata.shape), elements.bind().spec
    filled = question.moments(box_of(spec.fill_value, spec.dtype).reshape(1), question.fill())
    dtype = spec.dtype if packing is None else np.dtype(np.float64)
    total.add(filled.times(size - seen.elements))
    chunks = elements.chunks
    return ArrayStat(
        path=path,
        shape=metadata.shape,
        data_type=type_name(metadata),
        size=size,
        chunks=chunks.grid.nchunks,
        missing=_missing(chunks) if seen.stored is None else chunks.grid.nchunks - seen.stored,
        fields=tuple(_statistics(name, dtype, each, has_fill=question.has_fill) for name, each in total.of.items()),
    )


def _walk(elements: Elements) -> Walk:
    grid = chunks_of(elements)
    return walk(grid, [grid], elements.chunks.element_bytes(), elements.effort)


def _missing(chunks: Chunks) -> int | None:
    try:
        return chunks.grid.nchunks - sum(1 for _ in chunks.listed())
    except NOT_LISTED:
        return None


@dataclass(frozen=True)
class _Counting(Question[int, Fields]):
    """Read a block, and return what is to be known of its elements."""

    elements: Elements
    laid: Walk
    skip_fill: bool
    packing: Packing | None
    """What stored elements mean, if they are decoded."""

    @property
    def at_once(self) -> int:
        return self.laid.at_once

    @property
    def has_fill(self) -> bool:
        """Whether the fill value is defined, and elements are compared with it."""
        return self.packing is None and self.elements.metadata.fill_value is not UNDEFINED

    def fill(self) -> Any:
        """Return the fill value as an array without dimensions; None if elements are not compared with it."""
        spec = self.elements.bind().spec
        return box_of(spec.fill_value, spec.dtype) if self.has_fill else None

    def begin(self) -> Callable[[int], tuple[int, Fields]]:
        read, fill = self.elements.reader(self.at_once), self.fill()

        def look(number: int) -> tuple[int, Fields]:
            values = read(self.laid.regions.box(number))
            return values.nbytes, self.moments(values, fill)

        return look

    def moments(self, values: Any, fill: Any) -> Fields:
        """Return what is to be known of elements."""
        if self.packing is not None:
            values = self.packing.floats(values)
        if is_optional(values.dtype):
            return self._moments_of_present(values, fill)
        return of_elements(values, fill, skip_fill=self.skip_fill)

    def _moments_of_present(self, values: Any, fill: Any) -> Fields:
        """Return what is to be known of elements that may be missing: those that are count as NaN."""
        missing = absent(values)
        is_null = fill is not None and bool(absent(fill))
        number = int(np.count_nonzero(missing))
        found = of_elements(
            present(values)[~missing], None if fill is None or is_null else present(fill), skip_fill=self.skip_fill
        )
        for moments in found.of.values() if found.of else [found.of.setdefault((), Moments())]:
            moments.nan += number
            moments.fill += number if is_null else 0
        return found


# From moments to statistics


def _statistics(name: tuple[str, ...], dtype: np.dtype[Any], moments: Moments, *, has_fill: bool) -> Statistics:
    while is_optional(dtype):
        dtype = dtype[VALUE]
    for part in name:
        dtype = dtype[part]
    dtype = dtype.base
    mean, std = moments.mean(), moments.std()
    lowest, highest = moments.minimum, moments.maximum
    if dtype.kind in "mM":
        unit, count = np.datetime_data(dtype)
        lowest, highest, mean = (_time(value, dtype.kind, f"{count}{unit}") for value in (lowest, highest, mean))
        std = None if std is None else _time(Fraction(std), "m", f"{count}{unit}")
    elif dtype.kind == "b":
        lowest, highest = (None if value is None else bool(value) for value in (lowest, highest))
    elif dtype.kind == "f":
        lowest, highest = (None if value is None else dtype.type(value) for value in (lowest, highest))
    elif is_small(dtype) and "int" in dtype.name:
        lowest, highest = (None if value is None else int(value) for value in (lowest, highest))
    if isinstance(mean, Fraction):
        mean = _as_float(mean)
    fill = moments.fill if has_fill else None
    return Statistics(
        field=name, count=moments.count, minimum=lowest, maximum=highest, mean=mean, std=std, nan=moments.nan, fill=fill
    )


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _time(value: Any, kind: str, unit: str) -> Any:
    if value is None:
        return None
    most = int(np.iinfo(np.int64).max)  # to which a standard deviation can be rounded up
    return np.array([min(round(value), most)], np.int64).astype(f"{kind}8[{unit}]")[0]
