"""Copying, moving and deleting nodes byte for byte, within a store and between stores."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.edit.report import Edited


def copy_node(
    source: Any,
    target: Any,
    *,
    path: str | None = None,
    target_path: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    verify: bool = True,
    dry_run: bool = False,
    scheduler: Any = None,
    progress: Progress = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Edited:
    """Copy an array, or a group with everything below it, byte for byte to another place or another store.

    Nothing is decoded. Chunks are copied first and documents last, so the copy appears when it is complete. Each
    value is read again and compared. Consolidated metadata of the groups above the target, and NCZarr's lists of
    members, are updated.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mutable mapping
        The node. A store that cannot be listed, such as a web server, is copied from its consolidated metadata.
    target : the same
        The place of the copy itself, not the group that will contain it.
    path, target_path : str, optional
        Paths within `source` and `target`.
    overwrite : bool
        Whether to replace an existing node at the target. In a directory or an archive, the old one stays until
        the new one is complete. In other stores, it is deleted first.
    resume : bool
        Whether to continue an interrupted copy. Equal values that exist are not written again. A copy that is complete
        is compared with the source; if it differs, NodeExistsError is raised and nothing changes.
    verify : bool
        Whether to read each value again and compare it.
    dry_run : bool
        Whether to write nothing, and only return what would be done.
    scheduler : distributed.Client, str or Cluster, optional
        A dask.distributed cluster whose workers copy the chunks, as for `convert`.
    progress : bool, callable or bar, optional
        As for `convert`.
    storage_options : mapping, optional
        Options of the stores, for arguments that are URLs.

    Returns
    -------
    Edited
        It has `keys`, `bytes_stored`, `verified` and `remarks`.

    Raises
    ------
    NodeNotFoundError
        If the source does not exist.
    ContainsArrayError, ContainsGroupError, NodeExistsError
        If the target exists, an array is above it, or it has an unfinished copy.
    NodeNameError
        If the target is within the source or vice versa, or the format of the source does not allow the new name.
    NotRepresentableError
        If the target is in a group of another format: use `convert`.
    StoreError
        If the copy differs, or files that belong to no node would be replaced.

    Examples
    --------
    >>> import omnizarr
    >>> ocean = omnizarr.create_group({})
    >>> ocean["temp"] = [280.5, 281.0]
    >>> backup = {}
    >>> omnizarr.copy_node(ocean["temp"], backup, target_path="temp").keys
    2
    >>> omnizarr.open(backup)["temp"][...]
    array([280.5, 281. ])
    """
    outcome: Edited = import_module("omnizarr.tools.edit.cp").run(**locals())
    return outcome


def move_node(
    source: Any,
    target: Any,
    *,
    path: str | None = None,
    target_path: str | None = None,
    dry_run: bool = False,
    progress: Progress = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Edited:
    """Move an array, or a group with everything below it, to another place or another store.

    Within a file system, this is a rename. Otherwise the node is copied like by `copy_node`, compared, and then
    deleted. Groups above the old and the new place are updated. The `remarks` of the result list what else refers
    to the old name.

    Parameters
    ----------
    source, target, path, target_path, dry_run, progress, storage_options
        As for `copy_node`.

    Returns
    -------
    Edited
        It has `is_rename` and `remarks`.

    Raises
    ------
    NodeNotFoundError, ContainsArrayError, ContainsGroupError, NodeExistsError, NodeNameError, NotRepresentableError
        As `copy_node`.
    StoreError
        If the node must be copied, and files that belong to no node are below it.

    Examples
    --------
    >>> import omnizarr
    >>> values = {}
    >>> root = omnizarr.create_group(values)
    >>> root["temp"] = [280.5, 281.0]
    >>> _ = omnizarr.move_node(values, values, path="temp", target_path="ocean/temperature")
    >>> sorted(path for path, _ in omnizarr.open(values).members(None))
    ['ocean', 'ocean/temperature']
    """
    outcome: Edited = import_module("omnizarr.tools.edit.mv").run(**locals())
    return outcome


def delete_node(
    store: Any,
    path: str | None = None,
    *,
    recursive: bool = False,
    dry_run: bool = False,
    progress: Progress = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Edited:
    """Delete an array, or a group, with its documents and chunks. Nothing else is ever deleted.

    The node disappears immediately, then its chunks are deleted. To finish an interrupted deletion, repeat it.
    Consolidated metadata of the groups above, and NCZarr's lists of members, no longer mention the node.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
    path : str, optional
        Path within the store.
    recursive : bool
        Whether to delete a group with everything below it.
    dry_run, progress, storage_options
        As for `copy_node`.

    Returns
    -------
    Edited
        It has `keys`, `bytes_stored` and `remarks`.

    Raises
    ------
    NodeNotFoundError
        If there is no node. A directory without Zarr documents is not a node.
    ContainsGroupError
        If a group has members and `recursive` is False.
    StoreError
        If files that belong to no node are below it. Then nothing was deleted.

    Examples
    --------
    >>> import omnizarr
    >>> values = {}
    >>> root = omnizarr.create_group(values)
    >>> root["temp"] = [280.5, 281.0]
    >>> omnizarr.delete_node(values, "temp").keys
    2
    >>> sorted(values)
    ['zarr.json']
    """
    outcome: Edited = import_module("omnizarr.tools.edit.rm").run(**locals())
    return outcome
