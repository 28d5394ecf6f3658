"""Which files lie in the directories around a store, for which it has no keys.

Every new node asks this of the same directories. So the answer is remembered as long as a directory stays the same: a
new file changes its times. Some file systems in user space do not show that, so nothing is remembered for long.
"""

from __future__ import annotations

import os
import stat
import time
from typing import Final

from omnizarr.stores.local import files, folders
from omnizarr.support.memo import Memo

_LONG: Final = 1.0  # seconds


def files_in(folder: str, names: tuple[str, ...]) -> frozenset[str] | None:
    """Return which of the names are files in a directory; None if there is no such directory.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a").write_bytes(b"")
    ...     files_in(folder, ("a", "b")), files_in(f"{folder}/c", ("a",))
    (frozenset({'a'}), None)
    """
    now = time.time_ns()  # taken before the look, as in `files.stamp`
    try:
        status = os.stat(folder)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    question, identity = (folder, names), files.identity(status)
    known = _known.known(question)
    if known is not None and known[0] == identity and time.monotonic() < known[1]:
        return known[2]
    module = folders.native()
    if module is None:
        found = frozenset(name for name in names if os.path.isfile(os.path.join(folder, name)))
    else:
        found = frozenset(names[position] for position in module.present(folder, names) or ())
    if not files.WINDOWS and files.unsettled(now, status.st_mtime_ns, status.st_ctime_ns) <= 0:
        _known.put(question, (identity, time.monotonic() + _LONG, found))
    return found


_known: Final[Memo[tuple[object, float, frozenset[str]]]] = Memo(exact=True)
