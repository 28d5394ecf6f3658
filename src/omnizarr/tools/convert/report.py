"""The report of a conversion, node by node, with its losses: as text, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, Final, Literal, TypeAlias

from omnizarr.errors import NotRepresentableError
from omnizarr.formats import conventions
from omnizarr.nodes import wording
from omnizarr.nodes.location import StorePath
from omnizarr.support.text import visible
from omnizarr.tools import strangers
from omnizarr.tools.convert.routes import Pass
from omnizarr.tools.translate.translation import Loss

How: TypeAlias = Literal["copied", "recompressed", "encoded", "documents", "done before", "left out"]
Verified: TypeAlias = Literal["values", "bytes", ""]

_HOW: Final = {
    "copied": "chunks copied unchanged",
    "recompressed": "chunks compressed again",
    "encoded": "chunks encoded again",
    "documents": "documents only",
    "done before": "done before",
    "left out": "left out",
}
_KEPT: Final[Mapping[How, str]] = {
    "copied": "; their bytes are copied unchanged",
    "recompressed": "; their bytes are copied unchanged",
    "encoded": "; the target holds the fill value in their place",
}
"""What happens to chunks that cannot be read."""
_SHOWN: Final = 5
"""Chunks that cannot be read, by name, on one line."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What converting one or more arrays would take.

    Attributes
    ----------
    objects : int
        Number of chunks (shards) that would be written.
    nbytes : int
        Approximate stored size of the chunks.
    temporary : int
        Maximum bytes of temporary objects.
    seconds : tuple of float, or None
        Minimum and maximum time, including verification; None if nothing could be sampled.
    """

    objects: int = 0
    nbytes: int = 0
    temporary: int = 0
    seconds: tuple[float, float] | None = (0.0, 0.0)

    def plus(self, other: Estimate) -> Estimate:
        """Return the sum of both, one after the other. Temporary objects of the first are removed before the second."""
        seconds = None
        if self.seconds is not None and other.seconds is not None:
            seconds = self.seconds[0] + other.seconds[0], self.seconds[1] + other.seconds[1]
        nbytes, temporary = self.nbytes + other.nbytes, max(self.temporary, other.temporary)
        return Estimate(self.objects + other.objects, nbytes, temporary, seconds)

    def __str__(self) -> str:
        parts = [f"about {wording.plural(self.objects, 'object')}", wording.size(self.nbytes)]
        if self.temporary:
            parts.append(f"{wording.size(self.temporary)} of temporary objects")
        parts.append("time unknown" if self.seconds is None else _between(*self.seconds))
        return ", ".join(parts)


def _between(least: float, most: float) -> str:
    low, high = wording.duration(least), wording.duration(most)
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class NodeReport:
    """The result for one node.

    Attributes
    ----------
    path : str
        Path below the root of the conversion, without a leading slash.
    node_type : {"array", "group", ""}
        Empty if unknown.
    how : {"copied", "recompressed", "encoded", "documents", "done before", "left out"}
        "copied": chunks were copied unchanged. "recompressed": they were compressed with another codec.
        "encoded": they were decoded and encoded again. "documents": the node has no chunks, or they stay in
        place. "done before": the node was complete when the conversion was resumed. "left out": it has no
        document in the target.
    chunks, nbytes : int
        Number of chunks that were written, and their stored size; 0 in a dry run.
    losses : tuple of Loss
        What could not be kept.
    remarks : tuple of str
        What is expressed differently in the target.
    conventions : mapping of str to (tuple of str)
        The conventions of the node (``"xarray"``), and what was converted of each.
    verified : {"values", "bytes", ""}
        What was read again and compared; empty if some chunks of the source cannot be read.
    unreadable : mapping of str to str
        Keys of stored chunks of the source that cannot be read, with the reason. The target has unchanged
        copies of them, or, if chunks are encoded again, the fill value instead.
    stored : int
        Number of stored chunks of the source; 0 if `unreadable` is empty, because they are not counted then.
    passes : tuple of Pass
        If chunks are encoded again: the passes that move the elements, without verification.
    estimate : Estimate or None
        What moving and comparing the chunks of an array would take, if an estimate was requested.
    """

    path: str
    node_type: Literal["array", "group", ""]
    how: How
    chunks: int = 0
    nbytes: int = 0
    losses: tuple[Loss, ...] = ()
    remarks: tuple[str, ...] = ()
    conventions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    verified: Verified = ""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    stored: int = 0
    passes: tuple[Pass, ...] = ()
    estimate: Estimate | None = None

    def __str__(self) -> str:
        """Return a line for the node, and a line for each thing worth knowing."""
        kind = f"{self.node_type}: " if self.node_type else ""
        lines = [f"{visible(f'/{self.path}')}  {kind}{_HOW[self.how]}"]
        lines += [f"    {remark}" for remark in self.remarks]
        lines += [f"    lost: {_in_words(loss)}" for loss in self.losses]
        if self.unreadable:
            lines.append(f"    {self.unreadable_in_words('')}{_KEPT.get(self.how, '')}")
        return "\n".join(lines)

    @property
    def as_others(self) -> object:
        """What is worth knowing if it can be the same for many nodes; None if there is nothing, or something else."""
        if not self.remarks or self.losses or self.unreadable or self.how == "left out":
            return None
        return self.node_type, self.how, self.remarks

    def unreadable_in_words(self, whose: str) -> str:
        """Return a sentence with the number of unreadable chunks, the first ones, and the reason."""
        shown = [f"{key} ({why})" if why else key for key, why in sorted(self.unreadable.items())[:_SHOWN]]
        more = len(self.unreadable) - len(shown)
        names = "; ".join([*shown, f"and {more} more"] if more else shown)
        return f"{len(self.unreadable)} of {wording.plural(self.stored, 'chunk')}{whose} cannot be read: {names}"


def _in_words(loss: Loss) -> str:
    kept = f"; {loss.kept} stands there instead" if loss.kept else ""
    return f"{loss.what}: {loss.why}{kept}"


def _passes_in_words(passes: Sequence[Pass]) -> Iterator[str]:
    """Yield a line for each pass, and one for the size of temporary objects."""
    for number, each in enumerate(passes, 1):
        name = "one pass" if len(passes) == 1 else f"pass {number} of {len(passes)}"
        where, what = ("the source", "chunk") if each.reads == "source" else ("temporary objects", "part")
        times = f", each {each.times_read:.1f} times on average" if each.times_read > 1 else ""
        read = f"reads {wording.size(each.bytes_read)} from {where} ({wording.plural(each.requests_read, what)}{times})"
        written = wording.plural(each.requests_written, "chunk" if each.writes == "target" else "temporary object")
        yield f"{name}: {read}, writes {written}, with {wording.size(each.memory)} in memory"
    kept = sum(each.bytes_written for each in passes if each.writes == "temporary")
    if kept:
        yield f"temporary objects take {wording.size(kept)} until the array is complete"


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of a conversion.

    Attributes
    ----------
    source, target : str
        Source and target; the same if the conversion was in place.
    source_format, target_format : str
        Names of the formats: ``"v2"``, ``"TIFF"``.
    nodes : tuple of NodeReport
        The results for all nodes. A group comes before its members.
    dry_run, in_place : bool
    verify : bool
        Whether the target was read again.
    removed : tuple of str
        For a conversion in place, keys of documents that were (in a dry run: would be) removed.
    seconds : float
    files : tuple of str
        Keys, below the topmost node, of files that are not Zarr and were (in a dry run: would be) copied unchanged.
    commit : str
        Branch and snapshot of the commit, if the target is a repository of Icechunk.
    """

    source: str
    target: str
    source_format: str
    target_format: str
    nodes: tuple[NodeReport, ...]
    dry_run: bool = False
    in_place: bool = False
    verify: bool = True
    removed: tuple[str, ...] = ()
    seconds: float = 0.0
    files: tuple[str, ...] = ()
    commit: str = ""

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes of all nodes that move elements."""
        return tuple(each for node in self.nodes for each in node.passes)

    @property
    def estimate(self) -> Estimate | None:
        """What all arrays together would take; None without an estimate."""
        found = [node.estimate for node in self.nodes if node.estimate is not None]
        return reduce(Estimate.plus, found) if found else None

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What could not be kept, of all nodes."""
        return tuple(loss for node in self.nodes for loss in node.losses)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Keys of the stored chunks of the source that cannot be read, of all arrays; `nodes` contain the reasons."""
        return tuple(key for node in self.nodes for key in sorted(node.unreadable))

    @property
    def is_lossless(self) -> bool:
        """Whether nothing was lost, and all chunks of the source could be read."""
        return not self.losses and not self.unreadable

    @property
    def verified(self) -> bool:
        """Whether all arrays in the target were read again and found to be equal."""
        arrays = [node for node in self.nodes if node.node_type == "array" and node.how != "left out"]
        return self.verify and not self.dry_run and all(node.verified or self.in_place for node in arrays)

    @property
    def nbytes(self) -> int:
        """Stored size of the chunks that were written."""
        return sum(node.nbytes for node in self.nodes)

    def chunks(self, how: How | None = None) -> int:
        """Return the number of chunks that were written (`how`: "copied", "recompressed", "encoded")."""
        return sum(node.chunks for node in self.nodes if how in (None, node.how))

    def __str__(self) -> str:
        """Return the report: a line for each remarkable node, a summary, and what was lost."""
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        before, after = wording.format_name(self.source_format), wording.format_name(self.target_format)
        if self.in_place:
            place = f"{self.source}, in place"
        else:
            place = f"{self.source} -> {self.target}" if self.target else self.source
        yield f"{place}: {before} -> {after}"
        alike = Counter(node.as_others for node in self.nodes)
        told: set[object] = set()
        for node in self.nodes:
            shows = self.dry_run and (node.passes or node.estimate)
            same = None if shows else node.as_others
            if same is not None and alike[same] > _SHOWN:
                if same not in told:
                    told.add(same)
                    yield str(node)
                    yield f"    the same for {alike[same] - 1:,} other nodes"
                continue
            if node.losses or node.remarks or node.unreadable or node.how == "left out" or shows:
                yield str(node)
            if shows:
                yield from (f"    {line}" for line in _passes_in_words(node.passes))
                yield from [] if node.estimate is None else [f"    {node.estimate}"]
        yield from self._conventions()
        if self.files:
            yield f"{strangers.counted(self.files)} {'would be ' if self.dry_run else ''}copied unchanged"
        yield self.summary()
        if self.commit:
            yield f"committed to {self.commit}"
        if self.estimate is not None:
            yield f"estimate: {self.estimate}"
        yield from self._broken()
        if self.losses or not self.unreadable:
            yield self._lost()

    def _conventions(self) -> Iterator[str]:
        """Yield a line with the conventions that were converted, and the number of nodes."""
        is_other = self.source_format != self.target_format
        told = [(name, node) for node in self.nodes for name, said in node.conventions.items() if said or is_other]
        kinds = Counter((name, node.node_type) for name, node in told)
        if kinds:
            counts: dict[str, list[str]] = {}
            for (name, node_type), count in kinds.items():
                counts.setdefault(name, []).append(wording.plural(count, node_type or "node"))
            carried = [f"{conventions.title_of(name)} ({', '.join(each)})" for name, each in counts.items()]
            yield f"conventions carried: {', '.join(carried)}"

    def summary(self) -> str:
        """Return a summary on one line."""
        groups = sum(node.node_type == "group" for node in self.nodes)
        arrays = sum(node.node_type == "array" for node in self.nodes)
        parts = [f"{wording.plural(groups, 'group')}, {wording.plural(arrays, 'array')}"]
        if self.dry_run:
            parts.append("nothing was written (dry run)")
        elif self.in_place:
            parts.append("chunks stay where they are")
        else:
            parts += [f"{wording.plural(self.chunks(how), 'chunk')} {_DONE[how]}" for how in _DONE if self.chunks(how)]
            parts.append(f"{wording.size(self.nbytes)} in {self.seconds:.1f} s")
            if self.verify:
                parts.append("verified" if self.verified else "not all verified")
        if self.removed:
            word = "to be removed" if self.dry_run else "removed"
            parts.append(f"{wording.plural(len(self.removed), 'document')} {word}")
        return " · ".join(parts)

    def _broken(self) -> Iterator[str]:
        """Return a sentence with the number of source chunks that cannot be read."""
        broken = [node for node in self.nodes if node.unreadable]
        if broken:
            stored = wording.plural(sum(node.stored for node in broken), "chunk")
            whose = f"{self.source}/{broken[0].path}".rstrip("/") if len(broken) == 1 else f"{len(broken)} arrays"
            yield f"{len(self.unreadable)} of {stored} of {whose} cannot be read"

    def _lost(self) -> str:
        if not self.losses:
            return "nothing would be lost" if self.dry_run else "nothing was lost"
        things = wording.plural(len(self.losses), "thing")
        return f"{things} would be lost" if self.dry_run else f"{things} could not be carried"

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "source": self.source,
            "target": self.target,
            "source_format": self.source_format,
            "target_format": self.target_format,
            **({"commit": self.commit} if self.commit else {}),
            "dry_run": self.dry_run,
            "in_place": self.in_place,
            "verified": self.verified,
            "lossless": self.is_lossless,
            "chunks_copied": self.chunks("copied"),
            "chunks_recompressed": self.chunks("recompressed"),
            "chunks_encoded": self.chunks("encoded"),
            "chunks_unreadable": len(self.unreadable),
            "bytes_stored": self.nbytes,
            "seconds": round(self.seconds, 3),
            "estimate": None if self.estimate is None else asdict(self.estimate),
            "removed": list(self.removed),
            "files": list(self.files),
            "nodes": [asdict(node) for node in self.nodes],
        }


_DONE: Final[dict[How, str]] = {
    "copied": "copied unchanged",
    "recompressed": "compressed again",
    "encoded": "encoded again",
}


def would_be_lost(source: StorePath, losses: Sequence[Loss], remedy: str) -> NotRepresentableError:
    """Return the error that lists losses, if nothing may be lost."""
    shown = [f"/{loss.path}: {loss.what} ({loss.why})" for loss in losses[:_SHOWN]]
    more = f"; and {len(losses) - _SHOWN} more" if len(losses) > _SHOWN else ""
    text = f"something would be lost: {'; '.join(shown)}{more}"
    return NotRepresentableError(text, store=str(source.store), path=source.path, remedy=remedy)
