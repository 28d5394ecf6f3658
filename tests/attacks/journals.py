"""Journals: what omnizarr writes for itself, to undo, continue or finish something, and reads again."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

from tests.attacks.arena import Field, attack

EVIL = b"evil"
GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
UNDO = ("omnizarr repair --undo {x} --yes", "omnizarr.undo_repair('{x}', dry_run=False)")
DRY = ("omnizarr repair --undo {x}",)
MARK = ".omnizarr-repair-20260102T030405"
CONVERSION = "omnizarr-conversion.json"


def account(folder: Path, store: object, *changes: dict[str, object]) -> None:
    """Write the account of a repair that has never been: it puts `EVIL` at each of some keys."""
    (folder / "values").mkdir(parents=True, exist_ok=True)
    lines: list[object] = [{"omnizarr_repair": 1, "store": store}]
    for number, change in enumerate(changes):
        kept = f"values/{number:06}"
        if not (folder / kept).is_symlink():
            (folder / kept).write_bytes(EVIL)
        entry = {"code": "temporary-file", "path": "", "lock": "zarr.json", "kept": kept, "after": None}
        lines.append({**entry, "before": sha256(EVIL).hexdigest(), **change})
    (folder / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def place(path: object, kind: str = "directory", prefix: str = "") -> dict[str, str]:
    return {"kind": kind, "path": str(path), "prefix": prefix}


@attack("files", "undo of a repair in a directory elsewhere", *UNDO, refused=True)
def _(field: Field) -> None:
    account(field.received, place(field.home), {"key": ".profile"}, {"key": "autostart/evil.desktop"})
    field.served = str(field.received)


@attack("files", "undo of a repair in a hierarchy elsewhere", *UNDO, *DRY, refused=True)
def _(field: Field) -> None:
    (field.home / "x.zarr").mkdir()
    (field.home / "x.zarr" / "zarr.json").write_text(json.dumps(GROUP))
    account(field.received / f"x.zarr{MARK}", place(field.home / "x.zarr"), {"key": "c/0"})


@attack("files", "undo of a repair called after a directory beside", *UNDO, *DRY, refused=True)
def _(field: Field) -> None:
    account(field.root / f"home{MARK}", place(field.home), {"key": ".profile"})
    field.served = str(field.root / f"home{MARK}")


@attack("files", "undo of a repair beside a hierarchy that is a link", *UNDO, *DRY, refused=True)
def _(field: Field) -> None:
    (field.home / "zarr.json").write_text(json.dumps(GROUP))
    (field.received / "x.zarr").symlink_to(field.home)
    account(field.received / f"x.zarr{MARK}", place(field.received / "x.zarr"), {"key": ".profile"})
    field.served = str(field.received / f"x.zarr{MARK}")


def _beside(field: Field, *changes: dict[str, object], links: dict[str, Path] | None = None) -> None:
    store = field.received / "x.zarr"
    store.mkdir()
    (store / "zarr.json").write_text(json.dumps(GROUP))
    for name, target in (links or {}).items():
        (store / name).symlink_to(target)
    field.served = str(field.received / f"x.zarr{MARK}")
    account(Path(field.served), place(store), *changes)


NAMED = ("omnizarr repair {x}/../x.zarr --undo {x} --yes",)


@attack("files", "undo of a repair with keys that lead out of the store", *UNDO, *NAMED, *DRY, refused=True)
def _(field: Field) -> None:
    _beside(field, {"key": "../../home/.profile"})


@attack("files", "undo of a repair with keys that are paths", *UNDO, *NAMED, *DRY, refused=True)
def _(field: Field) -> None:
    _beside(field, {"key": str(field.home / ".profile")})


@attack("files", "undo of a repair with locks that lead out of the store", *UNDO, *NAMED, *DRY, refused=True)
def _(field: Field) -> None:
    _beside(field, {"key": "a", "lock": "../../home/.profile"})


@attack("files", "undo of a repair with files of others", *UNDO, *NAMED, *DRY, refused=True)
def _(field: Field) -> None:
    _beside(field, {"key": "../../home/.omnizarr-x", "is_file": True})


@attack("files", "undo of a repair in directories that are links", *UNDO, *NAMED, changes=True, refused=True)
def _(field: Field) -> None:
    _beside(field, {"key": "a/.omnizarr-x.tmp", "is_file": True}, {"key": "a/b"}, links={"a": field.home})


@attack("files", "undo of a repair in files that are links", *UNDO, *NAMED, changes=True)
def _(field: Field) -> None:
    link = {".omnizarr-x.tmp": field.home / ".profile", "b": field.home / ".profile"}
    _beside(field, {"key": ".omnizarr-x.tmp", "is_file": True}, {"key": "b"}, links=link)


@attack("files", "undo of a repair with old values that are links", *UNDO, *NAMED, refused=True)
def _(field: Field) -> None:
    values = field.received / f"x.zarr{MARK}" / "values"
    values.mkdir(parents=True)
    (values / "000000").symlink_to(field.secret)
    _beside(field, {"key": "stolen", "before": sha256(field.secret.read_bytes()).hexdigest()})


@attack("files", "undo of a repair whose journal is endless", *UNDO, *DRY, refused=True, memory=256 << 20)
def _(field: Field) -> None:
    (field.received / "a").mkdir()
    with (field.received / "journal.jsonl").open("wb") as file:
        file.truncate(6 << 30)
    field.served = str(field.received)


@attack("files", "undo of a repair whose journal is a pipe or a link", *UNDO, refused=True)
def _(field: Field) -> None:
    os.mkfifo(field.received / "journal.jsonl")
    field.served = str(field.received)


ODD = (None, [], {}, 1, "a", {"kind": "directory"}, place("s3://bucket/x"), place("x", kind="url"), place("/", "zip"))


@attack("files", "undo of a repair of an odd place", *(f"omnizarr repair --undo {{x}}/{n} --yes" for n in range(9)),
        refused=True)  # fmt: skip
def _(field: Field) -> None:
    for number, odd in enumerate(ODD):
        account(field.received / str(number), odd, {"key": "a"})
    field.served = str(field.received)


KINDS = {"source": 1, "options": [1], "began": "x", "broken": {"": [1]}, "verify": "x", "source_digest": {}}
RESUMED = tuple(
    f"omnizarr {verb} {{x}}/../source {{x}}/{name} --resume" for name in KINDS for verb in ("convert", "cp")
)


@attack("files", "resuming by journals with odd members", *RESUMED, changes=True)
def _(field: Field) -> None:
    (field.root / "source").mkdir()
    (field.root / "source" / "zarr.json").write_text(json.dumps(GROUP))
    plain = {"source": "/x", "source_format": "v3", "target_format": "v3", "options": {}, "source_digest": "",
             "target_digest": "", "verify": True, "broken": {}, "version": 1, "began": 0.0}  # fmt: skip
    for name, odd in KINDS.items():
        (field.received / name).mkdir()
        (field.received / name / CONVERSION).write_text(json.dumps({"omnizarr_conversion": {**plain, name: odd}}))
    field.served = str(field.received)


@attack("files", "deleting leftovers by a journal in a directory that is a link", "omnizarr rm -r {x}/a", changes=True)
def _(field: Field) -> None:
    (field.home / CONVERSION).write_text(json.dumps({"omnizarr_conversion": {"options": {"delete": "all"}}}))
    (field.home / "0").write_bytes(b"\0")
    (field.received / "zarr.json").write_text(json.dumps(GROUP))
    (field.received / "a").symlink_to(field.home)
    field.served = str(field.received)
