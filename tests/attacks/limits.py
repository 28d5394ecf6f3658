"""Documents that are far larger than any document, in every kind of store that can hold one."""

from __future__ import annotations

import gzip
import json
import sqlite3
import struct
import zipfile
from contextlib import closing

import lmdb

from tests.attacks.arena import Field, attack
from tests.attacks.chunks import BYTES, GZIP, document
from tests.attacks.servers import endless, give, respond, serving

SIZE = 6 << 30
LOOKS = ("omnizarr info {x}", "omnizarr tree {x}", "omnizarr check {x}", "omnizarr convert {x} {out}")
SMALL = {"refused": True, "memory": 300 << 20}
NAMES = ("zarr.json", ".zarray", ".zgroup", ".zmetadata", ".zattrs", "__zmeta__", "meta")
FIELD_OF_THEIRS = "omnizarr.open(zarr.storage.{kind}({argument}), mode='r')"
V2 = json.dumps({
    "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "fill_value": 0, "order": "C",
    "filters": None, "compressor": None,
}).encode()  # fmt: skip


def sparse(field: Field, name: str, size: int = SIZE) -> None:
    with (field.received / name).open("wb") as file:
        file.truncate(size)


for _name in NAMES:

    @attack(
        "data",
        f"a sparse {_name} of 6 GB",
        *LOOKS[:2],
        "omnizarr.open('{x}', mode='r')",
        **({} if _name == "__zmeta__" else SMALL),
    )
    def _(field: Field, name: str = _name) -> None:
        if name == ".zattrs":
            (field.received / ".zarray").write_bytes(V2)
        (field.received / "other").touch()
        sparse(field, name)


@attack("data", "a sparse zarr.json of 6 GB in a store of another library", *(
    f"import zarr.storage, fsspec\nomnizarr.open({opened}, mode='r')"
    for opened in (
        "zarr.storage.LocalStore('{x}')",
        "type('Own', (zarr.storage.LocalStore,), dict())('{x}')",
        "zarr.storage.LoggingStore(zarr.storage.LocalStore('{x}'))",
        "zarr.storage.FsspecStore.from_url('file://{x}')",
        "fsspec.get_mapper('file://{x}')",
        "'fsspec+file://{x}'",
        "omnizarr.stores.CacheStore(omnizarr.stores.LocalStore('{x}'))",
        "omnizarr.stores.MetricsStore(omnizarr.stores.LocalStore('{x}'))",
        "omnizarr.stores.PrefixStore(omnizarr.stores.LocalStore('{x}/..'), '{x}'.rpartition('/')[2])",
    )
), **SMALL)  # fmt: skip
def _(field: Field) -> None:
    (field.received / "other").touch()
    sparse(field, "zarr.json")


@attack("data", "a sparse zarr.json of 6 GB in an event loop", "import asyncio, omnizarr.aio\n"
        "asyncio.run(omnizarr.aio.open('{x}'))", **SMALL)  # fmt: skip
def _(field: Field) -> None:
    (field.received / "other").touch()
    sparse(field, "zarr.json")


@attack("data", "a member of a group with a sparse zarr.json of 6 GB", "omnizarr tree {x}", "omnizarr check {x}",
        "dict(omnizarr.open_group('{x}', mode='r').members())", memory=300 << 20)  # fmt: skip
def _(field: Field) -> None:
    (field.received / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    (field.received / "a").mkdir()
    sparse(field, "a/zarr.json")


def zipped(field: Field, key: str, size: int) -> None:
    with zipfile.ZipFile(field.received / "x.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        if key != "zarr.json":
            archive.writestr("zarr.json", document(BYTES, GZIP))
        with archive.open(key, "w", force_zip64=True) as entry:
            for _piece in range(size >> 20):
                entry.write(bytes(1 << 20))


@attack("data", "a zarr.json that inflates to 1 GB in a zip archive", *LOOKS, **SMALL)
def _(field: Field) -> None:
    zipped(field, "zarr.json", 1 << 30)


@attack("data", "a zarr.json that inflates to 200 MB in a zip archive which says 100 bytes", *LOOKS[:3], **SMALL)
def _(field: Field) -> None:
    zipped(field, "zarr.json", 200 << 20)
    path = field.received / "x.zip"
    data = bytearray(path.read_bytes())
    true = struct.pack("<I", 200 << 20)
    zipped64 = struct.pack("<Q", 200 << 20)
    data = data.replace(zipped64, struct.pack("<Q", 100)).replace(true, struct.pack("<I", 100))
    path.write_bytes(data)


@attack("data", "a zarr.json of 900 MB in SQLite", *LOOKS, **SMALL, cpu=30)
def _(field: Field) -> None:
    with closing(sqlite3.connect(field.received / "x.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE zarr(k TEXT PRIMARY KEY, v BLOB)")
        connection.execute("INSERT INTO zarr VALUES ('zarr.json', zeroblob(900000000))")


@attack("data", "a zarr.json of 700 MB in LMDB", *LOOKS[:3], refused=True, memory=1 << 30, cpu=30)
def _(field: Field) -> None:
    with lmdb.open(str(field.received / "x.lmdb"), subdir=False, map_size=1 << 30) as environment, \
            environment.begin(write=True) as transaction:  # fmt: skip
        transaction.put(b"zarr.json", bytes(700_000_000))


@attack("data", "references of 600 MB, compressed", "omnizarr info {x}", refused=True, memory=400 << 20)
def _(field: Field) -> None:
    with gzip.open(field.received / "x.json.gz", "wb", compresslevel=1) as file:
        for _piece in range(600):
            file.write(b" " * (1 << 20))


@attack("data", "a sparse file of references of 6 GB", "omnizarr info {x}", **SMALL)
def _(field: Field) -> None:
    sparse(field, "x.json")


@attack("data", "a document of references is a sparse file of 6 GB", "omnizarr info {x}/r.json", **SMALL)
def _(field: Field) -> None:
    sparse(field, "big")
    (field.received / "r.json").write_text(json.dumps({"version": 1, "refs": {"zarr.json": ["big"]}}))


# -- servers ------------------------------------------------------------------------------------

URLS = tuple(
    f"omnizarr.open({url}, mode='r'{options})"
    for url, options in (
        ("'{x}/x.zarr'", ", storage_options=dict(max_retries=1, retry_timeout=1)"),
        ("'{x}/x.zarr?sig=1'", ", storage_options=dict(max_retries=1, retry_timeout=1)"),
        ("'fsspec+{x}/x.zarr'", ""),
        ("omnizarr.stores.CacheStore(omnizarr.stores.ObjectStore.from_url('{x}/x.zarr', dict(max_retries=1)))", ""),
    )
)
S3 = (
    "omnizarr.open('s3://bucket/x.zarr', mode='r', storage_options=dict("
    "endpoint='{x}', anon=True, allow_http=True, region='us-east-1', max_retries=1, retry_timeout=1))"
)
AWAITED = (
    "import asyncio, omnizarr.aio\nasyncio.run(omnizarr.aio.open('{x}/x.zarr'))",
    "import asyncio, omnizarr.aio\nasyncio.run(omnizarr.aio.open" + S3.removeprefix("omnizarr.open") + ")",
)
BOUNDED = {"refused": True, "memory": 256 << 20, "cpu": 20}


@attack("servers", "5 GB for every document", *URLS, S3, *AWAITED, **BOUNDED)
def _(field: Field) -> None:
    field.served = serving(field, lambda handler: endless(handler, 200, length=5000 << 20))


@attack("servers", "5 GB for every document, of unknown length", *URLS, S3, *AWAITED,
        refused=True, memory=800 << 20, cpu=30)  # fmt: skip
def _(field: Field) -> None:
    field.served = serving(field, lambda handler: endless(handler, 200))


@attack(
    "servers",
    "5 GB as the part of a document that was asked for",
    *URLS,
    S3,
    *AWAITED,
    refused=True,
    memory=800 << 20,
    cpu=30,
)
def _(field: Field) -> None:
    def answer(handler) -> None:
        last = (handler.headers.get("Range") or "bytes=0-1").rpartition("-")[2]
        endless(handler, 206, Content_Range=f"bytes 0-{last or 1}/{5000 << 20}")

    field.served = serving(field, answer)


@attack("servers", "900 MB for a chunk of 4 bytes", *(
    f"omnizarr.config.set(dict(engine='{engine}', fetch='{fetch}'))\n{url.replace('open(', 'open_array(', 1)}[:]"
    for url in (*URLS, S3)
    for engine, fetch in (("native", "native"), ("native", "python"), ("reference", "python"))
), **BOUNDED)  # fmt: skip
def _(field: Field) -> None:
    def answer(handler) -> None:
        if "/c/" in handler.path or handler.path.endswith("/c"):
            endless(handler, 200, length=900 << 20)
        else:
            name = "/x.zarr/zarr.json"
            handler.path = handler.path.removeprefix("/bucket")
            give(handler, {name: document(BYTES, GZIP)})

    field.served = serving(field, answer)


@attack("servers", "no answer but 404", *URLS[:3], S3, **BOUNDED)
def _(field: Field) -> None:
    field.served = serving(field, lambda handler: respond(handler, 404))
