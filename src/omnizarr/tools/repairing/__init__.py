"""Repairing findings of a check, without guessing.

`policy` defines what is repaired by default, and what only on request. `mistakes` corrects documents within their
own text (`formats.jsontext`), `missing` writes missing documents, `copies` makes consolidated metadata again,
`stored` repairs shards and chunks, `leftovers` deletes temporary files and locks. `repairer` runs them in order.
Changes go through `transaction`, which keeps the old values in a `backup`; a dry run changes an `overlay` instead
of the store.
"""

from omnizarr.tools.repairing.repair_report import Account, Action

__all__ = ["Account", "Action"]
