"""Benchmarks whose figures each come from a process of its own: how they ask it, their options, and their tables.

Such a benchmark measures when it is called with ``--work REQUEST``, and prints what it found as JSON in its last line.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import reports, running


class Failed(Exception):  # noqa: N818
    """A process ended without an answer."""


def run(module: str, request: Any, patience: float, python: str = sys.executable, **variables: str) -> Any:
    """Return what a process of a benchmark answers. Raises Failed."""
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **variables}
    command = [python, "-m", module, "--work", json.dumps(request)]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, cwd=running.ROOT, timeout=patience, check=True, env=environment
        )
    except subprocess.TimeoutExpired:
        raise Failed("no answer in time") from None
    except subprocess.CalledProcessError as error:
        said = "".join(error.stderr.splitlines()[-1:])
        raise Failed(f"the process ended ({error.returncode}): {said}") from None
    return json.loads(done.stdout.splitlines()[-1])


def ask(module: str, request: Any, patience: float, python: str = sys.executable, **variables: str) -> dict[str, Any]:
    """Return what a process of a benchmark found; a ``reason`` if it found nothing."""
    try:
        found: dict[str, Any] = run(module, request, patience, python, **variables)
    except Failed as error:
        return {"reason": str(error)}
    return found


def processor_seconds() -> float:
    """Return the time of processors that this process and those that it started have used."""
    whose = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(sum(resource.getrusage(who)[:2]) for who in whose)


def version_of(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return str(getattr(import_module(package), "__version__", ""))


def parser(module: str, about: str | None, peers: Iterable[str], *, quick: str) -> argparse.ArgumentParser:
    """Return the options that these benchmarks share; each adds ``--python`` and its own."""
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    made.add_argument("--quick", action="store_true", help=quick)
    made.add_argument("--only", nargs="+", metavar="WORD", help="rows whose title contains one of these")
    made.add_argument("--peers", nargs="+", metavar="NAME", choices=peers, default=list(peers), help="these only")
    made.add_argument("--rounds", type=int, help="how many times each measures")
    made.add_argument("--directory", type=Path, help="where to make files (up to 2 GB)")
    made.add_argument("--json", type=Path, metavar="FILE", help="save all figures")
    made.add_argument("--docs", action="store_true", help="put the tables into docs/benchmarks-data.md")
    made.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    return made


def save(file: Path | None, figures: Mapping[str, Any]) -> None:
    """Write all figures, if there is a file for them."""
    if file is not None:
        file.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def publish(text: str, marks: tuple[str, str], introduction: str) -> None:
    """Put tables into the page of the manual: between its marks, or at its end behind an introduction."""
    content = reports.PAGE.read_text(encoding="utf-8")
    begin, end = marks
    if begin not in content:
        added = f"{content.rstrip()}\n\n{introduction}\n\n{begin}\n{end}\n"
        reports.PAGE.write_text(added, encoding="utf-8")
    reports.into_page(reports.PAGE, text, begin, end)
