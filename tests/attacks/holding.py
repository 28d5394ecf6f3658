"""What has held in every attack, and must go on to hold: names, links, pickles, terminals and the page."""

from __future__ import annotations

import io
import json
import os
import pickle
import sqlite3
import stat
import zipfile
from contextlib import closing

from tests.attacks.arena import Field, attack
from tests.attacks.browsers import served

GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
ARRAY = {
    "zarr_format": 3, "node_type": "array", "shape": [32], "data_type": "uint8", "fill_value": 0, "attributes": {},
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [32]}},
    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
}  # fmt: skip
LOOKS = ("omnizarr info {x}", "omnizarr tree {x}", "omnizarr ls {x}", "omnizarr check {x}", "omnizarr du {x}")
WHOLE = ("omnizarr check {x} --data", "omnizarr digest {x}", "omnizarr stat {x}", "omnizarr convert {x} {out}")

# -- keys and names ----------------------------------------------------------------------------

NAMES = ("../elsewhere/secret.txt", "/etc/passwd", "a/../../elsewhere/secret.txt", "..", "a//b", "a/./b", "")
STORES = (
    "omnizarr.storage.LocalStore('{x}')",
    "omnizarr.storage.ZipStore('{x}/../x.zip')",
    "omnizarr.storage.SQLiteStore('{x}/../x.sqlite')",
    "omnizarr.storage.MemoryStore()",
    "omnizarr.storage.PrefixStore(omnizarr.storage.LocalStore('{x}/..'), 'received')",
    "omnizarr.storage.CacheStore(omnizarr.storage.LocalStore('{x}'))",
    "omnizarr.storage.TranslatedStore('{x}')",
    "__import__('omnizarr.stores').stores.resolve('fsspec+file://{x}')[0]",
)
VERBS = """
from functools import partial
from omnizarr.stores import verbs
store = {store}
asked = (
    *(partial(verb, store) for verb in (verbs.get, verbs.size, verbs.exists, verbs.stamp, verbs.delete, verbs.pinned)),
    lambda key: verbs.get_spans(store, key, [(0, 1)]),
    lambda key: verbs.get_within(store, key, 100),
    lambda key: verbs.read_into(store, key, memoryview(bytearray(9))),
    lambda key: verbs.set(store, key, b"evil"),
    lambda key: verbs.set_if_absent(store, key, b"evil"),
    lambda key: verbs.set_partial(store, key, 0, b"evil"),
    lambda key: verbs.copy_value(store, key, "a"),
    lambda key: verbs.copy_value(store, "zarr.json", key),
)
for name in {names!r}:
    for verb in asked:
        try:
            verb(name)
        except omnizarr.errors.OmnizarrError:
            continue
        raise AssertionError(f"{{name!r}} is a key for {{verb}}")
"""
NODES = """
root = omnizarr.open_group("{x}", mode="r+")
for name in ("../elsewhere/secret.txt", "a/../../elsewhere/secret.txt", ".."):
    for verb in (root.create_group, lambda path: root.create_array(path, shape=2, dtype="i1"), root.__delitem__):
        try:
            verb(name)
        except (omnizarr.errors.OmnizarrError, KeyError):
            continue
        raise AssertionError(f"{name!r} is a name for {verb}")
"""


@attack(
    "files",
    "keys that lead out of any store, read and written",
    *(VERBS.format(store=store, names=NAMES) for store in STORES),
)
def _(field: Field) -> None:
    (field.received / "zarr.json").write_text(json.dumps(GROUP))
    with zipfile.ZipFile(field.root / "x.zip", "w") as archive:
        archive.writestr("zarr.json", json.dumps(GROUP))
    with closing(sqlite3.connect(field.root / "x.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE zarr(k TEXT PRIMARY KEY, v BLOB)")
    field.served = str(field.received)


@attack("files", "names of nodes that lead out of the store", NODES)
def _(field: Field) -> None:
    (field.received / "zarr.json").write_text(json.dumps(GROUP))
    field.served = str(field.received)


@attack("data", "entries of an archive whose names lead out of it", *LOOKS, *WHOLE, "omnizarr cp {x} {out}")
def _(field: Field) -> None:
    with zipfile.ZipFile(field.received / "x.zip", "w") as archive:
        archive.writestr("zarr.json", json.dumps(GROUP))
        for name in ("../elsewhere/new", "/tmp/omnizarr-evil", "a/../../elsewhere/secret.txt", "..\\evil", "C:/evil"):
            archive.writestr(name, b"evil")
        archive.writestr("../a/zarr.json", json.dumps(ARRAY))


@attack("data", "rows of a database whose keys lead out of it", "omnizarr cp sqlite://{x} {out}",
        "omnizarr convert sqlite://{x} {out}", "omnizarr tree sqlite://{x}")  # fmt: skip
def _(field: Field) -> None:
    with closing(sqlite3.connect(field.received / "x.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE zarr(k TEXT PRIMARY KEY, v BLOB)")
        rows = {"zarr.json": json.dumps(GROUP).encode(), "../elsewhere/new": b"evil", "/tmp/omnizarr-evil": b"evil"}
        connection.executemany("INSERT INTO zarr VALUES (?, ?)", rows.items())
    field.served = str(field.received / "x.sqlite")


# -- links -----------------------------------------------------------------------------------------

READS = tuple(
    f"with omnizarr.config.set(engine='{engine}'): print(bytes(omnizarr.open_array('{{x}}', mode='r')[...]))"
    for engine in ("native", "reference")
)
WRITES = tuple(
    f"with omnizarr.config.set(engine='{engine}'): omnizarr.open_array('{{x}}', mode='r+')[{part}] = 1"
    for engine in ("native", "reference")
    for part in ("...", ":3")
)


def _array(field: Field) -> None:
    (field.received / "zarr.json").write_text(json.dumps(ARRAY))
    field.served = str(field.received)


@attack("files", "a chunk is a link to a file outside, read", *READS, *WHOLE[:-1], "omnizarr cp {x} {out}")
def _(field: Field) -> None:
    _array(field)
    (field.received / "c").mkdir()
    (field.received / "c" / "0").symlink_to(field.secret)


@attack("files", "a chunk is a link to a file outside, written", *WRITES, changes=True)
def _(field: Field) -> None:
    _array(field)
    (field.received / "c").mkdir()
    (field.received / "c" / "0").symlink_to(field.secret)


@attack("files", "the directory of chunks is a link to one outside", *READS, *WRITES, *WHOLE[:-1], changes=True)
def _(field: Field) -> None:
    _array(field)
    (field.home / "0").write_bytes(field.secret.read_bytes()[:32])
    (field.received / "c").symlink_to(field.home)


@attack(
    "files",
    "a node is a link to a directory outside, written",
    "omnizarr attrs set {x}/a b=1",
    "omnizarr.open_group('{x}', mode='r+').create_array('a/new', shape=2, dtype='i1')",
    "omnizarr.open_group('{x}', mode='r+').create_group('a', overwrite=True)",
    "omnizarr rm -r {x}/a",
    "omnizarr consolidate {x}",
    changes=True,
)
def _(field: Field) -> None:
    (field.received / "zarr.json").write_text(json.dumps(GROUP))
    (field.home / "zarr.json").write_text(json.dumps(GROUP))
    (field.received / "a").symlink_to(field.home)
    field.served = str(field.received)


@attack("files", "an entry of an archive says that it is a link", *LOOKS, *READS)
def _(field: Field) -> None:
    with zipfile.ZipFile(field.received / "x.zip", "w") as archive:
        archive.writestr("zarr.json", json.dumps(ARRAY))
        entry = zipfile.ZipInfo("c/0")
        entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, str(field.secret)[:32].ljust(32))


# -- pickles -----------------------------------------------------------------------------------------


class _Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, (self.path,)


@attack("data", "pickled objects that run code", *WHOLE, "omnizarr.open_array('{x}', mode='r')[...]", *LOOKS[:2],
        "omnizarr dump {x}", "omnizarr show {x}")  # fmt: skip
def _(field: Field) -> None:
    (field.received / ".zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "fill_value": None, "order": "C",
        "filters": [{"id": "pickle"}], "compressor": None,
    }))  # fmt: skip
    (field.received / "0").write_bytes(pickle.dumps(_Bomb(str(field.home / "evil"))))
    field.served = str(field.received)


@attack("data", "chunks, documents and journals that are pickles or files of NumPy", *LOOKS, *WHOLE)
def _(field: Field) -> None:
    import numpy as np

    bomb = pickle.dumps(_Bomb(str(field.home / "evil")))
    file = io.BytesIO()
    np.save(file, np.array([_Bomb(str(field.home / "evil"))], dtype=object), allow_pickle=True)
    (field.received / "zarr.json").write_text(json.dumps(ARRAY))
    (field.received / "c").mkdir()
    (field.received / "c" / "0").write_bytes(file.getvalue())
    for name in (".zattrs", ".zarray", "meta", "attrs", "omnizarr-conversion.json", "omnizarr-cache"):
        (field.received / name).write_bytes(bomb)
    field.served = str(field.received)


# -- terminals -----------------------------------------------------------------------------------------

ESCAPE = "\x1b]0;evil\x07\x1b[2J\x1b[31m\x9b31m\r\u202e"
SHOWN = (
    *LOOKS, *WHOLE[:-1], "omnizarr attrs get {x}", "omnizarr dump {x}", "omnizarr diff {x} {x}/a",
    "omnizarr convert {x} {out} --dry-run", "omnizarr info {x}/a", "omnizarr show {x}/a",
    "print(omnizarr.open('{x}').info); print(omnizarr.open('{x}').tree()); print(repr(omnizarr.open('{x}')))",
    "omnizarr ls {x}/nothing",
)  # fmt: skip


def _said(attempt: str) -> str:
    """Return a try that fails if its output has control characters."""
    if attempt.startswith("omnizarr "):
        attempt = f"omnizarr.cli.main({attempt.split()[1:]!r})"
    body = attempt.replace("\n", "\n    ")
    return f"""
import contextlib, io
said = io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit, KeyError,
                                                                                   omnizarr.errors.OmnizarrError):
    {body}
odd = [character for character in said.getvalue() if not character.isprintable() and character not in "\\n\\t"]
assert not odd, repr(odd[:9])
"""


@attack("data", "escapes for terminals in names, attributes, units and errors", *map(_said, SHOWN))
def _(field: Field) -> None:
    words = {ESCAPE: ESCAPE, "units": ESCAPE, "long_name": [ESCAPE], "_ARRAY_DIMENSIONS": [ESCAPE]}
    array = {**ARRAY, "attributes": words, "dimension_names": [ESCAPE]}
    documents = {"a": array, ESCAPE.replace("/", "") + "b": array, "c": {**array, "data_type": ESCAPE}}
    (field.received / "zarr.json").write_text(json.dumps({**GROUP, "attributes": words}))
    for name, document in documents.items():
        (field.received / name).mkdir()
        (field.received / name / "zarr.json").write_text(json.dumps(document))
    field.served = str(field.received)


# -- the page, and who may ask -------------------------------------------------------------------------

SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>"
OF_PAGE = """
import pathlib, http.client, tempfile
from urllib.parse import quote, urlsplit
from omnizarr.web.serving import running
from omnizarr.web.viewing import viewer
page = pathlib.Path(tempfile.mkdtemp()); (page / "index.html").write_text("<p>page")
group = omnizarr.create_group({{}}, attributes={{"title": {script!r}}})
group.create_array({script!r}.replace("/", "|"), data=np.arange(6).reshape(2, 3), attributes={{"units": {script!r}}})
with running(viewer(group, page=page)) as url:
    for target in ("/api/datasets", "/api/0/info?path=", "/api/0/tree", "/api/0/info?path=" + quote({script!r}),
                   "/api/0/" + quote({script!r}), "/data/0/" + quote({script!r}), "/tiles/0/1.1/" + quote({script!r}),
                   "/data/0/zarr.json", "/" + quote({script!r})):
        line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        line.request("GET", target)
        answer = line.getresponse()
        body = answer.read().decode("utf-8", "replace")
        told = dict((name.lower(), value) for name, value in answer.getheaders())
        assert "<script" not in body or told["content-type"].startswith("application/json"), (target, told)
        assert told["x-content-type-options"] == "nosniff", (target, told)
        policy = told["content-security-policy"]
        assert "script-src 'self'" in policy or "default-src 'self'" in policy or "default-src 'none'" in policy, policy
        assert "unsafe-eval" not in policy, policy
        scripts = [part for part in policy.split(";") if "script-src" in part]
        assert "unsafe-inline" not in "".join(scripts), policy
"""


@attack("browsers", "script in names and attributes, in all that the page gets", OF_PAGE.format(script=SCRIPT))
def _(field: Field) -> None:
    pass


@attack(
    "browsers",
    "a name of the attacker that means this machine",
    *(
        served(f"answer = ask(url, '/zarr.json', Host={host!r})", "assert answer.status in (400, 403, 421)",
               options=", hosts=()")
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost@evil.example", "", "[::1",
                     "localhost.evil.example:8000")
    ),
)  # fmt: skip
def _(field: Field) -> None:
    pass


@attack(
    "browsers",
    "guesses of the token",
    *(
        served(f"answer = ask(url, {target!r}, **{fields!r})", "assert answer.status == 401, answer.status",
               "assert b't0ken' not in answer.body", options=", token='t0ken'")
        for target, fields in (
            ("/zarr.json", {}), ("/zarr.json?token=", {}), ("/zarr.json?token=t0ke", {}),
            ("/zarr.json?token=T0KEN", {}),
            ("/a/c/0", {"Authorization": "Basic t0ken"}), ("/a/c/0", {"Authorization": "Bearer"}),
            ("/", {"Cookie": "omnizarr=t0ken"}), ("/nothing", {"Authorization": "Bearer t0ken2"}),
        )
    ),
)  # fmt: skip
def _(field: Field) -> None:
    pass


@attack(
    "browsers",
    "paths that lead out of what is served",
    *(
        served(f"answer = ask(url, {target!r})", "assert answer.status in (400, 404), answer.status")
        for target in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
                       "/a/..%5c..%5cetc", "/a/%00", "/file:///etc/passwd")
    ),
)  # fmt: skip
def _(field: Field) -> None:
    pass


MANY = ",".join(f"{start}-{start}" for start in range(5000))


@attack(
    "browsers",
    "ranges that overlap, are very many, or huge",
    *(
        served(f"answer = ask(url, '/a/c/0', Range={text!r})", "assert answer.status in (200, 206, 416), answer.status",
               "assert len(answer.body) < 100_000, len(answer.body)")
        for text in (f"bytes={MANY}", "bytes=" + ",".join(["0-"] * 60), "bytes=0-999999999999999999", "bytes=5-1",
                     "bytes=-999999999999999999", "bytes=" + "9" * 4000 + "-", "bytes=0-0," + "-1," * 50)
    ),
    memory=256 << 20,
)  # fmt: skip
def _(field: Field) -> None:
    pass


CODED = (
    "import zlib",
    "kind = dict(zarr_format=2, fill_value=-1, compressors=dict(id='zlib', level=9))",
    "big = omnizarr.create_array({}, shape=1 << 22, chunks=1 << 22, dtype='i4', **kind)",
    "big[:] = np.random.default_rng(1).integers(0, 99, 1 << 22)",
    "sent = lambda other, at: ask(other, '/c/0', Range=f'bytes={at}-{at}').status",
    "with running(application(big)) as other: got = {sent(other, at) for at in range(1000)}",
    "assert got == {206}, got",
)


@attack("browsers", "1,000 ranges of one byte of a chunk that is encoded again", served(*CODED), cpu=60)
def _(field: Field) -> None:
    pass
