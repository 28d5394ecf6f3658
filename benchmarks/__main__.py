"""Measure everything: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import reports, running
from benchmarks.peers import PEERS
from benchmarks.workloads import BY_NAME, WORKLOADS, Workload


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    scale: int
    rounds: int
    budget: float


FULL = Size(scale=1, rounds=5, budget=1)
QUICK = Size(scale=16, rounds=3, budget=1)


def parse() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a sixteenth of the size, fewer rounds")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="workloads whose name contains one of these")
    parser.add_argument("--peers", nargs="+", metavar="NAME", choices=PEERS, help="these libraries only")
    parser.add_argument("--rounds", type=int, help="how many times each measures (5, or 3 if quick)")
    parser.add_argument(
        "--python", action="append", default=[], metavar="PATH",
        help="another interpreter to look in for libraries that this one does not have",
    )  # fmt: skip
    parser.add_argument(
        "--directory", type=Path, help="where to make files (up to 3 GB); default: a temporary directory"
    )
    parser.add_argument("--list", action="store_true", help="the names of workloads and libraries, and nothing else")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all figures")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="save the tables")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw")
    parser.add_argument(
        "--docs", action="store_true",
        help="save all figures in docs/benchmarks.json (with --only: put them in the place of saved ones), and write "
        "the pages of the manual that show them",
    )  # fmt: skip
    parser.add_argument("--load", type=Path, metavar="FILE", help="report on figures saved before instead of measuring")
    return parser.parse_args()


def chosen(names: list[str] | None) -> list[Workload]:
    """Return the workloads with these names, or with these in their names; no names: all."""

    def fits(workload: Workload, name: str) -> bool:
        return workload.name == name if name in BY_NAME else name in workload.name

    some = [one for one in WORKLOADS if names is None or any(fits(one, name) for name in names)]
    if not some:
        sys.exit(f"no workload is called {names}: --list says how they are called")
    return some


def measure(arguments: argparse.Namespace) -> running.Report:
    """Run what was asked for, and show each workload as it is done."""
    some = chosen(arguments.only)
    size = QUICK if arguments.quick else FULL

    def seen(report: running.Report, result: running.Result) -> None:
        reports.terminal(report, result)
        save(report, arguments)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that files are deleted and workers ended
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as folder:
        return running.run(
            some,
            Path(folder),
            scale=size.scale,
            rounds=arguments.rounds or size.rounds,
            budget=size.budget,
            pythons=[sys.executable, *arguments.python],
            peers=arguments.peers or PEERS,
            seen=seen,
        )


def save(report: running.Report, arguments: argparse.Namespace) -> None:
    """Save all figures there are so far, if that was asked for."""
    if arguments.json:
        arguments.json.write_text(json.dumps(reports.details(report), indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Measure, print, save."""
    arguments = parse()
    if arguments.list:
        scale = (QUICK if arguments.quick else FULL).scale
        print("\n".join(f"{one.name:<25}{one.group_at(scale)}: {one.title_at(scale)}" for one in WORKLOADS))
        print("\n" + "\n".join(f"{key:<25}{entry.label}" for key, entry in PEERS.items()))
        return
    if arguments.load:
        report = running.Report.from_json(json.loads(arguments.load.read_text(encoding="utf-8")))
        for result in report.results:
            reports.terminal(report, result)
    else:
        report = measure(arguments)
    print(reports.summary(report))
    for key, reason in report.absent.items():
        print(f"absent: {PEERS[key].label} ({reason})")
    save(report, arguments)
    if arguments.markdown:
        arguments.markdown.write_text(reports.markdown(report), encoding="utf-8")
    if arguments.plot:
        from benchmarks.plotting import plot

        plot(report, arguments.plot)
    if arguments.docs:
        from benchmarks import pages

        save_part = pages.save_again if arguments.only else pages.save
        save_part("local", reports.details(report))
        pages.main()


if __name__ == "__main__":
    main()
