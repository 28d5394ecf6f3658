"""Repairing a hierarchy: what can be mended without guessing, with an account of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.repairing import Account


def repair(
    store: Any,
    *,
    path: str | None = None,
    zarr_format: int | str | None = None,
    dry_run: bool = True,
    codes: Iterable[str] | None = None,
    data: bool = False,
    adopt: bool = False,
    backup: str | os.PathLike[str] | bool | None = None,
    older_than: float = 3600,
    concurrency: int | None = None,
    progress: Callable[[int], object] | bool | None = None,
) -> Account:
    """Mend what a check finds, as far as that takes no guessing. Without ``dry_run=False`` nothing is changed.

    Consolidated metadata that is stale or broken is made again; known mistakes in documents are corrected, if the
    document means the same to readers here before and after; missing documents of groups are written; shards with
    something after their index are cut off there; temporary files and locks that writers left are deleted. Each old
    value is kept, and `undo_repair` puts it back. The page "Repairing" of the manual lists what is done and why.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
        Where it is.
    path : str, optional
        Path within the store.
    zarr_format : int or str, optional
        Look only at documents of this format.
    dry_run : bool, default True
        Only say what would be done.
    codes : iterable of str, optional
        Mend these findings and no others. Some are mended only if they are named here, as something is given up.
    data : bool, default False
        Decode every chunk, to find torn shards. If one of `codes` cannot be found without, it is done anyway.
    adopt : bool, default False
        Of a netCDF dataset, make unlimited dimensions longer where a killed writer has left complete records beyond
        their end. They may be of any age.
    backup : path or bool, optional
        Directory for the old values, and the account. By default a new one beside the store, called
        ``<store>.omnizarr-repair-<time>``. False: keep none.
    older_than : float, default 3600
        Seconds since they were changed after which temporary files and locks pass for left.
    concurrency : int, optional
        Threads that decode chunks.
    progress : bool or callable, optional
        True: shown in a terminal or a notebook, and a line every ten seconds elsewhere. A callable: called with how
        many more chunks have been looked at; from several threads.

    Returns
    -------
    Account
        With `actions`, what is `left`, `ok`, `to_dict` and `to_json`.

    Raises
    ------
    NodeNotFoundError
        If there is nothing of Zarr.
    ReadOnlyError
        If the store cannot be written.
    StoreError
        If the store fails. What was mended before stays so; the repair can be run again, or undone.
    ValueError
        If there is no such code, or nothing that can be done about it.

    See Also
    --------
    check : what is wrong.
    undo_repair : put back what was changed.

    Examples
    --------
    >>> import omnizarr
    >>> values = {}
    >>> array = omnizarr.create_array(values, shape=(4,), dtype="uint8", zarr_format=2)
    >>> values[".zarray"] = values[".zarray"].replace(b'"filters": null', b'"filters": []')
    >>> print(omnizarr.repair(values, codes=["empty-filters"]))
    would: /: .zarray#/filters: write null for no filters: [] -> null [empty-filters]
    1 repair to be made, nothing changed
    >>> omnizarr.repair(values, codes=["empty-filters"], dry_run=False, backup=False).ok
    True
    """
    run = import_module("omnizarr.tools.repairing.repairer").run
    account: Account = run(
        store,
        path=path,
        zarr_format=zarr_format,
        dry_run=dry_run,
        codes=codes,
        data=data,
        adopt=adopt,
        backup=backup,
        older_than=older_than,
        concurrency=concurrency,
        progress=progress,
    )
    return account


def undo_repair(account: Account | str | os.PathLike[str], store: Any = None, *, dry_run: bool = True) -> Account:
    """Put back the values that a repair has changed. Without ``dry_run=False`` nothing is changed.

    What was changed again after the repair is left alone. A repair that was interrupted can be undone as well.

    Parameters
    ----------
    account : Account or path
        What `repair` returned; or the directory with the old values, or the account in it.
    store : path, URL, Store or mutable mapping, optional
        Where the store is, if it is not where it was.
    dry_run : bool, default True
        Only say what would be put back.

    Returns
    -------
    Account
        Of what was put back; an action that was not done says why.

    Raises
    ------
    StoreError
        If there are no old values.
    ReadOnlyError
        If the store cannot be written.

    Examples
    --------
    >>> import omnizarr, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> values = {".zarray": b'{"zarr_format": 2, "shape": [0], "chunks": [1], "dtype": "|u1", "compressor": null,'
    ...                      b' "fill_value": 0, "order": "C"}'}
    >>> account = omnizarr.repair(values, dry_run=False, backup=folder.name)
    >>> values[".zarray"][-16:]
    b'"filters": null}'
    >>> omnizarr.undo_repair(account, values, dry_run=False).ok, values[".zarray"][-13:]
    (True, b'"order": "C"}')
    >>> folder.cleanup()
    """
    undo = import_module("omnizarr.tools.repairing.repairer").undo
    put_back: Account = undo(account, store, dry_run=dry_run)
    return put_back
