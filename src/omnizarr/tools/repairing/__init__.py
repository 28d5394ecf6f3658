"""Mending what a check finds, without guessing.

`policy` says what is mended by default, and what only if it is asked for. `mistakes` corrects documents within their
own text (`formats.jsontext`), `missing` writes documents that others speak of, `copies` makes consolidated metadata
again, `stored` looks after shards and chunks, `leftovers` after temporary files and locks. `repairer` puts them in
order. What is changed goes through `transaction`, which keeps the old values in a `backup`; a dry run changes an
`overlay` instead of the store.
"""

from omnizarr.tools.repairing.repair_report import Account, Action

__all__ = ["Account", "Action"]
