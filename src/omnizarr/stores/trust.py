"""Whether a file may lead to other files: those in its own directory, or all, if the user trusts it.

One rule for all formats whose files name others: ``references="trusted"`` in Python, ``--trust-references`` on the
command line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, TypeAlias

from omnizarr.errors import SettingError, StoreAccessError

References: TypeAlias = Literal["inside", "trusted"]
"""Which files a file may name: those in its own directory, or all."""

REMEDY: Final = 'if you trust the file, pass references="trusted" (--trust-references)'


def is_trusted(references: str) -> bool:
    """Return whether the user trusts all files that are named. Raises SettingError for other words.

    >>> is_trusted("inside"), is_trusted("trusted")
    (False, True)
    """
    if references not in {"inside", "trusted"}:
        raise SettingError("no such trust in references", found=references, expected='"inside" or "trusted"')
    return references == "trusted"


def is_inside(target: Path, directories: Iterable[Path]) -> bool:
    """Return whether a path, with all links followed, is in one of some directories.

    >>> is_inside(Path("/data/x/../../etc/passwd"), [Path("/data")])
    False
    """
    real = os.path.realpath(target)
    return any(Path(real).is_relative_to(os.path.realpath(each)) for each in directories)


def refused(what: str, target: str, *, store: str, path: str = "") -> StoreAccessError:
    """Return the error for a file that leads to another one outside of its directory."""
    return StoreAccessError(
        f"{what} leads out of the directory of the file",
        store=store,
        path=path,
        found=target,
        expected="a file in the same directory, or below",
        remedy=REMEDY,
    )
