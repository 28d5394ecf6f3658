"""omnizarr under the name zarr, for packages that were made for zarr-python.

Names, modules, defaults and return types are those of zarr-python 3.1.6, as far as other packages use them.
omnizarr does the work. `install` makes ``import zarr`` find this package, in this process.

>>> import omnizarr_as_zarr as zarr
>>> zarr.__version__
'3.1.6'
>>> zarr.ones((2, 2))[0]
array([1., 1.])

Names, modules, defaults and return types match zarr-python 3.1.6 where other packages use them; omnizarr does the work.
`install` makes ``import zarr`` find this package, in this process.
"""

from __future__ import annotations

from omnizarr.api.creating import print_debug_info
from omnizarr_as_zarr import abc, api, codecs, core, errors, registry, storage
from omnizarr_as_zarr._installing import VERSION, install, installed, under_the_name, uninstall
from omnizarr_as_zarr._nodes import Array, AsyncArray, AsyncGroup, Group
from omnizarr_as_zarr.api import asynchronous as asynchronous
from omnizarr_as_zarr.api.synchronous import (
    array,
    consolidate_metadata,
    copy,
    copy_all,
    copy_store,
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
    load,
    ones,
    ones_like,
    open,  # noqa: A004 - the name that zarr has for it
    open_array,
    open_consolidated,
    open_group,
    open_like,
    save,
    save_array,
    save_group,
    tree,
    zeros,
    zeros_like,
)
from omnizarr_as_zarr.core import array as _array  # noqa: F401 - there with the package, as in zarr-python
from omnizarr_as_zarr.core import buffer, dtype
from omnizarr_as_zarr.core import group as _group  # noqa: F401
from omnizarr_as_zarr.core.config import config
from omnizarr_as_zarr.storage import ZipStore

__version__ = VERSION

__all__ = [
    "Array",
    "AsyncArray",
    "AsyncGroup",
    "Group",
    "ZipStore",
    "__version__",
    "abc",
    "api",
    "array",
    "buffer",
    "codecs",
    "config",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "core",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
    "dtype",
    "empty",
    "empty_like",
    "errors",
    "from_array",
    "full",
    "full_like",
    "group",
    "install",
    "installed",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "print_debug_info",
    "registry",
    "save",
    "save_array",
    "save_group",
    "storage",
    "tree",
    "under_the_name",
    "uninstall",
    "zeros",
    "zeros_like",
]
