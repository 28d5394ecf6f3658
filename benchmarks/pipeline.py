"""The codec pipelines of zarr-python beside each other: its own, its fused one, that of zarrs, and that of omnizarr.

Usage: ``python -m benchmarks.pipeline [--quick] [--only NAME ...] [--docs]``. The workloads are those of
``python -m benchmarks`` that read or write chunks.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import reports, running
from benchmarks.__main__ import FULL, MANUAL, QUICK, chosen
from benchmarks.peers import PEERS
from benchmarks.running import Report, Result
from benchmarks.workloads import Workload

BEGIN, END = "<!-- pipelines: begin -->", "<!-- pipelines: end -->"
OURS = "zarr-python-omnizarr"
OTHERS = ("zarr-python", "zarr-python-fused", "zarrs-python")


def workloads(names: list[str] | None) -> list[Workload]:
    """Return the workloads that move chunks, without caches of decoded ones, which zarr-python does not have."""
    return [one for one in chosen(names) if one.verb in PEERS[OURS].verbs and not one.cache]


def ratio(result: Result) -> float | None:
    """Return how long this pipeline takes, divided by the fastest of the others; None if one of both is missing.

    Each time is the median of the rounds.
    """
    ours = result.values.get(OURS)
    others = [statistics.median(result.values[key]) for key in OTHERS if result.values.get(key)]
    return statistics.median(ours) / min(others) if ours and others else None


def table(report: Report) -> list[str]:
    """Return one row per workload: medians, and the ratio to the fastest other pipeline."""
    keys = [key for key in (*OTHERS, OURS) if key in report.versions]
    lines = ["| | " + " | ".join(PEERS[key].label for key in keys) + " | to the fastest other |"]
    lines += ["|---|" + "--:|" * (len(keys) + 1)]
    for group, found in itertools.groupby(report.results, key=lambda result: result.workload.group):
        lines.append(f"| *{group.partition(':')[0]}* |" + " |" * (len(keys) + 1))
        lines += [_row(result, keys) for result in found]
    return lines


def _row(result: Result, keys: list[str]) -> str:
    medians = [result.median(key) for key in keys]
    cells = ["" if median is None else reports.amount(median, result.workload.unit) for median in medians]
    found = ratio(result)
    return f"| {result.workload.title} | " + " | ".join([*cells, "" if found is None else f"{found:.2f} ×"]) + " |"


def markdown(report: Report) -> str:
    """Return where it was measured, who took part, in how many rows this pipeline is ahead, and the table."""
    about = report.about
    ratios = [found for result in report.results if (found := ratio(result)) is not None]
    return "\n".join([
        f"Measured {about['date']} with {about['rounds']} rounds on {about['processor']}, {about['file system']}, "
        f"CPython {about['python']}, load {about['load']} before it began, at {about['scale']} of the size; with "
        + ", ".join(f"{PEERS[key].label} {version}" for key, version in report.versions.items())
        + f". Ahead of all others in {sum(found < 1 for found in ratios)} of {len(ratios)} rows.",
        "",
        *table(report),
        "",
    ])  # fmt: skip


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a sixteenth of the size, fewer rounds")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="workloads whose name contains one of these")
    parser.add_argument("--rounds", type=int, help="how many times each measures")
    parser.add_argument("--directory", type=Path, help="where to make files; default: a temporary directory")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as folder:
        report = running.run(
            workloads(options.only), Path(folder), scale=size.scale, rounds=options.rounds or size.rounds,
            budget=size.budget, pythons=[sys.executable], peers=(*OTHERS, OURS), seen=reports.terminal,
        )  # fmt: skip
    print(markdown(report))
    if options.docs:
        reports.into_page(MANUAL / "benchmarks.md", markdown(report), BEGIN, END)


if __name__ == "__main__":
    main()
