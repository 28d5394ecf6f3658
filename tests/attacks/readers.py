"""Files of other formats that are opened in place: whatever they say, and wherever they lead to."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.attacks.arena import SECRET, Field, attack
from tests.attacks.chunks import zeros
from tests.attacks.sizes import FAR, LOOKS, READS
from tests.readers import fits_files, grib_files

TRIES = (*LOOKS, *(each for each in READS if each != "omnizarr dump {x}"))
"""Without what prints every element."""
VAST = tuple(each for each in TRIES if "omnizarr convert" not in each or "--dry-run" in each)
"""Without what copies every element."""
IN_PLACE = tuple(each for each in LOOKS if "convert" not in each and "dump" not in each)
"""What looks, and reads no other document than those that a reader makes."""


def _file(field: Field) -> Path:
    return field.received / "x.h5"


@attack("files", "HDF5 in place: 10^15 chunks, of which 3 are stored", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w") as file:
        dataset = file.create_dataset("v", (10**15,), "u1", chunks=(1,))
        for at in (0, 77, FAR):
            dataset[at] = 1


@attack("files", "HDF5 in place: 10^15 chunks of the latest format, of which 3 are stored", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w", libver="latest") as file:
        dataset = file.create_dataset("v", (10**15,), "u1", chunks=(1,), maxshape=(None,))
        for at in (0, 77, 10**6):
            dataset[at] = 1


@attack("files", "HDF5 in place: 10^15 contiguous elements that are not stored", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w") as file:
        file.create_dataset("v", (10**15,), "u1")


@attack("files", "HDF5 in place: 10^15 texts that are not stored", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w") as file:
        file.create_dataset("v", (10**15,), h5py.string_dtype())
        file.create_dataset("w", (10**15,), h5py.string_dtype(), chunks=(1,))


@attack("files", "HDF5 in place: a chunk of 100 bytes that inflates to 1 GiB", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w") as file:
        dataset = file.create_dataset("v", (100,), "u1", chunks=(100,), compression="gzip")
        dataset.id.write_direct_chunk((0,), zeros(1 << 30, 15))


@attack("files", "HDF5 in place: groups in a circle", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w") as file:
        inner = file.create_group("a/b")
        inner["up"] = file["/"]
        inner["soft"] = h5py.SoftLink("/a")
        inner["self"] = h5py.SoftLink("self")
        inner["v"] = [1, 2, 3]


@attack("files", "HDF5 in place: a group in groups, 500 deep", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w") as file:
        below = file
        for _ in range(500):
            below = below.create_group("g")


@attack("files", "HDF5 in place: 3,000 groups", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w", libver="latest") as file:
        for number in range(3_000):
            file.create_group(f"g{number}")


@attack("files", "HDF5 in place: links and data outside", *TRIES)
def _(field: Field) -> None:
    import h5py

    size = len(SECRET)
    with h5py.File(field.secret.parent / "other.h5", "w") as file:
        file["d"] = list(SECRET.encode())
    layout = h5py.VirtualLayout((size,), "u1")
    layout[:] = h5py.VirtualSource("../elsewhere/other.h5", "d", (size,))
    with h5py.File(_file(field), "w") as file:
        file["link"] = h5py.ExternalLink(str(field.secret.parent / "other.h5"), "d")
        file.create_dataset("raw", (size,), "u1", external=[(str(field.secret), 0, size)])
        file.create_virtual_dataset("virtual", layout)
        file["v"] = [1, 2, 3]


@attack("files", "HDF5 in place: nothing but its signature", *TRIES)
def _(field: Field) -> None:
    _file(field).write_bytes(b"\x89HDF\r\n\x1a\n" + b"\xff" * 4000)


def _n5(field: Field, blocks: dict[str, bytes], at: str = "x.n5", **changes: object) -> None:
    """Lay an array of bytes in N5, with these blocks."""
    place = field.received / at
    place.mkdir(parents=True, exist_ok=True)
    said = {"dimensions": [10**15], "blockSize": [1], "dataType": "uint8", "compression": {"type": "raw"}, **changes}
    (place / "attributes.json").write_text(json.dumps(said))
    for key, value in blocks.items():
        (place / key).parent.mkdir(parents=True, exist_ok=True)
        (place / key).write_bytes(value)


@attack("files", "N5: 10^15 blocks, of which 3 are stored", *TRIES)
def _(field: Field) -> None:
    _n5(field, dict.fromkeys(("0", "77", str(FAR)), b"\0\0\0\1\0\0\0\1\7"))


@attack("files", "N5: a block of one byte in a chunk of 16 GiB", *TRIES)
def _(field: Field) -> None:
    sizes = {"dimensions": [2**31 - 1], "blockSize": [2**31 - 1], "dataType": "float64"}
    _n5(field, {"0": b"\0\0\0\1\0\0\0\1" + bytes(8)}, **sizes)


@attack("files", "N5: a block of 100 elements that inflates to 1 GiB", *TRIES)
def _(field: Field) -> None:
    bomb = zeros(1 << 30)
    compression = {"dimensions": [150], "blockSize": [100], "compression": {"type": "gzip"}}
    _n5(field, {"0": b"\0\0\0\1\0\0\0\x64" + bomb, "1": b"\0\0\0\1\0\0\0\x32" + bomb}, **compression)


@attack("files", "N5: LZ4 frames that say they hold 2 GiB", *TRIES)
def _(field: Field) -> None:
    frame = b"LZ4Block\x20" + (5).to_bytes(4, "little") + (2**31 - 1).to_bytes(4, "little") + bytes(9)
    _n5(field, {"0": b"\0\0\0\1\0\0\0\1" + frame}, dimensions=[1], compression={"type": "lz4"})


@attack("files", "N5: an array in an array, groups 300 deep, and links outside", *TRIES)
def _(field: Field) -> None:
    _n5(field, {"0": b"\0\0\0\1\0\0\0\1\7"}, dimensions=[3])
    _n5(field, {"0": b"\0\0\0\1\0\0\0\1\7"}, "x.n5/1/2", dimensions=[3])
    below = field.received / "x.n5" / "g"
    (below / "/".join("g" * 300)).mkdir(parents=True)
    (below / "up").symlink_to(field.received / "x.n5")
    (below / "outside").symlink_to(field.secret.parent)
    (field.received / "x.n5" / "2").symlink_to(field.secret)


def _volume(field: Field, files: dict[str, bytes], **changes: object) -> None:
    """Lay a volume of Neuroglancer of bytes, with these files."""
    place = field.received / "x"
    scale = {"key": "s", "size": [10**15, 1, 1], "chunk_sizes": [[1, 1, 1]], "encoding": "raw", "resolution": [8, 8, 8]}
    kind = {"data_type": changes.pop("data_type", "uint8"), "num_channels": 1, "type": "image"}
    (place / "s").mkdir(parents=True)
    (place / "info").write_text(json.dumps({**kind, "scales": [{**scale, **changes}]}))
    for key, value in files.items():
        (place / "s" / key).write_bytes(value)


def _sharding(minishard: int, shard: int, encoding: str = "raw") -> dict[str, object]:
    bits = {"preshift_bits": 0, "minishard_bits": minishard, "shard_bits": shard, "hash": "identity"}
    kind = {"@type": "neuroglancer_uint64_sharded_v1", "minishard_index_encoding": encoding, "data_encoding": encoding}
    return {"sharding": {**bits, **kind}}


@attack("files", "precomputed: 10^15 chunks, of which 3 are stored", *TRIES)
def _(field: Field) -> None:
    _volume(field, {f"{at}-{at + 1}_0-1_0-1": b"\7" for at in (0, 77, FAR)})


@attack("files", "precomputed: 10^15 chunks in shards, of which 3 are stored", *TRIES)
def _(field: Field) -> None:
    index = struct.pack("<9Q", 0, 77, FAR - 77, 0, 0, 0, 1, 1, 1)
    shard = struct.pack("<QQ", 3, 3 + len(index)) + b"\7\7\7" + index
    _volume(field, {"0.shard": shard}, **_sharding(0, 0))


@attack("files", "precomputed: a chunk of one byte in a chunk of 2^93 bytes", *VAST)
def _(field: Field) -> None:
    far = 2**31 - 1
    _volume(field, {f"0-{far}_0-{far}_0-{far}": b"\7"}, size=[far] * 3, chunk_sizes=[[far] * 3])


@attack("files", "precomputed: chunks and indexes that inflate to 1 GiB", *TRIES)
def _(field: Field) -> None:
    bomb = zeros(1 << 30)
    _volume(field, {"0-100_0-1_0-1": bomb}, size=[100, 1, 1], chunk_sizes=[[100, 1, 1]])
    place = field.received / "x"
    scale = {"key": "t", "size": [10**15, 1, 1], "chunk_sizes": [[1, 1, 1]], "encoding": "raw", "resolution": [8, 8, 8]}
    info = json.loads((place / "info").read_text())
    info["scales"].append({**scale, **_sharding(0, 0, "gzip")})
    (place / "info").write_text(json.dumps(info))
    (place / "t").mkdir()
    (place / "t" / "0.shard").write_bytes(struct.pack("<QQ", 0, len(bomb)) + bomb)


@attack("files", "precomputed: 4,096 minishards with one index of 100,000 chunks", *TRIES)
def _(field: Field) -> None:
    count = 100_000
    index = struct.pack(f"<{count}Q", 0, *([1] * (count - 1))) + bytes(16 * count)
    shard = struct.pack("<QQ", 0, len(index)) * 4096 + index
    _volume(field, {"0.shard": shard}, **_sharding(12, 0))


@attack("files", "precomputed: 2^32 minishards in 2^32 shards", *TRIES)
def _(field: Field) -> None:
    _volume(field, {f"{at:08x}.shard": bytes(1 << 16) for at in range(3)}, **_sharding(32, 32))


@attack("files", "precomputed: a segmentation of one block that says it has 2^90 voxels", *VAST)
def _(field: Field) -> None:
    far = 2**31 - 1
    block = {"encoding": "compressed_segmentation", "compressed_segmentation_block_size": [far] * 3}
    stored = struct.pack("<5I", 1, 2, 0, 7, 7)
    _volume(field, {"0-9_0-1_0-1": stored}, data_type="uint32", size=[9, 1, 1], chunk_sizes=[[9, 1, 1]], **block)


@attack("files", "precomputed: a picture that says it has 10^9 pixels", *TRIES)
def _(field: Field) -> None:
    head = struct.pack(">IIBBBBB", 10**5, 10**4, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I4s", len(head), b"IHDR") + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    stored = b"\x89PNG\r\n\x1a\n" + chunk
    _volume(field, {"0-9_0-1_0-1": stored}, size=[9, 1, 1], chunk_sizes=[[9, 1, 1]], encoding="png")


@attack("files", "precomputed: scales outside, and links outside", *TRIES)
def _(field: Field) -> None:
    _volume(field, {"0-1_0-1_0-1": b"\7"}, size=[3, 1, 1])
    place = field.received / "x"
    info = json.loads((place / "info").read_text())
    (first,) = info["scales"]
    outside = field.secret.parent
    info["scales"] += [{**first, "key": f"../../{outside.name}"}, {**first, "key": str(outside)}]
    (place / "info").write_text(json.dumps(info))
    (place / "s" / "1-2_0-1_0-1").symlink_to(field.secret)


def _ocdbt(field: Field, data: bytes, length: int, height: int = 0, offset: int = 0, path: bytes = b"d/x") -> None:
    """Lay a database of OCDBT, whose root is in the file d/x."""
    place = field.received / "x"
    (place / "d").mkdir(parents=True)
    (place / "d" / "x").write_bytes(data)
    table = _varints(1, len(path), 0) + path
    version = _varints(1, 1) + bytes([height, 0]) + _varints(offset, length) + bytes(3 + 8)
    body = bytes(17) + _varints(100, 1000) + b"\4\0" + table + version + b"\0"
    (place / "manifest.ocdbt").write_bytes(_wrapped(0x0CDB3A2A, body))


def _varints(*numbers: int) -> bytes:
    found = bytearray()
    for number in numbers:
        rest = number
        while rest > 127:
            found.append(rest & 127 | 128)
            rest >>= 7
        found.append(rest)
    return bytes(found)


def _wrapped(magic: int, body: bytes, *, compression: int = 0) -> bytes:
    from omnizarr.codecs.checksums import crc32c

    data = struct.pack(">I", magic) + struct.pack("<Q", 18 + len(body)) + bytes([0, compression]) + body
    return data + struct.pack("<I", crc32c(data))


def _tree_node(height: int, keys: Sequence[bytes], child: tuple[int, int] | None = None) -> bytes:
    """Return a node: one byte for each key, or one child below all of them, which they all begin with."""
    count = len(keys)
    lengths = [len(key) for key in keys]
    head = bytes([height]) + _varints(1, 3, 0) + b"d/x" + _varints(count, *[0] * (count - 1), *lengths)
    if child is None:
        return _wrapped(0x0CDB20DE, head + b"".join(keys) + _varints(*[1] * count) + bytes(count) + b"1" * count)
    columns = _varints(*[0] * count, *[child[0]] * count, *[child[1]] * count, *[0] * (3 * count))
    return _wrapped(0x0CDB20DE, head + _varints(*lengths) + b"".join(keys) + columns)


@attack("files", "OCDBT: 2^60 keys in a tree of 60 nodes", *TRIES)
def _(field: Field) -> None:
    data = _tree_node(0, [b".zgroup"])
    child = (0, len(data))
    for height in range(1, 61):
        child, data = (len(data), 0), data + _tree_node(height, [b"a/", b"b/"], child)
        child = (child[0], len(data) - child[0])
    _ocdbt(field, data, child[1], 60, child[0])


@attack("files", "OCDBT: a node that is its own child", *TRIES)
def _(field: Field) -> None:
    root = _tree_node(9, [b""], (0, len(_tree_node(9, [b""], (0, 100)))))
    _ocdbt(field, root, len(root), 9)


@attack("files", "OCDBT: keys of 64 KiB that share all but the last byte, 10^6 of them", *TRIES)
def _(field: Field) -> None:
    count = 1 << 20
    head = bytes([0]) + _varints(1, 3, 0) + b"d/x" + _varints(count)
    prefixes = _varints(60_000) + _varints(60_001) * (count - 2)
    body = head + prefixes + _varints(60_000) + b"\1" * (count - 1) + b"k" * 60_000 + b"a" * count
    root = _wrapped(0x0CDB20DE, body)
    _ocdbt(field, root, len(root))


@attack("files", "OCDBT: nodes that inflate to 1 GiB, and that say they have 2^62 bytes", *TRIES)
def _(field: Field) -> None:
    import numcodecs

    root = _wrapped(0x0CDB20DE, bytes(numcodecs.Zstd(1).encode(bytes(1 << 30))), compression=1)
    _ocdbt(field, root, len(root))


@attack("files", "OCDBT: a root of 2^61 bytes", *TRIES)
def _(field: Field) -> None:
    _ocdbt(field, b"x", 1 << 61)


@attack("files", "OCDBT: data files outside, and links outside", *TRIES)
def _(field: Field) -> None:
    outside = field.secret.parent
    _ocdbt(field, b"x", len(SECRET), path=f"../../{outside.name}/{field.secret.name}".encode())
    (field.received / "x" / "d" / "y").symlink_to(field.secret)


# -- repositories of Icechunk

REPOSITORY = tuple(
    f"omnizarr {each}"
    for each in (
        "info {x}",
        "tree {x}",
        "missing {x}",
        "check --data {x}",
        "stat {x}",
        "digest {x}",
        "convert --dry-run {x} {out}",
    )
)
COPIES = (*REPOSITORY, "omnizarr get {x}/v", "omnizarr convert {x} {out}")


def _repository(field: Field, container: str | None = None, location: str | None = None, length: int = 1) -> None:
    """Make a repository with an array, of which a chunk may lie elsewhere."""
    import icechunk
    import zarr

    config = icechunk.RepositoryConfig.default()
    if container is not None:
        store = icechunk.local_filesystem_store(container.removeprefix("file://"))
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(container, store))
    storage = icechunk.local_filesystem_storage(str(field.received / "repo"))
    session = icechunk.Repository.create(storage, config=config).writable_session("main")
    array = zarr.create_array(session.store, name="v", shape=(length,), chunks=(length,), dtype="u1", compressors=None)
    if location is None:
        array[...] = 1
    else:
        spec = icechunk.VirtualChunkSpec([0], location, 0, length)
        session.store.set_virtual_refs("v", [spec], validate_containers=False)
    session.commit("x")


@attack("files", "Icechunk: virtual chunks of a file of the victim", *COPIES)
def _(field: Field) -> None:
    _repository(field, f"file://{field.secret.parent}/", f"file://{field.secret}", len(SECRET))


@attack("files", "Icechunk: virtual chunks in a directory above", *COPIES)
def _(field: Field) -> None:
    _repository(field, f"file://{field.root}/", f"file://{field.secret}", len(SECRET))


@attack("files", "Icechunk: virtual chunks behind a link beside the repository", *COPIES)
def _(field: Field) -> None:
    inside = field.received / "repo" / "data"
    _repository(field, f"file://{inside}/", f"file://{inside}/x", len(SECRET))
    inside.mkdir()
    (inside / "x").symlink_to(field.secret)


@attack("files", "Icechunk: virtual chunks of 2^62 bytes", *COPIES)
def _(field: Field) -> None:
    import icechunk
    import zarr

    inside = field.received / "repo"
    config = icechunk.RepositoryConfig.default()
    store = icechunk.local_filesystem_store(f"{inside}/")
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(f"file://{inside}/", store))
    storage = icechunk.local_filesystem_storage(str(inside))
    session = icechunk.Repository.create(storage, config=config).writable_session("main")
    zarr.create_array(session.store, name="v", shape=(9,), chunks=(9,), dtype="u1", compressors=None)
    spec = icechunk.VirtualChunkSpec([0], f"file://{inside}/config.yaml", 0, 1 << 62)
    session.store.set_virtual_refs("v", [spec], validate_containers=False)
    session.commit("x")


@attack("files", "Icechunk: 10^9 chunks, of which 3 are stored", *REPOSITORY)
def _(field: Field) -> None:
    import icechunk
    import zarr

    storage = icechunk.local_filesystem_storage(str(field.received / "repo"))
    session = icechunk.Repository.create(storage).writable_session("main")
    array = zarr.create_array(session.store, name="v", shape=(10**9,), chunks=(1,), dtype="u1", compressors=None)
    for at in (0, 77, 10**9 - 1):
        array[at] = 1
    session.commit("x")


@attack("files", "Icechunk: snapshots of garbage", *COPIES)
def _(field: Field) -> None:
    _repository(field)
    for file in (field.received / "repo" / "snapshots").iterdir():
        file.write_bytes(file.read_bytes()[:40] + b"\xff" * 4000)


@attack("files", "Icechunk: a branch that is no snapshot", *COPIES)
def _(field: Field) -> None:
    _repository(field)
    (field.received / "repo" / "refs" / "branch.main" / "ref.json").write_text('{"snapshot": "../../../elsewhere"}')


def _tiff(field: Field) -> Path:
    return field.received / "x.tif"


def _page(*entries: tuple[int, int, int, int], following: int = 0) -> bytes:
    """Return a directory of a classic TIFF file: tag, type, count and value of each entry."""
    packed = b"".join(struct.pack("<HHII", *each) for each in sorted(entries))
    return struct.pack("<H", len(entries)) + packed + struct.pack("<I", following)


def _sized(height: int, width: int, *more: tuple[int, int, int, int]) -> Sequence[tuple[int, int, int, int]]:
    return ((256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (262, 3, 1, 1), (277, 3, 1, 1), *more)


@attack("files", "TIFF in place: 10^15 elements in one strip that is not stored", *VAST)
def _(field: Field) -> None:
    entries = _sized(2**31, 2**19, (259, 3, 1, 1), (273, 4, 1, 8), (279, 4, 1, 100))
    _tiff(field).write_bytes(struct.pack("<2sHI", b"II", 42, 8) + _page(*entries))


@attack("files", "TIFF in place: tiles of 2^31 rows and columns", *TRIES)
def _(field: Field) -> None:
    tile = ((322, 4, 1, 2**31), (323, 4, 1, 2**31), (324, 4, 1, 8), (325, 4, 1, 100))
    _tiff(field).write_bytes(struct.pack("<2sHI", b"II", 42, 8) + _page(*_sized(2**31, 2**31, (259, 3, 1, 8), *tile)))


@attack("files", "TIFF in place: a strip of 64 KiB that inflates to 64 MiB", *TRIES)
def _(field: Field) -> None:
    data = zlib.compress(bytes(1 << 26), 9)
    entries = _sized(10, 10, (259, 3, 1, 8), (273, 4, 1, 8), (278, 3, 1, 10), (279, 4, 1, len(data)))
    head = struct.pack("<2sHI", b"II", 42, 8 + len(data))
    _tiff(field).write_bytes(head + data + _page(*entries))


@attack("files", "TIFF in place: pages in a circle, and levels that lead back", *TRIES)
def _(field: Field) -> None:
    below = (330, 4, 1, 8)
    entries = _sized(10, 10, (259, 3, 1, 1), (273, 4, 1, 8), (278, 3, 1, 10), (279, 4, 1, 100), below)
    _tiff(field).write_bytes(struct.pack("<2sHI", b"II", 42, 8) + _page(*entries, following=8) + bytes(100))


@attack("files", "TIFF in place: 2,000 pages, each of another shape", *IN_PLACE)
def _(field: Field) -> None:
    parts, at = [], 8
    for number in range(2_000):
        entries = _sized(
            1 + number, 1, (259, 3, 1, 1), (273, 4, 1, 8), (278, 4, 1, 1 + number), (279, 4, 1, 1 + number)
        )
        length = 2 + 12 * len(entries) + 4
        parts.append(_page(*entries, following=at + length if number < 1_999 else 0))
        at += length
    _tiff(field).write_bytes(struct.pack("<2sHI", b"II", 42, 8) + b"".join(parts))


@attack("files", "TIFF in place: an XML of entities in entities", *TRIES)
def _(field: Field) -> None:
    lines = [f'<!ENTITY e{number} "{f"&e{number - 1};" * 10}">' for number in range(1, 12)]
    text = f'<!DOCTYPE OME [<!ENTITY e0 "bomb">{"".join(lines)}]><OME>&e11;</OME>'.encode()
    entries = _sized(10, 10, (259, 3, 1, 1), (270, 2, len(text), 8), (273, 4, 1, 8), (278, 3, 1, 10), (279, 4, 1, 100))
    head = struct.pack("<2sHI", b"II", 42, 8 + len(text))
    _tiff(field).write_bytes(head + text + _page(*entries) + bytes(100))


def _fits(field: Field) -> Path:
    return field.received / "x.fits"


@attack("files", "FITS in place: 10^15 elements that are not stored", *VAST)
def _(field: Field) -> None:
    sizes = [("NAXIS1", 10**5), ("NAXIS2", 10**10)]
    raw = fits_files.header([("SIMPLE", True), ("BITPIX", 8), ("NAXIS", 2), *sizes])
    _fits(field).write_bytes(raw + bytes(100))


@attack("files", "FITS in place: 10^15 rows in a table of 999 columns", *VAST)
def _(field: Field) -> None:
    columns = [{"TFORM": "J"} for _ in range(999)]
    raw = fits_files.table(columns, [], [], width=4 * 999).replace(
        b"NAXIS2  =                    0", b"NAXIS2  =     1000000000000000"
    )
    _fits(field).write_bytes(fits_files.image() + raw + bytes(100))


@attack("files", "FITS in place: texts of 2^31 bytes, bits and numbers in columns that are not stored", *VAST)
def _(field: Field) -> None:
    columns = [{"TFORM": f"{2**31}A"}, {"TFORM": f"{2**40}X"}, {"TFORM": f"{2**40}D"}, {"TFORM": f"{2**16}A"}]
    raw = fits_files.table(columns, [], [], width=2**44).replace(
        b"NAXIS2  =                    0", b"NAXIS2  =               100000"
    )
    _fits(field).write_bytes(fits_files.image() + raw + bytes(100))


@attack("files", "FITS in place: a tile of 100 bytes that inflates to 1 GiB, and rows that lead nowhere", *TRIES)
def _(field: Field) -> None:
    bomb = zeros(1 << 30)
    sizes = [("ZNAXIS", 1), ("ZNAXIS1", 20), ("ZTILE1", 10), ("ZIMAGE", True), ("ZCMPTYPE", "GZIP_1"), ("ZBITPIX", 16)]
    rows = [struct.pack(">ii", *each) for each in ((len(bomb), 0), (2**31 - 1, 2**31 - 1))]
    tiles = fits_files.table([{"TTYPE": "COMPRESSED_DATA", "TFORM": "1PB"}], rows, sizes, heap=bomb)
    lists = fits_files.table([{"TFORM": "PD"}, {"TFORM": "QA"}], [struct.pack(">iiqq", 2**31 - 1, 0, 2**62, 2**62)])
    _fits(field).write_bytes(fits_files.image() + tiles + lists)


@attack("files", "FITS in place: 3,000 units of one name", *IN_PLACE)
def _(field: Field) -> None:
    unit = fits_files.image(cards=[("EXTNAME", "X")], extension=True)
    _fits(field).write_bytes(fits_files.image() + 3_000 * unit)


@attack("files", "FITS in place: a header of 16 MiB without an end", *TRIES)
def _(field: Field) -> None:
    first = fits_files.card("SIMPLE", True) + fits_files.card("BITPIX", 8) + fits_files.card("NAXIS", 0)
    _fits(field).write_bytes(first.encode() + b"COMMENT x".ljust(80) * (1 << 18))


def _grib(field: Field) -> Path:
    return field.received / "x.grib2"


@attack("files", "GRIB in place: 10^9 points in a message of 200 bytes", *VAST)
def _(field: Field) -> None:
    raw = bytearray(grib_files.message2(grib_files.field2(np.zeros((1, 1), int), bits=0)))
    at = 16 + 21
    raw[at + 6 : at + 10] = raw[at + 30 : at + 34] = struct.pack(">I", 1 << 15)
    raw[at + 34 : at + 38] = struct.pack(">I", 1 << 15)
    raw[at + 6 : at + 10] = struct.pack(">I", 1 << 30)
    _grib(field).write_bytes(bytes(raw))


@attack("files", "GRIB in place: 3,000 messages, each with its own time, step and level", *VAST)
def _(field: Field) -> None:
    values = np.zeros((2, 2), int)
    parts = [
        grib_files.message2(grib_files.field2(values, level=(100, at), step=at), time=(1 + at, 1, 1, 0))
        for at in range(3_000)
    ]
    _grib(field).write_bytes(b"".join(parts))


@attack("files", "GRIB in place: groups of 2^32 points, a section that leads back, and rubbish", *TRIES)
def _(field: Field) -> None:
    groups = [(0, 0, [0]), (0, 0, [0] * 5)]
    five, seven = grib_files.complex2(groups, count=6)
    bomb = five[:37] + b"\xff" * 10 + five[47:]
    zeros = np.zeros((2, 3), int)
    circle = bytearray(grib_files.message2(grib_files.field2(zeros)))
    circle[16:20] = bytes(4)
    messages = grib_files.message2(grib_files.with_packing(zeros, bomb, seven)), bytes(circle)
    _grib(field).write_bytes(b"".join(messages) + b"GRIB" * 10_000 + bytes(1 << 20))
