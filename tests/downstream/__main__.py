"""Run the own tests of packages that use Zarr on omnizarr, and count: ``python -m tests.downstream [SUITE ...]``.

The tests are those of the releases that are installed, from their source distributions, which are fetched once into
``.downstream``. ``--list`` names the suites, ``--table FILE`` writes the counts into a page of the manual, and
``--failures`` prints the failures by their causes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

from tests.downstream.plugins.downstream_counting import matching
from tests.downstream.suite import Suite
from tests.downstream.suites import SUITES

ROOT = Path(__file__).parents[2]
FETCHED = ROOT / ".downstream"
PLUGINS = Path(__file__).parent / "plugins"  # on the path by itself: packages have a folder `tests` too
COLUMNS = ("passed", "failed", "skipped", "xfailed")


def sources(project: str) -> Path:
    """Return the folder of a package's source distribution, in the release that is installed."""
    release = version(project)
    folder = FETCHED / f"{project}-{release}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as temporary:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--no-binary={project}"]
            subprocess.run([*command, f"--dest={temporary}", f"{project}=={release}"], check=True)
            (archive,) = Path(temporary).iterdir()
            with tarfile.open(archive) as files:
                files.extractall(temporary, filter="data")
            archive.unlink()
            (unpacked,) = Path(temporary).iterdir()
            FETCHED.mkdir(exist_ok=True)
            unpacked.rename(folder)
    return folder


def run(suite: Suite, arguments: Iterable[str], workers: int) -> dict[str, dict[str, str]]:
    """Run the tests of a suite and return how each of them ended."""
    folder = sources(suite.project) if not suite.installed else Path(tempfile.mkdtemp())
    with tempfile.TemporaryDirectory() as temporary:
        outcomes = Path(temporary, "outcomes.json")
        path = [PLUGINS, ROOT / "src", ROOT / "packages" / "omnizarr-as-zarr" / "src"]
        path = [PLUGINS / "everywhere", *path] if suite.is_named else path
        environment = {
            **os.environ,
            **suite.environment,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "DOWNSTREAM_OUTCOMES": str(outcomes),
            "DOWNSTREAM_APART": json.dumps(dict(suite.apart)),
        }
        command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "downstream_counting"]
        command += ["-p", suite.plugin] if suite.plugin else []
        command += ["-n", str(workers)] if workers > 1 else []
        command += ["-p", "no:cacheprovider", *suite.options]
        command += ["--pyargs", *suite.tests] if suite.installed else suite.tests
        command += arguments
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        found: dict[str, dict[str, str]] = json.loads(outcomes.read_text(encoding="utf-8")) if outcomes.exists() else {}
        if not found:
            raise RuntimeError(f"{suite.name}: no test ran\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return found


def files(outcomes: Mapping[str, Mapping[str, str]]) -> str:
    """Return how many files of tests have no failure."""
    failed = {test.partition("::")[0]: False for test in outcomes}
    for test, each in outcomes.items():
        failed[test.partition("::")[0]] |= each["outcome"] == "failed"
    return f"{list(failed.values()).count(False)} of {len(failed)} files without a failure"


def table(counts: dict[str, Counter[str]], before: str) -> str:
    """Return the counts as a table of the manual; suites that did not run keep the row that they have in the page."""
    kept = {line.split("|")[1].strip(): line for line in before.splitlines() if line.startswith("| ")}
    lines = ["| suite | release | passed | failed | skipped by the package | expected to fail by the package |"]
    lines += ["|---|---|---|---|---|---|"]
    for suite in SUITES:
        if suite.name in counts:
            numbers = " | ".join(str(counts[suite.name][each]) for each in COLUMNS)
            lines.append(f"| {suite.name} | {suite.project} {version(suite.project)} | {numbers} |")
        elif suite.name in kept:
            lines.append(kept[suite.name])
    return "\n".join(lines) + "\n"


def with_counts(page: str, counts: dict[str, Counter[str]]) -> str:
    """Return a page with the table between the comments ``<!-- counts -->`` and ``<!-- end -->`` renewed."""
    part = re.compile("(<!-- counts -->\n)(.*?)(<!-- end -->)", re.DOTALL)
    return part.sub(lambda found: found[1] + table(counts, found[2]) + found[3], page)


def main() -> int:
    """Run the suites that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.downstream", description=__doc__)
    parser.add_argument("suites", nargs="*", help="parts of the names of the suites to run; all by default")
    parser.add_argument("--list", action="store_true", help="name the suites")
    parser.add_argument("--failures", action="store_true", help="print the failures by their causes, listed ones too")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", type=Path, help="page of the manual to write the counts into")
    parser.add_argument("--pytest", default=[], nargs=argparse.REMAINDER, help="all that follows goes to pytest")
    options = parser.parse_args()
    chosen = [each for each in SUITES if not options.suites or any(part in each.name for part in options.suites)]
    if options.list:
        print(*(each.name for each in chosen), sep="\n")
        return 0
    counts: dict[str, Counter[str]] = {}
    surprises = 0
    for suite in chosen:
        outcomes = run(suite, options.pytest, options.workers)
        counts[suite.name] = Counter(each["outcome"] for each in outcomes.values())
        numbers = ", ".join(f"{counts[suite.name][each]} {each}" for each in COLUMNS)
        print(f"{suite.name}: {numbers}; {files(outcomes)}", flush=True)
        failed = {test: each["message"] for test, each in outcomes.items() if each["outcome"] == "failed"}
        unknown = {test: message for test, message in failed.items() if not matching(test, suite.known)}
        idle = [pattern for pattern in suite.known if not any(matching(test, [pattern]) for test in failed)]
        if idle and not options.pytest:
            print("  listed, and nothing fails:", *idle, sep="\n      ", flush=True)
        surprises += len(unknown) if suite.plugin else 0  # without one, nothing here has a part in it
        for message, times in Counter((failed if options.failures else unknown).values()).most_common():
            example = next(test for test, each in failed.items() if each == message)
            print(f"  {times} x {example}\n      {message.splitlines()[0][:300] if message else ''}", flush=True)
    if options.table:
        page = options.table.read_text(encoding="utf-8")
        options.table.write_text(with_counts(page, counts), encoding="utf-8")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
