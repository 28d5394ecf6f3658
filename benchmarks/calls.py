"""Count what one read of one chunk enters: frames down to the file, functions, files, threads.

Usage: ``python -m benchmarks.calls``. The library's own Python functions are counted with `sys.setprofile` on every
thread, until the chunk's file is opened (seen by an audit hook); warm, second read.
"""

from __future__ import annotations

import sys
import sysconfig
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

_state: dict[str, Any] = {"on": False}
_STDLIB = sysconfig.get_paths()["stdlib"]


def _own(frame: Any) -> bool:
    name = frame.f_code.co_filename
    return f"/{_state['package']}/" in name and name != __file__


def _profile(frame: Any, event: str, _argument: Any) -> None:
    if _state["on"] and event == "call" and _own(frame):
        _state["functions"].append((frame.f_code.co_filename, frame.f_code.co_qualname))
        _state["threads"].add(threading.get_ident())


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _state["on"] and event == "open" and _state["target"] in str(arguments[0]):
        frame, frames = sys._getframe(1), 0
        while frame is not None:
            frames += _own(frame)
            frame = frame.f_back  # type: ignore[assignment]
        _state["frames"] = frames
        _state["before"] = len(_state["functions"])


def count(package: str, array: Any, selection: Any) -> str:
    """Return a line about reading `selection`, which is in one chunk."""
    array[selection]
    _state.update(package=package, functions=[], threads=set(), target="c/", on=False, frames=0, before=0)
    threading.setprofile_all_threads(_profile) if hasattr(threading, "setprofile_all_threads") else None
    threading.setprofile(_profile)
    sys.setprofile(_profile)
    _state["on"] = True
    array[selection]
    _state["on"] = False
    sys.setprofile(None)
    threading.setprofile(None)
    called = _state["functions"]
    return (
        f"{package}: {_state['frames']} frames on the opening thread; {_state['before']} calls until the file opens, "
        f"{len(called)} calls and {len(set(called))} functions in {len({name for name, _ in called})} files in all, "
        f"{len(_state['threads'])} thread(s)\n    " + " > ".join(name for _, name in called[:40])
    )


def main() -> None:
    """Compare omnizarr and zarr-python."""
    import zarr

    import omnizarr

    sys.addaudithook(_audit)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.zarr"
        array = zarr.create_array(path, shape=(100, 100), chunks=(10, 10), dtype="int32")
        array[...] = np.arange(10000).reshape(100, 100)
        for selection in [(slice(10, 20), slice(10, 20)), (15, 15)]:
            print(count("omnizarr", omnizarr.open_array(path, mode="r"), selection))
            print(count("zarr", zarr.open_array(path, mode="r"), selection))


if __name__ == "__main__":
    main()
