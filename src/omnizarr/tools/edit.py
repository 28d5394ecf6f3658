"""Copying, moving and deleting nodes byte for byte, within a store and between stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.editing.outcome import Edited


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
    progress: Callable[..., Any] | bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Edited:
    """Copy an array, or a group with all below it, byte for byte to another place or another store.

    Nothing is decoded. Chunks are copied first and documents last, so the copy appears when it is complete. Each value
    is read again and compared. Consolidated metadata of the groups above the target, and NCZarr's lists of members,
    are brought up to date.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mutable mapping
        The node. A store that cannot be listed, such as a web server, is copied from its consolidated metadata.
    target : the same
        Where to: the place of the copy, not the group that it will be in.
    path, target_path : str, optional
        Paths within `source` and `target`.
    overwrite : bool
        Replace the node that is at the target. In a directory and in an archive, the old one stays until the new one
        is complete. Elsewhere it is deleted first.
    resume : bool
        Continue a copy that was interrupted: values that exist and equal are not written again. A copy that is
        complete already is compared with the source; if it differs, NodeExistsError is raised and nothing changes.
    verify : bool
        Read each value again, and compare it.
    dry_run : bool
        Write nothing; return what would be done.
    scheduler : distributed.Client, str or Cluster, optional
        A dask.distributed cluster whose workers copy the chunks, as for `convert`.
    progress : bool or callable, optional
        As for `convert`.
    storage_options : mapping, optional
        For those of both that are URLs.

    Returns
    -------
    Edited
        With `keys`, `bytes_stored`, `verified`, `remarks`.

    Raises
    ------
    NodeNotFoundError
        If the source does not exist.
    ContainsArrayError, ContainsGroupError, NodeExistsError
        If there is something at the target, or an array above it, or an unfinished copy.
    NodeNameError
        If source and target are in each other, or the format of the source does not allow the new name.
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
    outcome: Edited = import_module("omnizarr.tools.editing.copying").run(
        source,
        target,
        path=path,
        target_path=target_path,
        overwrite=overwrite,
        resume=resume,
        verify=verify,
        dry_run=dry_run,
        scheduler=scheduler,
        progress=progress,
        storage_options=storage_options,
    )
    return outcome


def move_node(
    source: Any,
    target: Any,
    *,
    path: str | None = None,
    target_path: str | None = None,
    dry_run: bool = False,
    progress: Callable[..., Any] | bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Edited:
    """Move an array, or a group with all below it, to another place or another store.

    Within a file system that is a rename. Elsewhere the node is copied as by `copy_node`, compared, and then deleted.
    Groups above the old and the new place are brought up to date; what else refers to the old name is among the
    `remarks` of the result.

    Parameters
    ----------
    source, target, path, target_path, dry_run, progress, storage_options
        As for `copy_node`.

    Returns
    -------
    Edited
        With `is_rename` and `remarks`.

    Raises
    ------
    NodeNotFoundError, ContainsArrayError, ContainsGroupError, NodeExistsError, NodeNameError, NotRepresentableError
        As `copy_node`.
    StoreError
        If it must be copied, and files that belong to no node are below it.

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
    outcome: Edited = import_module("omnizarr.tools.editing.moving").run(
        source,
        target,
        path=path,
        target_path=target_path,
        dry_run=dry_run,
        progress=progress,
        storage_options=storage_options,
    )
    return outcome


def delete_node(
    store: Any,
    path: str | None = None,
    *,
    recursive: bool = False,
    dry_run: bool = False,
    progress: Callable[..., Any] | bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Edited:
    """Delete an array, or a group, with its documents and chunks; nothing else is ever deleted.

    The node disappears at once, then its chunks are deleted. A deletion that was interrupted is finished by doing it
    again. Consolidated metadata of the groups above, and NCZarr's lists of members, no longer mention it.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
    path : str, optional
        Path within the store.
    recursive : bool
        Delete a group with all that is below it.
    dry_run, progress, storage_options
        As for `copy_node`.

    Returns
    -------
    Edited
        With `keys`, `bytes_stored` and `remarks`.

    Raises
    ------
    NodeNotFoundError
        If there is no node; a directory without documents of Zarr is none.
    ContainsGroupError
        If a group has members, and not `recursive`.
    StoreError
        If files that belong to no node are below it; nothing was deleted then.

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
    outcome: Edited = import_module("omnizarr.tools.editing.deleting").run(
        store,
        path=path,
        recursive=recursive,
        dry_run=dry_run,
        progress=progress,
        storage_options=storage_options,
    )
    return outcome
