"""SQLite and LMDB databases."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

from tests.attacks.arena import COMPLETE, SECRET, Field, attack

MAGIC = bytes.fromhex("d9d505f920a163d7")
GROUP = b'{"zarr_format": 3, "node_type": "group", "attributes": {}}'
ENVIRONMENT = Path(__file__).parents[1] / "stores" / "data" / "zarr2.lmdb"
READS = (
    "omnizarr info {x}",
    "omnizarr tree {x}",
    "omnizarr check {x}",
    "omnizarr du {x}",
    "omnizarr digest {x}",
    "omnizarr convert {x} {out}",
    "omnizarr.open_group('{x}', mode='r')",
    COMPLETE,
)
NAMED = tuple(attempt.replace("{x}", "sqlite://{x}") for attempt in READS)
CHANGES = ("omnizarr attrs set sqlite://{x} a=1", "omnizarr create sqlite://{x}/new --shape 2 --dtype int8")


def database(path: Path, *, wal: bool = False) -> None:
    """Write a database with one group, as zarr-python 2 would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        if wal:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE zarr(k TEXT PRIMARY KEY, v BLOB)")
        connection.execute("INSERT INTO zarr VALUES ('zarr.json', ?)", (GROUP,))


def journal(path: Path, super_journal: str) -> bytes:
    """Return a journal that an interrupted transaction of several databases leaves; its name leads elsewhere."""
    size = path.stat().st_size
    head = MAGIC + struct.pack(">5I", 1, 7, size // 4096, 512, 4096)
    page = path.read_bytes()[:4096]
    checksum = (7 + sum(page[4096 - 200 :: -200])) & 0xFFFFFFFF
    name = super_journal.encode()
    tail = struct.pack(">I", 0x40000000 // 4096 + 1) + name
    tail += struct.pack(">II", len(name), sum(name) & 0xFFFFFFFF) + MAGIC
    return head.ljust(512, b"\0") + struct.pack(">I", 1) + page + struct.pack(">I", checksum) + tail


def hostile(field: Field, name: str, *, wal: bool = False) -> None:
    path = field.received / name
    database(path, wal=wal)
    path.with_name(name + "-journal").write_bytes(journal(path, str(field.secret)))
    field.served = str(path)


@attack("files", "SQLite by another name, with a journal that deletes a file", *READS)
def _(field: Field) -> None:
    hostile(field, "downloaded.zarr")


@attack("files", "SQLite with a journal that deletes a file, read", *READS[:-1], *NAMED[:-1], refused=True)
def _(field: Field) -> None:
    hostile(field, "downloaded.sqlite")


@attack("files", "SQLite in WAL mode with a journal that deletes a file, read", *READS[:-1], refused=True)
def _(field: Field) -> None:
    hostile(field, "downloaded.sqlite", wal=True)


@attack("files", "SQLite with a journal that deletes a file, completed", READS[-1], NAMED[-1])
def _(field: Field) -> None:
    hostile(field, "downloaded.sqlite")


@attack("files", "SQLite with a journal that deletes a file, written", *CHANGES, refused=True)
def _(field: Field) -> None:
    hostile(field, "downloaded.sqlite")


@attack("files", "SQLite with a journal that is a link", *READS, *CHANGES, changes=True)
def _(field: Field) -> None:
    database(field.received / "x.sqlite")
    (field.received / "x.sqlite-journal").symlink_to(field.secret)
    field.served = str(field.received / "x.sqlite")


@attack("files", "SQLite with WAL files that are links", *READS, *CHANGES, changes=True)
def _(field: Field) -> None:
    database(field.received / "x.sqlite", wal=True)
    for name in ("x.sqlite-wal", "x.sqlite-shm"):
        (field.received / name).symlink_to(field.secret)
    field.served = str(field.received / "x.sqlite")


@attack("files", "SQLite with a view and triggers for a table", *NAMED, *CHANGES, changes=True)
def _(field: Field) -> None:
    path = field.received / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t(k TEXT PRIMARY KEY, v BLOB)")
        connection.execute("CREATE VIEW zarr AS SELECT k, readfile('/etc/passwd') AS v FROM t")
    field.served = str(path)


@attack("files", "LMDB in a directory by another name, with pages missing", *READS[:-1], refused=True)
def _(field: Field) -> None:
    environment(field, "downloaded.zarr", lambda data: data[: 2 * 4096 + 100])


@attack("files", "LMDB with pages missing", *READS[:-1], refused=True, changes=True)
def _(field: Field) -> None:
    environment(field, "downloaded.lmdb", lambda data: data[: 2 * 4096 + 100])


@attack("files", "LMDB whose last page is far away", *READS[:-1], refused=True, changes=True)
def _(field: Field) -> None:
    def far(data: bytes) -> bytes:
        changed = bytearray(data)
        for page in (0, 4096):
            changed[page + 16 + 24 + 96 : page + 16 + 24 + 104] = struct.pack("<Q", 1 << 40)
        return bytes(changed)

    environment(field, "downloaded.lmdb", far)


def environment(field: Field, name: str, change) -> None:
    shutil.copytree(ENVIRONMENT, field.received / name)
    data = field.received / name / "data.mdb"
    data.write_bytes(change(data.read_bytes()))
    (field.received / name / "lock.mdb").unlink(missing_ok=True)
    assert SECRET not in data.read_bytes().decode("latin-1")
