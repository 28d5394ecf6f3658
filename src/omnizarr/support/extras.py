"""How to install an extra of omnizarr, as errors say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from importlib import metadata
else:
    metadata = Lazy("importlib.metadata")


def remedy(extra: str) -> str:
    """Return the command that installs what an extra adds.

    pip takes the omnizarr that is installed, from a clone or from a release, and adds only what is missing. If omnizarr
    is not installed but imported from its sources, the command names the clone.

    Examples
    --------
    >>> remedy("cloud").startswith("pip install ")
    True
    """
    try:
        metadata.distribution("omnizarr")
    except metadata.PackageNotFoundError:
        return f'pip install ".[{extra}]" in the clone of omnizarr'
    return f'pip install "omnizarr[{extra}]"'
