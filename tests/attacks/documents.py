"""Documents of nodes and their names."""

from __future__ import annotations

import json

from tests.attacks.arena import Field, attack

GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
LOOKS = ("omnizarr info {x}", "omnizarr tree {x}", "omnizarr check {x}", "omnizarr convert {x} {out}")


@attack("data", "consolidated metadata names nodes outside the store", *LOOKS)
def _(field: Field) -> None:
    names = ("../elsewhere", "/etc", "a/../../elsewhere", "..")
    copies = {"kind": "inline", "must_understand": False, "metadata": dict.fromkeys(names, GROUP)}
    (field.received / "zarr.json").write_text(json.dumps({**GROUP, "consolidated_metadata": copies}))


@attack("files", "a document is a link to a file outside", *LOOKS, refused=True)
def _(field: Field) -> None:
    (field.received / "zarr.json").symlink_to(field.secret)
