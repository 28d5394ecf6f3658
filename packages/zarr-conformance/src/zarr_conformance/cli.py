"""The command ``zarr-conformance``."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import zarr_conformance
from zarr_conformance import reports
from zarr_conformance.case import Case, Values, Written, chosen
from zarr_conformance.cases import LEVELS, OPTIONAL, RECORDED, all_cases, recorded, usual
from zarr_conformance.process import Implementation, Limits
from zarr_conformance.randomly import drawn
from zarr_conformance.running import Result, Run, differing, failures, run

ADAPTERS = Path(__file__).with_name("adapters")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0, 1 if something failed, 2 for a wrong command line."""
    options = parser().parse_args(arguments)
    status: int = options.do(options)
    return status


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog="zarr-conformance", description=zarr_conformance.__doc__)
    top.add_argument("--version", action="version", version=f"zarr-conformance {zarr_conformance.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, do: object, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(do=do)
        return made

    def choice(made: argparse.ArgumentParser) -> None:
        made.add_argument(
            "--levels", default="", help="levels, separated by commas; `v3` is all that begin with v3-; `all` is all"
        )
        made.add_argument(
            "-k", dest="words", action="append", default=[], metavar="WORD", help="only cases whose id has this word"
        )

    def testing(made: argparse.ArgumentParser) -> None:
        made.add_argument("--impl", required=True, help="the command of the implementation, or the name of an adapter")
        made.add_argument("--python", help="the Python that runs an adapter; this one by default")
        made.add_argument(
            "--no-batch", action="store_true", help="start a process for each case, even if --batch is understood"
        )
        made.add_argument("--timeout", type=float, default=20.0, metavar="SECONDS", help="for one case")
        made.add_argument("--memory", type=int, default=3072, metavar="MIB", help="for the implementation's process")
        made.add_argument(
            "--json", dest="json_file", type=Path, metavar="FILE", help="write the results, for `compare` and `report`"
        )
        made.add_argument("--keep", type=Path, metavar="DIR", help="keep the stores here")
        made.add_argument(
            "--allow", type=Path, metavar="FILE", help="ids of cases that may fail, one in a line; # begins a remark"
        )
        made.add_argument("-q", "--quiet", action="store_true", help="print only the summary")
        writing(made)

    def writing(made: argparse.ArgumentParser) -> None:
        for name in reports.FORMATS:
            made.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"write a report ({name})")

    made = command("run", do_run, "run cases against an implementation")
    choice(made)
    testing(made)
    made = command("random", do_random, "run random cases against an implementation")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--count", type=int, default=200)
    made.add_argument(
        "--level", choices=("v2", "v3", "sharding"), action="append", help="what is drawn; all by default"
    )
    testing(made)
    made = command("compare", do_compare, "show the cases of which two runs made different things")
    made.add_argument("runs", nargs=2, type=Path, metavar="RUN.json")
    made = command("report", do_report, "make one report of several runs")
    made.add_argument("runs", nargs="+", type=Path, metavar="RUN.json")
    writing(made)
    made = command("list", do_list, "list levels, or the cases of some")
    choice(made)
    made = command("show", do_show, "show all about a case")
    made.add_argument("case")
    made = command("write", do_write, "write cases into a directory: stores, expected values, descriptions")
    made.add_argument("directory", type=Path)
    choice(made)
    command("adapters", do_adapters, "list the adapters that come with this package")
    return top


def cases_of(options: argparse.Namespace) -> list[Case]:
    """Return the cases that the command line asks for, or end with an error if there are none."""
    levels = [each for each in options.levels.split(",") if each]
    known = {**LEVELS, **RECORDED}
    unknown = [
        each for each in levels if each != "all" and not any(f"{level}-".startswith(f"{each}-") for level in known)
    ]
    if unknown:
        raise SystemExit(f"zarr-conformance: no such level: {', '.join(unknown)}. Levels are: {', '.join(known)}")
    of: list[Case] = list(all_cases() if levels else usual())
    wanted = [case.level for case in of] if "all" in levels else levels
    if any(each.partition("-")[0] == "corpus" for each in levels):
        of += recorded.cases()
        wanted = [*wanted, *(each for each in levels if each.partition("-")[0] == "corpus")]
    found = chosen(of, wanted, options.words)
    if not found:
        raise SystemExit("zarr-conformance: no case has such an id")
    return found


def command_of(options: argparse.Namespace) -> list[str]:
    """Return the command of the implementation: as it is given, or that of an adapter."""
    name = options.impl.replace("-", "_")
    for path in (ADAPTERS / f"{name}.py", ADAPTERS / f"{name}_.py"):  # a module called omnizarr would hide the library
        if path.is_file():
            return [options.python or sys.executable, str(path)]
    script = ADAPTERS / f"{options.impl}.mjs"
    return ["node", str(script)] if script.is_file() else shlex.split(options.impl)


def do_run(options: argparse.Namespace) -> int:
    return tested(options, cases_of(options))


def do_random(options: argparse.Namespace) -> int:
    return tested(options, drawn(options.seed, options.count, options.level or ("v2", "v3", "sharding")))


def tested(options: argparse.Namespace, cases: Sequence[Case]) -> int:
    limits = Limits(options.timeout, options.memory << 20)
    implementation = Implementation(command_of(options), limits, batch=False if options.no_batch else None)

    def tick(result: Result) -> None:
        if result.outcome != "pass" and not options.quiet:
            print(f"{result.outcome:12}{result.id}: {' '.join(result.detail.split())[:200]}", flush=True)

    done = run(cases, implementation, tick=tick, keep=options.keep)
    if options.json_file:
        options.json_file.write_text(json.dumps(done.as_json(), indent=1, ensure_ascii=False), "utf-8")
    report(options, [done])
    print(f"{reports.titled(done)}: {reports.summary(done)}")
    return 1 if not_allowed(options, done) else 0


def not_allowed(options: argparse.Namespace, done: Run) -> bool:
    """Return whether a case failed that may not, or passed though it is listed as one that may fail."""
    lines = options.allow.read_text("utf-8").splitlines() if options.allow else []
    allowed = {name for line in lines if (name := line.partition("#")[0].strip())}
    failed = {each.id for each in failures(done.results)}
    stale = sorted(allowed & {each.id for each in done.results} - failed)
    for name in stale:
        print(f"{name} may fail, says {options.allow}, but it passes: take it out")
    if lines and (new := sorted(failed - allowed)):
        print(f"not listed in {options.allow}: {', '.join(new)}")
    return bool(failed - allowed or stale)


def report(options: argparse.Namespace, runs: Sequence[Run]) -> None:
    for name, make in reports.FORMATS.items():
        path: Path | None = getattr(options, name)
        if path is not None:
            path.write_text(make(runs), "utf-8")


def do_report(options: argparse.Namespace) -> int:
    runs = [Run.read(path) for path in options.runs]
    report(options, runs)
    if not any(getattr(options, name) for name in reports.FORMATS):
        print(reports.markdown(runs), end="")
    return 0


def do_compare(options: argparse.Namespace) -> int:
    one, other = (Run.read(path) for path in options.runs)
    pairs = differing(one, other)
    for left, right in pairs:
        case = left or right
        assert case is not None
        words = [each.outcome if each else "not run" for each in (left, right)]
        print(f"{case.id}: {words[0]} -> {words[1]}")
    print(f"{len(pairs)} differ between {reports.titled(one)} and {reports.titled(other)}")
    return 1 if pairs else 0


def do_list(options: argparse.Namespace) -> int:
    if not options.levels and not options.words:
        counts = Counter(case.level for case in all_cases())
        for level, text in LEVELS.items():
            print(f"{level:22}{counts[level]:5}  {text}{' (optional)' if level in OPTIONAL else ''}")
        print(f"{'':22}{sum(counts.values()):5}")
        counts = Counter(case.level for case in recorded.cases())
        for level, text in RECORDED.items():
            print(f"{level:22}{counts[level]:5}  written by {text} (optional)")
        return 0
    for case in cases_of(options):
        print(f"{case.id:50} {case.title}")
    return 0


def do_show(options: argparse.Namespace) -> int:
    every = [*all_cases(), *recorded.cases()]
    found = [case for case in every if case.id == options.case]
    if not found:
        near = [case.id for case in every if options.case in case.id][:5]
        raise SystemExit(
            f"zarr-conformance: no case {options.case!r}" + (f"; do you mean {', '.join(near)}?" if near else "")
        )
    (case,) = found
    print(json.dumps(case.description(), indent=2, ensure_ascii=False))
    for key, value in sorted(case.files.items()):
        print(f"\n{key}: {len(value)} bytes")
        shown = value[:2000].decode(errors="replace") if key.rpartition("/")[2] in DOCUMENTS else value[:64].hex(" ", 4)
        print(textwrap.indent(shown, "  "))
    if isinstance(case.expects, Values | Written) and case.expects.raw is not None:
        print(f"\nexpected: {case.expects.raw[:64].hex(' ', 4)}")
    return 0


DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}


def do_write(options: argparse.Namespace) -> int:
    found = cases_of(options)
    for case in found:
        place = options.directory / case.level / case.name
        case.put(place)
        (place / "description.json").write_text(json.dumps(case.description(), indent=1, ensure_ascii=False), "utf-8")
        if isinstance(case.expects, Values | Written) and case.expects.raw is not None:
            (place / "expected.bin").write_bytes(case.expects.raw)
    print(f"{len(found)} cases in {options.directory}")
    return 0


def do_adapters(options: argparse.Namespace) -> int:
    for path in sorted(ADAPTERS.iterdir()):
        if path.suffix in {".py", ".mjs", ".java"} and path.stem not in {"contract", "__init__"}:
            print(f"{path.stem.strip('_').replace('_', '-'):16}{path}")
    return 0
