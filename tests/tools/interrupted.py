"""Kill a tool at each of its changes of files, then run it again: ``python -m tests.tools.interrupted NAME FOLDER 1``.

A child process is killed at the nth file that it makes, renames or removes, for every n (or for some). What it leaves
is given to each way to go on. The program prints, as JSON, what each of them did.
"""

import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import omnizarr
from omnizarr.errors import OmnizarrError
from omnizarr.storage import StorePath
from omnizarr.stores import LocalStore
from omnizarr.tools.edit import attrs, create, mv

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
RESIDUE = (".omnizarr", "omnizarr-conversion.json")
VALUES = np.arange(24.0).reshape(4, 6)


class Tool(NamedTuple):
    """What a tool is given, and how it is called."""

    run: Callable[..., object]
    """Called with a folder that has a hierarchy, and with options."""
    ways: tuple[dict, ...] = ({},)
    """Options with which it is called again."""
    build: Callable[[Path], object] | None = None
    """Makes more than the hierarchy."""


def _hierarchy(folder):
    root = omnizarr.create_group(folder / "a.zarr", attributes={"title": "t"})
    root.create_array("deep/t", data=VALUES, chunks=(2, 3), compressors=None, attributes={"units": "K"})
    root.create_array("y", data=np.arange(4), compressors=None)


def _old(folder):
    omnizarr.create_group(folder / "b.zarr").create_array("old", data=np.ones(4), compressors=None)


def _tree(folder):
    root = omnizarr.create_group(folder / "b.zarr")
    for name in ("old", "deep/old"):
        root.create_array(name, data=VALUES, chunks=(2, 3), compressors=None)


def _drafts(folder):
    for name in ("draft.zarr", "b.zarr"):
        root = omnizarr.create_group(folder / name, zarr_format="3-draft2020")
        root.create_array(f"deep/{name[0]}", data=VALUES, chunks=(2, 3), compressors=None)
    (folder / "b.zarr/README.txt").write_text("who made this")
    (folder / "b.zarr/photos").mkdir()
    (folder / "b.zarr/photos/2023").write_text("only digits")


class Lazy:
    """Values that are computed when they are read. Until then, what they replace stays."""

    shape, dtype, ndim = VALUES.shape, VALUES.dtype, 2

    def __getitem__(self, selection):
        return VALUES[selection]


def _image(folder):
    omnizarr.create_array(folder / "image.zarr", data=np.arange(256.0).reshape(16, 16), chunks=(8, 8), compressors=None)


def _pyramid_there(folder):
    _image(folder)
    omnizarr.pyramid(folder / "image.zarr", folder / "b.zarr", axes="yx", levels=3)


def _pyramid_begin(folder):
    _image(folder)
    omnizarr.pyramid(folder / "image.zarr", folder / "b.zarr", axes="yx", levels=1)


def _stale(folder):
    omnizarr.consolidate_metadata(folder / "a.zarr")
    document = folder / "a.zarr/deep/t/zarr.json"
    document.write_text(document.read_text().replace('"K"', '"m"'))


def _v2(folder):
    root = omnizarr.create_group(folder / "c.zarr", zarr_format=2)
    root.create_array("deep/t", data=VALUES, chunks=(2, 3), compressors=None, attributes={"units": "K"})


def _elsewhere(folder, **options):
    """Move as between file systems."""
    mv._is_one_file_system = lambda *_: False
    omnizarr.move_node(folder / "a.zarr", folder / "b.zarr", **options)


def _within(folder, **options):
    mv._is_one_file_system = lambda *_: False
    omnizarr.move_node(folder / "a.zarr/deep/t", folder / "a.zarr/other/t", **options)


def _place(folder, path):
    return StorePath(LocalStore(folder / "a.zarr"), path)


THREE = ({}, {"resume": True}, {"overwrite": True})

TOOLS = {
    "copy_node": Tool(lambda at, **how: omnizarr.copy_node(at / "a.zarr", at / "b.zarr", **how), THREE),
    "copy_node into a group": Tool(
        lambda at, **how: omnizarr.copy_node(at / "a.zarr/deep/t", at / "b.zarr/new/t", **how), THREE, _old
    ),
    "copy_node over another": Tool(
        lambda at, **_: omnizarr.copy_node(at / "a.zarr", at / "b.zarr", overwrite=True), build=_old
    ),
    "copy_node over a draft": Tool(
        lambda at, **_: omnizarr.copy_node(at / "draft.zarr", at / "b.zarr", overwrite=True), build=_drafts
    ),
    "move_node": Tool(lambda at, **how: omnizarr.move_node(at / "a.zarr", at / "b.zarr", **how)),
    "move_node within a group": Tool(
        lambda at, **how: omnizarr.move_node(at / "a.zarr/deep/t", at / "a.zarr/o/t", **how)
    ),
    "move_node to another file system": Tool(_elsewhere),
    "move_node to another file system within a group": Tool(_within),
    "delete_node": Tool(lambda at, **how: omnizarr.delete_node(at / "a.zarr", "deep", recursive=True, **how)),
    "delete_node of all": Tool(lambda at, **how: omnizarr.delete_node(at / "a.zarr", recursive=True, **how)),
    "convert": Tool(lambda at, **how: omnizarr.convert(at / "a.zarr", at / "b.zarr", zarr_format=2, **how), THREE),
    "convert over another": Tool(
        lambda at, **_: omnizarr.convert(at / "a.zarr", at / "b.zarr", zarr_format=2, overwrite=True), build=_old
    ),
    "convert in place": Tool(
        lambda at, **how: omnizarr.convert(at / "c.zarr", in_place=True, zarr_format=3, **how), build=_v2
    ),
    "rechunk": Tool(
        lambda at, **how: omnizarr.rechunk(at / "a.zarr/deep/t", at / "b.zarr", chunks=(4, 2), **how), THREE
    ),
    "pyramid": Tool(
        lambda at, **how: omnizarr.pyramid(at / "b.zarr", axes="yx", levels=3, **how), THREE, _pyramid_begin
    ),
    "pyramid again": Tool(
        lambda at, **_: omnizarr.pyramid(at / "b.zarr", axes="yx", levels=3, overwrite=True), build=_pyramid_there
    ),
    "pyramid of another": Tool(
        lambda at, **how: omnizarr.pyramid(at / "image.zarr", at / "b.zarr", axes="yx", levels=3, **how), THREE, _image
    ),
    "repair": Tool(lambda at, **_: omnizarr.repair(at / "a.zarr", dry_run=False), build=_stale),
    "create_array": Tool(
        lambda at, **how: omnizarr.create_array(at / "a.zarr/new/t", shape=(4,), dtype="int8", **how),
        ({}, {"overwrite": True}),
    ),
    "create_array over another": Tool(
        lambda at, **_: omnizarr.create_array(at / "a.zarr/y", shape=(4,), dtype="int8", overwrite=True)
    ),
    "create_array of lazy data over a group": Tool(
        lambda at, **_: omnizarr.create_array(at / "b.zarr", data=Lazy(), chunks=(2, 3), overwrite=True), build=_tree
    ),
    "create_group over another": Tool(
        lambda at, **_: omnizarr.create_group(at / "b.zarr", overwrite=True), build=_tree
    ),
    "create_group": Tool(
        lambda at, **how: omnizarr.create_group(at / "a.zarr/new/g", **how), ({}, {"overwrite": True})
    ),
    "create": Tool(
        lambda at, **how: create.make(at / "a.zarr/new/t", {"shape": (4,), "dtype": "int8", **how}, kind="array"),
        ({}, {"overwrite": True}),
    ),
    "attrs set": Tool(lambda at, **_: attrs.update(_place(at, "deep/t"), {"units": "m"})),
    "attrs rm": Tool(lambda at, **_: attrs.delete(_place(at, "deep/t"), ("units",))),
    "resize": Tool(lambda at, **_: omnizarr.open_array(at / "a.zarr", path="deep/t", mode="r+").resize((2, 6))),
    "consolidate": Tool(lambda at, **_: omnizarr.consolidate_metadata(at / "a.zarr")),
}  # fmt: skip


def _die_at(nth):
    """Kill this process at its nth change of a file."""
    left = nth

    def hook(event, arguments):
        nonlocal left
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _in_child(function):
    """Run a function in a child; return what it returned, or None if it was killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.close(reading)
            answer = json.dumps(function()).encode()
            os.write(writing, answer)
            code = 0
        except BaseException as error:  # noqa: BLE001 - it is shown
            os.write(writing, json.dumps(["broken", repr(error)]).encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(answer) if answer else None


def _outcome(run, folder, how):
    try:
        run(folder, **how)
    except (OmnizarrError, KeyError) as error:
        return ["refused", *_state(folder), str(error), getattr(error, "remedy", None) or ""]
    return ["done", *_state(folder)]


def _state(folder):
    """Return the digests of all nodes, and the files that belong to none."""
    found, residue = [], []
    for each in sorted(folder.iterdir()):
        if each.name.startswith(RESIDUE):
            residue.append(each.name)
        elif any(each.rglob("*")) and ".omnizarr-repair-" not in each.name:  # the names of backups have times
            found.append([each.name, str(omnizarr.digest(each)) if _is_node(each) else "no node"])
        residue += [str(file.relative_to(folder)) for file in each.rglob("*") if file.name.startswith(RESIDUE)]
    return [found, residue]


def _is_node(path):
    try:
        omnizarr.open(path, mode="r")
    except OmnizarrError:
        return False
    return True


def tell(name, folder, stride):
    """Return what came of each way to go on after each step, or each few steps."""
    tool = TOOLS[name]
    start = folder / "start"
    start.mkdir()
    _hierarchy(start)
    if tool.build is not None:
        tool.build(start)
    shutil.copytree(start, folder / "whole")
    expected = _in_child(lambda: _outcome(tool.run, folder / "whole", {}))
    steps = []
    for nth in itertools.count(0, stride):
        left = folder / f"{nth}"
        shutil.copytree(start, left)

        def die(nth=nth, left=left):
            _die_at(nth)
            tool.run(left)
            return "finished"

        if _in_child(die) is not None:
            break
        told = {}
        for how in tool.ways:
            again = folder / f"{nth} {'-'.join(how)}"
            shutil.copytree(left, again)
            told["-".join(how)] = _in_child(lambda how=how, again=again: _outcome(tool.run, again, how))
        steps.append({"step": nth, "ways": told})
    return {"expected": expected, "steps": steps}


if __name__ == "__main__":
    json.dump(tell(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])), sys.stdout)
