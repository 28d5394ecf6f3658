"""The command line: ``omnizarr --help`` lists the commands."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Sequence

from omnizarr.cli.version import version_line
from omnizarr.support import extras

_NEEDED = "click"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; ``omnizarr --help`` lists the commands.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after the program's name; by default ``sys.argv[1:]``.

    Returns
    -------
    int
        0: success. 1: the data does not exist, or something is wrong with it. 2: the command is not valid.
        130: interrupted.
    """
    if list(sys.argv[1:] if arguments is None else arguments) in (["--version"], ["-V"]):
        print(version_line())  # noqa: T201 - without click, which a plain installation lacks
        return 0
    if arguments is None:
        # Save a fifth of the time that a short command takes, in a process that does nothing else.
        if "numpy" not in sys.modules:
            # NumPy would start threads for linear algebra, which no command needs.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # Imported modules stay, so there is no need to search them for garbage again and again, or at the end.
        gc.set_threshold(10_000)
        atexit.register(gc.freeze)
    try:
        # Only here: `pip install omnizarr` alone does not bring click.
        run = importlib.import_module("omnizarr.cli.run")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != _NEEDED:
            raise
        print(  # noqa: T201 - click would do it
            f"omnizarr: the command line needs the package {error.name}: {extras.remedy('cli')}", file=sys.stderr
        )
        return 2
    return int(run.run(arguments))
