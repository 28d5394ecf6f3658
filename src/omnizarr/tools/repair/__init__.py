"""Repairing findings of a check, without guessing.

`policy` defines what is repaired by default, and what only on request. `mistakes` corrects documents within their
own text (`formats.jsontext`), `missing` writes missing documents, `copies` makes consolidated metadata again,
`stored` repairs shards and chunks, `leftovers` deletes temporary files and locks. `repairer` runs them in order.
Changes go through `transaction`, which keeps the old values in a `backup`; a dry run changes an `overlay` instead
of the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.repair.report import Account

repairer: Any = Lazy("omnizarr.tools.repair.repairer")


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
    progress: Progress = None,
) -> Account:
    """Repair what a check finds, if the repair is certain. Without ``dry_run=False`` nothing is changed.

    Stale or broken consolidated metadata is made again. Known mistakes in documents are corrected, if omnizarr reads
    the same node from the document before and after. Missing documents of groups are written. Shards with bytes after
    their index are cut off there. Leftover temporary files and locks are deleted. Each old value is kept, and
    `undo_repair` restores it. The page "Repairing" of the manual lists all repairs with reasons.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
        The hierarchy.
    path : str, optional
        Path within the store.
    zarr_format : int or str, optional
        Look only at documents of this format.
    dry_run : bool, default True
        Only report what would be done.
    codes : iterable of str, optional
        Repair only these findings. Some are repaired only if you name them here, because the repair gives something up.
    data : bool, default False
        Decode every chunk, to find shards that are cut off. Done in any case if one of `codes` requires it.
    adopt : bool, default False
        In a netCDF dataset, extend unlimited dimensions if a killed writer has left complete records beyond their end.
        The records can be of any age.
    backup : path or bool, optional
        Directory for the old values and the report. By default a new one next to the store,
        ``<store>.omnizarr-repair-<time>``. False: keep no old values.
    older_than : float, default 3600
        Minimum age in seconds of leftover temporary files and locks to delete.
    concurrency : int, optional
        Number of threads that decode chunks.
    progress : bool, callable or bar, optional
        As for `convert`; it counts chunks. Several threads call it, one after the other.

    Returns
    -------
    Account
        It has `actions`, the findings that are `left`, `ok`, `to_dict` and `to_json`.

    Raises
    ------
    NodeNotFoundError
        If there is no Zarr node.
    ReadOnlyError
        If the store cannot be written.
    StoreError
        If the store fails. Earlier repairs stay; the repair can be run again, or undone.
    ValueError
        If a code does not exist, or cannot be repaired.

    See Also
    --------
    check : what is wrong.
    undo_repair : restore the old values.

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
    account: Account = repairer.run(**locals())
    return account


def undo_repair(account: Account | str | os.PathLike[str], store: Any = None, *, dry_run: bool = True) -> Account:
    """Restore the values that a repair has changed. Without ``dry_run=False`` nothing is changed.

    Values that have changed again since the repair are left. An interrupted repair can also be undone.

    Parameters
    ----------
    account : Account or path
        The result of `repair`, the directory with the old values, or the report in it.
    store : path, URL, Store or mutable mapping, optional
        The store, if it has moved.
    dry_run : bool, default True
        Only report what would be restored.

    Returns
    -------
    Account
        The restored values. Actions that were not done state the reason.

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
    put_back: Account = repairer.undo(**locals())
    return put_back
