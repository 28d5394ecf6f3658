"""Sets of Kerchunk references: what they name, and what they become."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

from tests.attacks.arena import SECRET, Field, attack

SIZE = len(SECRET)
ARRAY = {
    "zarr_format": 2,
    "shape": [SIZE],
    "chunks": [SIZE],
    "dtype": "|u1",
    "compressor": None,
    "filters": None,
    "order": "C",
    "fill_value": 0,
}
GROUP = '{"zarr_format": 2}'
READS = (
    "omnizarr convert {x} {out}",
    "omnizarr cp {x} {out}",
    "omnizarr stat {x}",
    "print(bytes(omnizarr.open('{x}')['a'][:]))",
)
LOOKS = ("omnizarr info {x}", "omnizarr tree {x}", "omnizarr du {x}", "omnizarr ls {x}")
TEXT = "print(bytes(omnizarr.open('{x}')['a'][:]))"


def refs(url: object, **more: object) -> dict[str, object]:
    """Return a set with one array, whose chunk is a file."""
    entry = url if isinstance(url, list) else [url]
    return {"version": 1, "refs": {".zgroup": GROUP, "a/.zarray": json.dumps(ARRAY), "a/0": entry}, **more}


def write(field: Field, document: object, name: str = "refs.json") -> Path:
    path = field.received / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    field.served = str(path)
    return path


def parquet(field: Field, name: str, url: str, *, shape: int = SIZE, rows: int = 1, record_size: int = 10) -> Path:
    """Write a set in Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = field.received / name
    (path / "a").mkdir(parents=True)
    array = {**ARRAY, "shape": [shape], "chunks": [SIZE]}
    documents = {"metadata": {".zgroup": {"zarr_format": 2}, "a/.zarray": array}, "record_size": record_size}
    (path / ".zmetadata").write_text(json.dumps(documents))
    columns = {
        "path": pa.array([url]).dictionary_encode().take(pa.array([0] * rows)),
        "offset": pa.array([0] * rows, pa.int64()),
        "size": pa.array([0] * rows, pa.int64()),
        "raw": pa.array([None] * rows, pa.binary()),
    }
    pq.write_table(pa.table(columns), path / "a" / "refs.0.parq", compression="zstd")
    field.served = str(path)
    return path


# -- files of this machine


@attack("data", "a directory that looks like Zarr is Kerchunk Parquet, of a secret file", *READS, refused=True)
def _(field: Field) -> None:
    parquet(field, "downloaded.zarr", str(field.secret))


@attack("data", "a file of no ending holds references to a secret file", *READS, refused=True)
def _(field: Field) -> None:
    write(field, refs(str(field.secret)), "downloaded")


@attack("data", "named sets in Parquet lead to a secret file", *READS, refused=True)
def _(field: Field) -> None:
    parquet(field, "refs.parq", str(field.secret))


@attack("data", "named sets lead to a secret file by its path", *READS, refused=True)
def _(field: Field) -> None:
    write(field, refs(str(field.secret)))


@attack("data", "named sets lead to a secret file by a relative path", *READS, refused=True)
def _(field: Field) -> None:
    write(field, refs("../elsewhere/secret.txt"))


@attack("data", "named sets lead to a secret file in the current directory", *READS, refused=True)
def _(field: Field) -> None:
    (field.home / ".netrc").write_text(SECRET)
    write(field, refs(".netrc"))


@attack("files", "named sets lead to a secret file through a link", *READS, refused=True)
def _(field: Field) -> None:
    write(field, refs("data.bin"))
    (field.received / "data.bin").symlink_to(field.secret)


@attack("files", "named sets lead to a secret file through a link to a directory", *READS, refused=True)
def _(field: Field) -> None:
    write(field, refs("data/secret.txt"))
    (field.received / "data").symlink_to(field.secret.parent)


URLS_OF_FILES = (
    *("file://{}", "file:{}", "FILE://{}", "file://localhost{}", "local://{}", "local:{}", "simplecache::file://{}"),
    *("filecache::file://{}", "dir://{}", "zip://a::{}", "tar://a::file://{}", "fsspec+file://{}"),
)


def _set_of_urls(field: Field) -> None:
    for number, url in enumerate(URLS_OF_FILES):
        write(field, refs(url.format(field.secret)), f"refs{number}.json")
    field.served = str(field.received)


@attack(
    "data",
    "named sets lead to a secret file by URLs of many schemes",
    *(TEXT.replace("{x}", f"{{x}}/refs{number}.json") for number in range(len(URLS_OF_FILES))),
    refused=True,
)
def _(field: Field) -> None:
    _set_of_urls(field)


@attack(
    "data",
    "references in memory lead to a secret file",
    "import json; print(bytes(omnizarr.open(json.load(open('{x}')))['a'][:]))",
    "print(bytes(omnizarr.open('reference://', storage_options={'fo': '{x}'})['a'][:]))",
    "print(bytes(omnizarr.open('reference::{x}')['a'][:]))",
    "print(bytes(omnizarr.open('reference://', storage_options={'fo': '{x}', 'remote_protocol': 'file'})['a'][:]))",
    refused=True,
)
def _(field: Field) -> None:
    write(field, refs(str(field.secret)))


@attack("data", "templates make the path of a secret file", *READS, refused=True)
def _(field: Field) -> None:
    write(field, refs("{{u}}/secret.txt", templates={"u": str(field.secret.parent)}))


@attack("data", "rules make the path of a secret file", *READS, refused=True)
def _(field: Field) -> None:
    rule = {"key": "a/{{i}}", "url": "{{u}}/secret.txt", "dimensions": {"i": {"stop": 1}}}
    document = refs("x", templates={"u": str(field.secret.parent)}, gen=[rule])
    write(field, document)


@attack("data", "targets in memory of this process", TEXT, refused=True)
def _(field: Field) -> None:
    write(field, refs("memory://other/secret"))


# -- the victim's network


def _asks(field: Field, *urls: str) -> None:
    port = field.url.rpartition(":")[2]
    for number, url in enumerate(urls):
        write(field, refs(url.format(port=port)), f"refs{number}.json")
    field.served = str(field.received)


HOSTS = (
    *("http://127.0.0.1:{port}/x", "http://localhost:{port}/x", "http://127.1:{port}/x", "http://2130706433:{port}/x"),
    *("http://0x7f000001:{port}/x", "http://0177.0.0.1:{port}/x", "http://0.0.0.0:{port}/x", "http://[::1]:{port}/x"),
    *("http://[::ffff:127.0.0.1]:{port}/x", "http://127.0.0.1.:{port}/x", "http://localhost.:{port}/x"),
    *("http://a.localhost:{port}/x", "HTTP://127.0.0.1:{port}/x", "http://example.org@127.0.0.1:{port}/x"),
    *("http://127.0.0.1:{port}\\@example.org/x", "http://127。0。0。1:{port}/x", "http://%31%32%37.0.0.1:{port}/x"),
    *("http://①②⑦.0.0.1:{port}/x", "simplecache::http://127.0.0.1:{port}/x", "fsspec+http://127.0.0.1:{port}/x"),
)


@attack(
    "servers",
    "sets lead to hosts of the victim's network, by many spellings",
    *(TEXT.replace("{x}", f"{{x}}/refs{number}.json") for number in range(len(HOSTS))),
    refused=True,
)
def _(field: Field) -> None:
    _asks(field, *HOSTS)


@attack("servers", "sets lead to the addresses of clouds and private networks", TEXT, refused=True)
def _(field: Field) -> None:
    write(field, refs("http://169.254.169.254/latest/meta-data/"))


@attack("servers", "a directory that looks like Zarr leads to the victim's network", *READS, refused=True)
def _(field: Field) -> None:
    parquet(field, "downloaded.zarr", f"{field.url}/x")


BUCKETS = ("s3://127.0.0.1:{port}#/x", "s3://a@127.0.0.1:{port}/x", "gs://127.0.0.1:{port}?/x", "az://c@127.0.0.1/x")


@attack(
    "servers",
    "names of buckets that are hosts",
    *(TEXT.replace("{x}", f"{{x}}/refs{number}.json") for number in range(len(BUCKETS))),
    refused=True,
)
def _(field: Field) -> None:
    _asks(field, *BUCKETS)


# -- memory and time


@attack("data", "references in gzip that inflate", *LOOKS, refused=True)
def _(field: Field) -> None:
    with gzip.open(field.received / "refs.json.gz", "wb", 1) as file:
        file.write(b'{"version": 1, "refs": {')
        for _ in range(160):
            file.write(b" " * (1 << 22))
        file.write(b"}}")


@attack("data", "references in Zstandard that inflate", *LOOKS, refused=True)
def _(field: Field) -> None:
    import numcodecs

    pieces = [numcodecs.Zstd(1).encode(b" " * (1 << 26))] * 12
    (field.received / "refs.json.zst").write_bytes(b"".join(pieces))


@attack("data", "references in gzip are more lists than memory", *LOOKS, refused=True)
def _(field: Field) -> None:
    with gzip.open(field.received / "refs.json.gz", "wb", 1) as file:
        file.write(b'{"version": 1, "refs": {"a": [[]')
        for _ in range(10):
            file.write(b",[]" * (1 << 20))
        file.write(b"]}}")


@attack("data", "references in gzip are more keys than memory", *LOOKS, refused=True)
def _(field: Field) -> None:
    with gzip.open(field.received / "refs.json.gz", "wb", 1) as file:
        file.write(b'{"version": 1, "refs": {"a": ["b"]')
        for number in range(3_000_000 // 10_000):
            keys = range(number * 10_000, (number + 1) * 10_000)
            file.write("".join(f',"{key:x}":["x"]' for key in keys).encode())
        file.write(b"}}")


@attack("files", "references in a sparse file", *LOOKS, refused=True)
def _(field: Field) -> None:
    with (field.received / "refs.json").open("wb") as file:
        file.write(b'{"version": 1, "refs": {}}')
        file.truncate(6 << 30)


@attack("files", "metadata of references in a sparse file", *LOOKS, refused=True)
def _(field: Field) -> None:
    (field.received / "refs.parq").mkdir()
    with (field.received / "refs.parq" / ".zmetadata").open("wb") as file:
        file.truncate(6 << 30)


RULES = (
    {"key": "a/{{i}}", "url": "x", "dimensions": {"i": {"stop": 10_000_000}}},
    {"key": "a/{{i}}.{{j}}", "url": "x", "dimensions": {"i": {"stop": 3000}, "j": {"stop": 3000}}},
    {"key": "a/{{i}}", "url": "x", "dimensions": {"i": {"stop": 10**30}}},
    {"key": "a/{{i}}", "url": "x", "dimensions": {"i": {"start": 0, "stop": -(10**15), "step": -1}}},
    {"key": "a/{{ '%03d' % i }}", "url": "{{ i * 2 }}", "dimensions": {"i": {"stop": 9_000_000}}},
)


@attack("data", "rules that make very many references", *LOOKS[:1], refused=True)
def _(field: Field) -> None:
    write(field, refs("x", gen=[RULES[0]]))


@attack("data", "rules that make very many references together", *LOOKS[:1], refused=True)
def _(field: Field) -> None:
    rule = {"key": "a/{{i}}", "url": "x", "dimensions": {"i": {"stop": 100_000}}}
    write(field, refs("x", gen=[rule] * 500))


@attack("data", "rules in several dimensions", *LOOKS[:1], refused=True)
def _(field: Field) -> None:
    write(field, refs("x", gen=[RULES[1]]))


@attack("data", "rules of ranges beyond all integers", *LOOKS[:1], refused=True)
def _(field: Field) -> None:
    write(field, refs("x", gen=[RULES[2]]))


@attack("data", "rules of ranges that go down", *LOOKS[:1], refused=True)
def _(field: Field) -> None:
    write(field, refs("x", gen=[RULES[3]]))


@attack("data", "rules with computed names", *LOOKS[:1], refused=True)
def _(field: Field) -> None:
    write(field, refs("x", gen=[RULES[4]]))


PROGRAMS = (
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}{{u}}",
    "{{ 'a' * 9999999999 }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{{ '%9999999999d' % 1 }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ '{:>999999999}'.format(1) }}",
    "{{ '{:>{}}'.format(1, 999999999) }}",
    "{{ 'a'.ljust(999999999) }}",
    "{{ 'a'|center(999999999) }}",
    "{{ lipsum(n=99999999) }}",
    "{{ range(99999)|list * 99999 }}",
    "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
    "{{ g(g=g) }}",
    "{{ h.__class__.__mro__[1].__subclasses__() }}",
    "{{ 'a'.replace('a', 'a' * 4000).replace('a', 'a' * 4000).replace('a', 'a' * 4000) }}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "{{ " + "-" * 3000 + "1 }}",
    "{{ " + "u ~ " * 900 + "u }}",
)


@attack(
    "data",
    "templates that never end, or fill the memory",
    *(TEXT.replace("{x}", f"{{x}}/refs{number}.json") for number in range(len(PROGRAMS))),
    refused=True,
)
def _(field: Field) -> None:
    templates = {"u": "x" * 1000, "g": "{{ g(g=g) }}{{ g(g=g) }}", "h": "{{ x }}"}
    for number, program in enumerate(PROGRAMS):
        write(field, refs(program, templates=templates), f"refs{number}.json")
    field.served = str(field.received)


@attack("data", "a set in Parquet with very many rows", *LOOKS, TEXT)
def _(field: Field) -> None:
    parquet(field, "refs.parq", "x" * 200, shape=SIZE * 3, rows=5_000_000, record_size=5_000_000)


@attack("data", "a set in Parquet with more rows than a record has", TEXT, refused=True)
def _(field: Field) -> None:
    parquet(field, "refs.parq", "x" * 200, shape=SIZE * 3, rows=5_000_000, record_size=10)


@attack("data", "a set in Parquet whose names are long", TEXT, refused=True)
def _(field: Field) -> None:
    parquet(field, "refs.parq", "x" * (1 << 20), shape=SIZE * 3, rows=30_000, record_size=30_000)


@attack("data", "a set in Parquet of a grid that never ends", *LOOKS)
def _(field: Field) -> None:
    parquet(field, "refs.parq", "x", shape=SIZE * 10**15, rows=10, record_size=10)


ODD = (
    {"record_size": 0},
    {"record_size": -1},
    {"record_size": 10**30},
    {"shape": [-5]},
    {"chunks": [0]},
    {"chunks": [-1]},
    {"shape": [1.5]},
    {"shape": "ab"},
    {"dimension_separator": 5},
)


@attack(
    "data",
    "odd metadata of sets in Parquet",
    *(
        f"from omnizarr.stores import ReferenceStore; list(ReferenceStore('{{x}}/r{number}.parq').list())"
        for number in range(len(ODD))
    ),
)
def _(field: Field) -> None:
    for number, change in enumerate(ODD):
        path = parquet(field, f"r{number}.parq", "x")
        document = json.loads((path / ".zmetadata").read_text())
        where = document if "record_size" in change else document["metadata"]["a/.zarray"]
        where.update(change)
        (path / ".zmetadata").write_text(json.dumps(document))
    field.served = str(field.received)


VALUES = (
    '["x", Infinity, 1]',
    '["x", NaN, 1]',
    '["x", 1e400, 1]',
    '["x", 0, 1e18]',
    "[[]]",
    "17",
    "null",
    '"base64:?"',
)


@attack(
    "data",
    "odd references",
    *(TEXT.replace("{x}", f"{{x}}/refs{number}.json") for number in range(len(VALUES))),
    refused=True,
)
def _(field: Field) -> None:
    (field.received / "x").write_text("short")
    for number, value in enumerate(VALUES):
        array = json.dumps(json.dumps(ARRAY))
        write(field, f'{{"version": 1, "refs": {{"a/.zarray": {array}, "a/0": {value}}}}}', f"refs{number}.json")
    field.served = str(field.received)


DOCUMENTS = (
    *('{"version": 1, "refs": {}, "templates": 5}', '{"version": 1, "refs": {}, "templates": [1]}'),
    *('{"version": 1, "refs": {}, "gen": 5}', '{"version": 1, "refs": {}, "gen": [5]}', "[" * 100_000),
    '{"version": 1, "refs": {}, "gen": [{"key": "a", "url": "x", "dimensions": {"i": {"stop": "a"}}}]}',
    '{"version": 1, "refs": {}, "gen": [{"key": "a", "url": "x", "dimensions": {"i": {"stop": 1, "step": 0}}}]}',
    '{"version": 1, "refs": {"a/0": ["{{u}}"]}, "templates": {"u": {}, "1": null}}',
    '{"version": 1, "refs": {}, "gen": [{"key": "a", "url": "x", "dimensions": {"__self__": [1], "self": [2]}}]}',
    '{"version": 1, "refs": {}, "gen": [{"key": "a", "url": "x", "dimensions": {"i": {"stop": 1e400}}}]}',
    '{"version": 1, "refs": {}, "gen": [{"key": "a", "url": "x", "offset": 1e400, "length": 1, "dimensions": {}}]}',
)


@attack(
    "data",
    "odd documents of references",
    *(
        f"from omnizarr.stores import ReferenceStore; ReferenceStore('{{x}}/refs{number}.json')"
        for number in range(len(DOCUMENTS))
    ),
)
def _(field: Field) -> None:
    for number, text in enumerate(DOCUMENTS):
        write(field, text, f"refs{number}.json")
    field.served = str(field.received)


@attack("files", "a set of references is a pipe, or leads to one", "omnizarr info {x}/refs.json", TEXT, refused=True)
def _(field: Field) -> None:
    write(field, refs("pipe"))
    os.mkfifo(field.received / "pipe")
    (field.received / "a").mkdir()
