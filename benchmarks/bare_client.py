"""The baseline of `benchmarks.latency`: a program in Rust that fetches the same files with hyper, and decodes nothing.

It is the crate in ``benchmarks/bare``, which is built at first use. Without cargo there is no baseline, and none in a
source distribution, which does not have the crate.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.peers.contract import Unsupported

NAME: Final = "bare-hyper"
LABEL: Final = "bare hyper"
CRATE: Final = Path(__file__).parent / "bare"


@cache
def program() -> Path:
    """Return the program, built. Raises Unsupported if there is none."""
    cargo = shutil.which("cargo")
    if cargo is None or not CRATE.is_dir():
        raise Unsupported("cargo is missing" if cargo is None else f"{CRATE} is missing")
    build = [cargo, "build", "--release", "--locked", "--quiet", "--manifest-path", str(CRATE / "Cargo.toml")]
    done = subprocess.run([*build, "--target-dir", str(CRATE / "target")], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise Unsupported(f"cargo build: {done.stderr.strip()[-200:]}")
    return CRATE / "target" / "release" / "bare"


def version() -> str:
    """Return the version of hyper that is built."""
    lines = (CRATE / "Cargo.lock").read_text(encoding="utf-8").splitlines()
    return lines[lines.index('name = "hyper"') + 1].split('"')[1]


def fetch(url: str, paths: Sequence[str], size: int, requests: int, runs: int, patience: float) -> dict[str, Any]:
    """Return seconds of each run in which files, together `size` bytes, were fetched, and seconds of the processor.

    `paths` are below `url`; `requests` are sent at once.
    """
    place = urlsplit(url)
    lines = "".join(f"{place.path.rstrip('/')}/{path}\n" for path in paths)
    try:
        done = subprocess.run(  # noqa: S603
            [program(), place.netloc, str(requests), str(runs)],
            input=lines, capture_output=True, text=True, timeout=patience, check=True,
        )  # fmt: skip
    except (Unsupported, subprocess.TimeoutExpired) as error:
        return {"reason": str(error)}
    except subprocess.CalledProcessError as error:
        return {"reason": f"the program ended ({error.returncode}): {error.stderr.strip()[-200:]}"}
    found: dict[str, Any] = json.loads(done.stdout)
    if found.pop("bytes") != size:
        return {"reason": "another number of bytes"}
    return {**found, "version": version()}
