"""Small documents that describe huge arrays: commands take the time of what is stored, or end in an error."""

from __future__ import annotations

import json
from typing import Any

from tests.attacks.arena import Field, attack

LOOKS = (
    "omnizarr info {x}",
    "omnizarr info --json {x}",
    "omnizarr tree {x}",
    "omnizarr ls -r {x}",
    "omnizarr du {x}",
    "omnizarr missing {x}",
    "omnizarr advise {x}",
    "omnizarr show {x}",
    "omnizarr dump -h {x}",
    "omnizarr attrs {x}",
    "omnizarr check {x}",
    "omnizarr check --data {x}",
    "omnizarr repair --dry-run {x}",
    "omnizarr convert --dry-run {x} {out}",
    "x = omnizarr.open('{x}', mode='r'); repr(x), str(x.info), x._repr_html_(), x.metadata.to_dict()",
)
READS = (
    "omnizarr get {x}",
    "omnizarr dump {x}",
    "omnizarr stat {x}",
    "omnizarr digest {x}",
    "omnizarr diff {x} {x}",
    "omnizarr convert {x} {out}",
    "omnizarr convert --to v2 {x} {out}",
    "omnizarr cp {x} {out}",
    "omnizarr pyramid {x} {out}",
    "x = omnizarr.open_array('{x}', mode='r'); x.nchunks_initialized, x.nbytes_stored(), x.info_complete()",
    "x = omnizarr.open_array('{x}', mode='r'); x[(0,) * x.ndim], x[(-1,) * x.ndim]",
    "omnizarr.open_array('{x}', mode='r')[...]",
    "import xarray; print(xarray.open_dataset('{x}', engine='omnizarr'))",
)
FEW = (*LOOKS[:2], *LOOKS[10:12], *LOOKS[-2:], *READS[2:4], READS[5], *READS[9:])
WRITES = (
    "omnizarr consolidate {x}",
    "omnizarr attrs {x} --set a=1",
    "omnizarr mv {x} {out}",
)


def array(field: Field, *chunks: str, at: str = "x.zarr", **changes: Any) -> None:
    """Lay an array in Zarr v3, with chunks of one byte at these keys."""
    place = field.received / at
    place.mkdir(parents=True, exist_ok=True)
    document = {
        "zarr_format": 3, "node_type": "array", "shape": [10**15], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}], "attributes": {},
        **changes,
    }  # fmt: skip
    (place / "zarr.json").write_text(json.dumps(document))
    for key in chunks:
        (place / key).parent.mkdir(parents=True, exist_ok=True)
        (place / key).write_bytes(b"\1")


def grid(*chunk_shape: int) -> dict[str, object]:
    """Return a regular grid."""
    return {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}}


def sharded(*chunk_shape: int) -> dict[str, object]:
    """Return the codec of shards."""
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": list(chunk_shape),
            "codecs": [{"name": "bytes"}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        },
    }


FAR = 10**15 - 1
VAST = (*LOOKS, *(each for each in READS if each != "omnizarr dump {x}"))
"""Without what prints every element."""


@attack(
    "data",
    "a grid of 10^15 chunks, of which 3 are stored",
    *VAST,
    "omnizarr convert --chunks 1000000 {x} {out}",
    "omnizarr convert --chunks 1000000 --shards 10000000 {x} {out}",
    "omnizarr stat --json {x}",
    "omnizarr digest --json {x}",
    "x = omnizarr.open_array('{x}', mode='r'); next(iter(x)), len(x), 5 in x[:3]",
)
def _(field: Field) -> None:
    array(field, "c/0", "c/77", f"c/{FAR}")


@attack(
    "data",
    "a grid of 10^15 chunks is written",
    *WRITES,
    "omnizarr resize {x} 1000000",
    "omnizarr resize {x} 1000000000000000000",
    "omnizarr repair {x}",
    "x = omnizarr.open_array('{x}', mode='r+'); x.resize(10); assert list(x.store.list_prefix('c/')) == ['c/0']",
    "x = omnizarr.open_array('{x}', mode='r+'); x.append(np.ones(3, 'u1'))",
    changes=True,
)
def _(field: Field) -> None:
    array(field, "c/0", "c/77", f"c/{FAR}")


@attack("data", "a grid of 10^15 chunks of Zarr v2, of which 3 are stored", *VAST, "omnizarr convert --to v3 {x} {out}")
def _(field: Field) -> None:
    place = field.received / "x.zarr"
    place.mkdir()
    document = {
        "zarr_format": 2,
        "shape": [10**15],
        "chunks": [1],
        "dtype": "|u1",
        "order": "C",
        "filters": None,
        "compressor": None,
        "fill_value": 0,
    }
    (place / ".zarray").write_text(json.dumps(document))
    for name in ("0", "77", str(FAR)):
        (place / name).write_bytes(b"\1")


@attack(
    "data",
    "a grid of 10^8 x 10^8 chunks, of which 3 are stored",
    *VAST,
    "omnizarr convert --chunks 1000,1000 {x} {out}",
)
def _(field: Field) -> None:
    array(
        field,
        "c/0/0",
        "c/77/99",
        "c/99999999/99999999",
        shape=[10**8, 10**8],
        chunk_grid=grid(1, 1),
        dimension_names=["y", "x"],
    )


@attack("data", "a group with a grid of 10^15 chunks", *VAST[:-4])
def _(field: Field) -> None:
    array(field, "c/0", "c/77", f"c/{FAR}", at="x.zarr/t", dimension_names=["t"])
    array(field, "c/0", "c/77", f"c/{FAR}", at="x.zarr/v", dimension_names=["t"])
    (field.received / "x.zarr/zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group"}))


@attack(
    "data",
    "coordinates along two dimensions, in chunks of 2^62 bytes, of 10^5 names",
    "omnizarr show {x}/t",
    "from omnizarr.web import facts; x = facts.Dataset(omnizarr.open('{x}', mode='r'), ''); x.info('t'), x.small('t')",
)
def _(field: Field) -> None:
    names = " ".join(["lat", "lon", "t", "../t", *(f"n{number}" for number in range(10**5))])
    plane: dict[str, Any] = {"shape": [40, 50], "dimension_names": ["y", "x"]}
    array(field, at="x.zarr/t", **plane, chunk_grid=grid(40, 50), attributes={"coordinates": names})
    array(field, "c/0/0", at="x.zarr/lat", **plane, chunk_grid=grid(2**31, 2**31))
    array(field, "c/0/0", at="x.zarr/lon", **plane, chunk_grid=grid(1, 1))
    (field.received / "x.zarr/zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group"}))


@attack(
    "data",
    "an axis of 2^53 shards of 2^10 chunks",
    *VAST,
    "import xarray; print(xarray.open_dataset('{x}', engine='omnizarr'))",
)
def _(field: Field) -> None:
    array(field, "c/0", shape=[2**63 - 1], chunk_grid=grid(2**10), codecs=[sharded(1)], dimension_names=["x"])


# Without `convert`, which goes on beside a broken chunk, and asks it for each of very many blocks: see security.md.
@attack("data", "a shard of 2^40 chunks", *(each for each in VAST if not each.startswith("omnizarr convert")))
def _(field: Field) -> None:
    array(field, "c/0", shape=[2**40], chunk_grid=grid(2**40), codecs=[sharded(1)])


@attack("data", "64 dimensions of 2 chunks", *VAST)
def _(field: Field) -> None:
    array(field, "/".join("c" + "0" * 64), "/".join("c" + "1" * 64), shape=[2] * 64, chunk_grid=grid(*[1] * 64))


@attack("data", "a thousand dimensions", *FEW)
def _(field: Field) -> None:
    array(field, shape=[2] * 1000, chunk_grid=grid(*[1] * 1000))


@attack("data", "10^5 dimensions", *FEW)
def _(field: Field) -> None:
    array(field, shape=[2] * 10**5, chunk_grid=grid(*[1] * 10**5), dimension_names=[f"x{n}" for n in range(10**5)])


@attack("data", "lengths of 4000 digits", *FEW)
def _(field: Field) -> None:
    array(field, "c/0", shape=[10**4000])


@attack("data", "a type of structs in structs, 60 levels", *FEW)
def _(field: Field) -> None:
    data_type: object = "uint8"
    for n in range(60):
        data_type = {"name": "struct", "configuration": {"fields": [{"name": f"f{n}", "data_type": data_type}]}}
    array(field, "c/0", shape=[2], chunk_grid=grid(2), data_type=data_type, fill_value="AA==")


@attack("data", "strings of 10^9 characters", *FEW)
def _(field: Field) -> None:
    array(
        field,
        "c/0",
        shape=[2],
        chunk_grid=grid(2),
        data_type={"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * 10**9}},
        fill_value="",
    )


@attack("data", "raw bytes of 10^9", *FEW)
def _(field: Field) -> None:
    array(field, "c/0", shape=[2], chunk_grid=grid(2), data_type=f"r{8 * 10**9}", fill_value=[0])


@attack("data", "a chunk of 2^60 elements", *FEW)
def _(field: Field) -> None:
    array(field, "c/0", shape=[2**60], chunk_grid=grid(2**60))


@attack("data", "shards in shards, 60 levels", *FEW)
def _(field: Field) -> None:
    codecs: list[dict[str, object]] = [sharded(1)]
    for _ in range(60):
        codecs = [{**sharded(2), "configuration": {**sharded(2)["configuration"], "codecs": codecs}}]
    array(field, "c/0", shape=[2**20], chunk_grid=grid(2**10), codecs=codecs)


@attack("data", "lengths of 5000 digits", *FEW)
def _(field: Field) -> None:
    array(field, "c/0", shape=["HERE"])
    document = field.received / "x.zarr/zarr.json"
    document.write_text(document.read_text().replace('"HERE"', "1" * 5000))


@attack("data", "10^15 rectilinear chunks", *VAST)
def _(field: Field) -> None:
    edges = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[1, 10**15]]]}}
    array(field, "c/0", f"c/{FAR}", chunk_grid=edges)


@attack("data", "a type of 20,000 fields", *FEW[:3])
def _(field: Field) -> None:
    fields = [{"name": f"f{n}", "data_type": "uint8"} for n in range(20_000)]
    array(
        field,
        "c/0",
        shape=[2],
        chunk_grid=grid(2),
        data_type={"name": "struct", "configuration": {"fields": fields}},
        fill_value={each["name"]: 0 for each in fields},
    )


@attack("data", "a type of 20,000 fields in Zarr v2", *FEW[:3])
def _(field: Field) -> None:
    place = field.received / "x.zarr"
    place.mkdir()
    document = {
        "zarr_format": 2,
        "shape": [2],
        "chunks": [2],
        "dtype": [[f"f{n}", "|u1"] for n in range(20_000)],
        "order": "C",
        "filters": None,
        "compressor": None,
        "fill_value": None,
    }
    (place / ".zarray").write_text(json.dumps(document))
    (place / "0").write_bytes(bytes(40_000))


@attack("data", "20,000 codecs", *FEW[:3])
def _(field: Field) -> None:
    array(field, "c/0", shape=[2], chunk_grid=grid(2), codecs=[{"name": "bytes"}, *[{"name": "crc32c"}] * 20_000])


@attack(
    "data",
    "a URL of 120 kB in an error",
    *(f"from omnizarr.stores.redaction import redact; redact('{text}' * 40_000)" for text in ("://", "://a?", "a@:")),
    cpu=10,
)
def _(_: Field) -> None:
    pass


@attack(
    "data",
    "documents of 200 kB of which nothing matches",
    *(f"from omnizarr.formats.lenient import mend; mend({text} * 100_000)" for text in ("'\\\\\"'", "' '", "','")),
    "from omnizarr.formats.lenient import mend; mend('0' * 200_000 + 'x')",
    "from omnizarr.formats.jsontext import JSONText; JSONText('\\\\\"' * 100_000).quote_nonfinite()",
    "from omnizarr.formats.documents import _BREAK; _BREAK.sub('', ' ' * 200_000)",
    "from omnizarr.netcdf.layouts.attributes import _TOKENS; _TOKENS.findall('\\\\\"' * 100_000)",
    "from omnizarr.netcdf.filters import _PARAMETER; _PARAMETER.fullmatch('0' * 200_000 + '!')",
    cpu=10,
)
def _(_: Field) -> None:
    pass


@attack(
    "data",
    "keys of 400 kB",
    *(
        f"from omnizarr.stores import MemoryStore; text = '{text}' * {400_000 // len(text)} + '{end}'; "
        "from tests.attacks.sizes import laid; list(omnizarr.check(MemoryStore(laid(text))))"
        for text, end in (("0/", "x"), ("0/", "0"), ("a/", "x"), ("meta/", "a"), ("meta/", "a.array"), ("1", "x"))
    ),
    "from omnizarr.stores import MemoryStore; from tests.attacks.sizes import laid; "
    "omnizarr.convert(MemoryStore(laid('0/' * 20_000 + 'x')), MemoryStore(), zarr_format=2)",
    cpu=10,
)
def _(_: Field) -> None:
    pass


def laid(key: str) -> dict[str, bytes]:
    """Return the documents of a group with an array, and some keys of other things."""
    document = {
        "zarr_format": 3, "node_type": "array", "shape": [10], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": grid(1), "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
    }  # fmt: skip
    group = {"zarr_format": 3, "node_type": "group"}
    return {
        "zarr.json": json.dumps(group).encode(),
        "a/zarr.json": json.dumps(document).encode(),
        **dict.fromkeys((key, f"a/{key}", f"a/c/{key}", f"b/{key}"), b""),
    }
