"""The figures that pages of the manual quote in their sentences, each with how it follows from one run.

A new one is one entry of `QUOTED`. `benchmarks.pages` puts them into the pages, and a test finds figures without one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks import reports, running
from benchmarks.running import Report, Result
from benchmarks.targets import fastest_peer

SMALL = ("read-small-raw", "read-small-zstd")
SHARDS = ("read-shards-zstd", "windows", "plane", "read-shards-raw")
AHEAD = 1.05  # by so many times must another library be faster to be named: less is noise


class Missing(Exception):  # noqa: N818  (a fact, not an error)
    """A run lacks what a page quotes; the message says what."""


def row(report: Report, name: str) -> Result:
    """Return the result of a workload."""
    found = next((one for one in report.results if one.workload.name == name), None)
    if found is None:
        raise Missing(f"the run has no row {name}")
    return found


def median(report: Report, name: str, key: str = "") -> float:
    """Return the median of a peer, or of omnizarr."""
    found = row(report, name).median(key or report.ours)
    if found is None:
        raise Missing(f"the run has no figure of {key or report.ours} in {name}")
    return found


def amount(report: Report, name: str, key: str = "") -> str:
    """Return the same as the tables write it."""
    return reports.amount(median(report, name, key), row(report, name).workload.unit)


def per_chunk(report: Report, name: str) -> str:
    """Return how long omnizarr takes for each chunk."""
    return reports.amount(float(f"{median(report, name) / row(report, name).dataset.nchunks:.2g}"), "s")


def span(ratios: Iterable[float]) -> tuple[str, str]:
    """Return the least and the largest, to two figures."""
    found = sorted(ratios)
    return f"{found[0]:.2g}", f"{found[-1]:.2g}"


def to_peer(report: Report, names: Sequence[str], key: str) -> tuple[str, str]:
    """Return how many times as long a peer takes as omnizarr does: the least and the most."""
    return span(median(report, name, key) / median(report, name) for name in names)


def to_fastest(report: Report, names: Sequence[str]) -> tuple[str, str]:
    """Return omnizarr's time divided by that of the fastest other library: the least and the most."""
    fastest = {name: fastest_peer(row(report, name)) for name in names}
    if None in fastest.values():
        raise Missing("the run has no other libraries")
    return span(median(report, name) / best[1] for name, best in fastest.items() if best is not None)


def to_floor(report: Report) -> tuple[str, str]:
    """Return omnizarr's time divided by that of the floor for large chunks: the least and the most."""
    names = [one.workload.name for one in report.results if one.workload.name.split("-")[1:2] in (["large"], ["v2"])]
    return span(median(report, name) / median(report, name, "floor") for name in names)


def behind(report: Report) -> str:
    """Return a list of the rows in which another library is clearly faster."""
    lines = []
    for result in report.results:
        ours, best = result.median(report.ours), fastest_peer(result)
        if ours is not None and best is not None and ours > best[1] * AHEAD:
            unit = result.workload.unit
            name = reports.label(best[0])
            told = f"{result.title}: {reports.amount(ours, unit)}, {name} {reports.amount(best[1], unit)}"
            lines.append(f"- {told[0].upper()}{told[1:]}")
    return "\n".join(lines) + "\n" if lines else "In no row of the last run.\n"


@dataclass(frozen=True)
class Quoted:
    """What a page says, with `{}` for each figure, and the figures as they follow from a run."""

    page: str
    text: str
    figures: Callable[[Report], Sequence[str]]

    @property
    def pattern(self) -> re.Pattern[str]:
        """What finds it, however its lines are broken."""
        parts = (r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in self.text.split("{}"))
        parts = (part.replace(r"\.", r"\.(?!\d)") for part in parts)  # of a sentence, not of a figure
        return re.compile("([^|<>]+?)".join(parts))

    def put(self, page: str, report: Report) -> str:
        """Return the page with these figures; those that it already has are unchanged."""
        found = self.pattern.findall(page)
        assert len(found) == 1, f"{self.page} says {len(found)} times: {self.text}"
        match = self.pattern.search(page)
        assert match is not None
        figures = self.figures(report)
        for number, figure in reversed(list(enumerate(figures, 1))):
            if match[number].split() != figure.split():
                page = page[: match.start(number)] + figure + page[match.end(number) :]
        return page


def _nodes(report: Report) -> str:
    return f"{row(report, 'open-nodes').dataset.shape[0]:,}"


def _chunks(report: Report) -> str:
    return f"{row(report, 'read-small-zstd').dataset.nchunks:,}"


_SPEED = "docs/explanation/speed.md"
_NATIVE = "docs/native.md"
QUOTED = [
    Quoted(
        _SPEED, "A chunk of 16 KiB takes about {} this way.", lambda report: [per_chunk(report, "read-small-zstd")]
    ),
    Quoted(
        _SPEED,
        "zarr-python, which handles each chunk in Python, takes {} to {} times as long to read {} of such chunks, and "
        "{} to {} times with its fused pipeline.",
        lambda report: [
            *to_peer(report, SMALL, "zarr-python"), _chunks(report), *to_peer(report, SMALL, "zarr-python-fused"),
        ],
    ),
    Quoted(
        _SPEED, "Opening {} arrays takes {}.", lambda report: [_nodes(report), amount(report, "open-nodes")]
    ),
    Quoted(
        _SPEED, "`import omnizarr` takes {} on top of NumPy", lambda report: [amount(report, "import")]
    ),
    Quoted(_SPEED, "another library was more than {} % faster", lambda _: [f"{(AHEAD - 1) * 100:.0f}"]),
    Quoted(
        "docs/benchmarks.md", "what takes more than {} seconds is measured once", lambda _: [f"{running.LONG:g}"]
    ),
    Quoted(
        "README.md",
        "zarr-python {} is shown with the faster of its two pipelines.",
        lambda report: [report.versions["zarr-python"]],
    ),
    Quoted(
        _NATIVE,
        "whole arrays in large chunks take {} to {} times what reading, copying and the compressor alone take; a chunk "
        "of 16 KiB takes {}, and a sharded volume (whole, windows, planes) {} to {} times the time of the fastest "
        "other library.",
        lambda report: [*to_floor(report), per_chunk(report, "read-small-zstd"), *to_fastest(report, SHARDS)],
    ),
    Quoted(
        "docs/howto/slow-reads.md",
        "For small chunks the native engine is {} to {} times faster.",
        lambda report: to_peer(report, SMALL, "omnizarr-reference"),
    ),
]  # fmt: skip
"""What pages quote."""
