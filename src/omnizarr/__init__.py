"""Every Zarr ever specified: read, write, check and inspect chunked arrays.

>>> import numpy as np
>>> import omnizarr
>>> root = omnizarr.create_group({})
>>> root["temp"] = np.linspace(0, 1, 5)
>>> root["temp"][::2]
array([0. , 0.5, 1. ])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from omnizarr import aio as aio
    from omnizarr import codecs, errors, storage
    from omnizarr import data as data
    from omnizarr import interop as interop
    from omnizarr import metadata as metadata
    from omnizarr import model as model
    from omnizarr import netcdf as netcdf
    from omnizarr.api.combining import combine
    from omnizarr.api.creating import (
        array,
        consolidate_metadata,
        create,
        create_array,
        create_group,
        create_hierarchy,
        empty,
        empty_like,
        from_array,
        full,
        full_like,
        group,
        ones,
        ones_like,
        print_debug_info,
        tree,
        zeros,
        zeros_like,
    )
    from omnizarr.api.joining import block, concat, stack
    from omnizarr.api.opening import open, open_array, open_consolidated, open_group, open_like  # noqa: A004 - zarr's name
    from omnizarr.api.saving import load, save, save_array, save_group
    from omnizarr.api.views import save_view
    from omnizarr.engine.cache import ChunkCache
    from omnizarr.nodes.array import Array
    from omnizarr.nodes.config import ArrayConfig
    from omnizarr.nodes.group import Group
    from omnizarr.nodes.lazy.view import LazyArray
    from omnizarr.nodes.members import UnreadableNode
    from omnizarr.nodes.reading import read_many
    from omnizarr.settings import config
    from omnizarr.tools.advise import advise
    from omnizarr.tools.check import check
    from omnizarr.tools.convert import convert, rechunk
    from omnizarr.tools.copy import copy, copy_all, copy_store
    from omnizarr.tools.diff import diff
    from omnizarr.tools.digest import digest, digest_of_bytes
    from omnizarr.tools.du import du
    from omnizarr.tools.edit import copy_node, delete_node, move_node
    from omnizarr.tools.get import get
    from omnizarr.tools.info import info
    from omnizarr.tools.ls import ls
    from omnizarr.tools.missing import missing
    from omnizarr.tools.pyramid import pyramid
    from omnizarr.tools.refs import references
    from omnizarr.tools.repair import repair, undo_repair
    from omnizarr.tools.show import show
    from omnizarr.tools.stat import stat
    from omnizarr.web.serving import serve
    from omnizarr.web.viewing import view

__version__ = "0.2.0"

# The module of each name. A name is imported when it is first used, so a program loads only what it needs.
_MODULES: Final = frozenset({"aio", "codecs", "data", "errors", "interop", "metadata", "model", "netcdf", "storage"})
_NAMES: Final = {
    name: module
    for module, names in {
        "api.creating": (
            "array",
            "consolidate_metadata",
            "create",
            "create_array",
            "create_group",
            "create_hierarchy",
            "empty",
            "empty_like",
            "from_array",
            "full",
            "full_like",
            "group",
            "ones",
            "ones_like",
            "print_debug_info",
            "tree",
            "zeros",
            "zeros_like",
        ),
        "api.combining": ("combine",),
        "api.joining": (
            "block",
            "concat",
            "stack",
        ),
        "api.opening": (
            "open",
            "open_array",
            "open_consolidated",
            "open_group",
            "open_like",
        ),
        "api.saving": (
            "load",
            "save",
            "save_array",
            "save_group",
        ),
        "api.views": ("save_view",),
        "engine.cache": ("ChunkCache",),
        "nodes.array": ("Array",),
        "nodes.config": ("ArrayConfig",),
        "nodes.group": ("Group",),
        "nodes.lazy.view": ("LazyArray",),
        "nodes.members": ("UnreadableNode",),
        "nodes.reading": ("read_many",),
        "settings": ("config",),
        "tools.advise": ("advise",),
        "tools.check": ("check",),
        "tools.convert": (
            "convert",
            "rechunk",
        ),
        "tools.copy": (
            "copy",
            "copy_all",
            "copy_store",
        ),
        "tools.diff": ("diff",),
        "tools.digest": (
            "digest",
            "digest_of_bytes",
        ),
        "tools.du": ("du",),
        "tools.get": ("get",),
        "tools.info": ("info",),
        "tools.ls": ("ls",),
        "tools.missing": ("missing",),
        "tools.edit": (
            "copy_node",
            "delete_node",
            "move_node",
        ),
        "tools.pyramid": ("pyramid",),
        "tools.refs": ("references",),
        "tools.repair": (
            "repair",
            "undo_repair",
        ),
        "tools.show": ("show",),
        "tools.stat": ("stat",),
        "web.serving": ("serve",),
        "web.viewing": ("view",),
    }.items()
    for name in names
}

__all__ = [
    "Array",
    "ArrayConfig",
    "ChunkCache",
    "Group",
    "LazyArray",
    "UnreadableNode",
    "__version__",
    "advise",
    "array",
    "block",
    "check",
    "codecs",
    "combine",
    "concat",
    "config",
    "consolidate_metadata",
    "convert",
    "copy",
    "copy_all",
    "copy_node",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
    "delete_node",
    "diff",
    "digest",
    "digest_of_bytes",
    "du",
    "empty",
    "empty_like",
    "errors",
    "from_array",
    "full",
    "full_like",
    "get",
    "group",
    "info",
    "load",
    "ls",
    "missing",
    "move_node",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "print_debug_info",
    "pyramid",
    "read_many",
    "rechunk",
    "references",
    "repair",
    "save",
    "save_array",
    "save_group",
    "save_view",
    "serve",
    "show",
    "stack",
    "stat",
    "storage",
    "tree",
    "undo_repair",
    "view",
    "zeros",
    "zeros_like",
]


# Names of zarr-python 2, which had stores in the package itself, and of h5py.
_HABITS: Final = {
    "DirectoryStore": ("storage", "LocalStore"),
    "NestedDirectoryStore": ("storage", "LocalStore"),
    "MemoryStore": ("storage", "MemoryStore"),
    "ZipStore": ("storage", "ZipStore"),
    "File": ("api.opening", "open_file"),
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        found = globals()[name] = getattr(import_module(f"omnizarr.{_NAMES[name]}"), name)
        return found
    if name in _MODULES:
        return import_module(f"omnizarr.{name}")
    if name in _HABITS:
        module, meant = _HABITS[name]
        return getattr(import_module(f"omnizarr.{module}"), meant)
    habits = import_module("omnizarr.nodes.habits")
    raise habits.missing("module 'omnizarr'", name, habits.PACKAGE)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})
