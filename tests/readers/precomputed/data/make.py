"""Write tensorstore.zip (TensorStore 0.1.86) and cloudvolume.zip (CloudVolume 12.15.2): ``python make.py NAME``."""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIZE, CHUNK, OFFSET, RESOLUTION = [21, 13, 7], [8, 8, 4], [5, -6, 2], [8, 8, 40]
SHARDING = {
    "@type": "neuroglancer_uint64_sharded_v1",
    "preshift_bits": 1,
    "minishard_bits": 2,
    "shard_bits": 1,
}
VOLUMES = [
    # encoding, data type, channels
    ("raw", "uint8", 1),
    ("raw", "int16", 2),
    ("raw", "float32", 1),
    ("raw", "uint64", 1),
    ("png", "uint8", 1),
    ("png", "uint16", 3),
    ("jpeg", "uint8", 1),
    ("jpeg", "uint8", 3),
    ("compressed_segmentation", "uint32", 1),
    ("compressed_segmentation", "uint64", 2),
]


def values(dtype, channels, encoding):
    """Return what is in a volume: x, y, z, channel. Pictures with a loss get what has little."""
    x, y, z, c = np.indices((*SIZE, channels))
    if encoding == "jpeg":
        return (8 * x + 3 * z).astype(dtype)
    if "seg" in encoding or encoding == "compresso":
        return (((x // 3 + y // 4 + z) % 5 + c) * (1 if dtype == "uint32" else 2**33 + 1)).astype(dtype)
    return (x + 7 * y + 31 * z + 101 * c).astype(dtype)


def write_tensorstore(folder):
    import tensorstore as ts

    for encoding, dtype, channels in VOLUMES:
        for name, sharding in (
            ("files", None),
            ("identity", {"hash": "identity", "minishard_index_encoding": "raw", "data_encoding": "raw"}),
            (
                "murmurhash",
                {"hash": "murmurhash3_x86_128", "minishard_index_encoding": "gzip", "data_encoding": "gzip"},
            ),
        ):
            scale = {
                "size": SIZE,
                "voxel_offset": OFFSET,
                "resolution": RESOLUTION,
                "chunk_size": CHUNK,
                "encoding": encoding,
            }
            if sharding:
                scale["sharding"] = {**SHARDING, **sharding}
            if encoding == "compressed_segmentation":
                scale["compressed_segmentation_block_size"] = [4, 4, 4]
            if encoding == "jpeg":
                scale["jpeg_quality"] = 100
            made = ts.open(
                {
                    "driver": "neuroglancer_precomputed",
                    "kvstore": {"driver": "file", "path": f"{folder}/{encoding}-{dtype}-{channels}-{name}"},
                    "multiscale_metadata": {
                        "type": "segmentation" if "seg" in encoding else "image",
                        "data_type": dtype,
                        "num_channels": channels,
                    },
                    "scale_metadata": scale,
                },
                create=True,
            ).result()
            made[...] = values(dtype, channels, encoding)


def write_cloudvolume(folder):
    from cloudvolume import CloudVolume
    from cloudvolume.lib import Bbox

    for encoding, dtype, most in [*VOLUMES, ("compresso", "uint64", 1)]:
        if (encoding, dtype) == ("png", "uint16"):
            continue  # it has no such pictures
        channels = 1 if "seg" in encoding else most  # it writes no others
        for name, compress in (("files", False), ("gzip", True), ("murmurhash", False)):
            info = CloudVolume.create_new_info(
                num_channels=channels,
                layer_type="segmentation" if "seg" in encoding or encoding == "compresso" else "image",
                data_type=dtype,
                encoding=encoding,
                resolution=RESOLUTION,
                voxel_offset=OFFSET,
                chunk_size=CHUNK,
                volume_size=SIZE,
            )
            if name == "murmurhash":
                info["scales"][0]["sharding"] = {
                    **SHARDING,
                    "shard_bits": 0,
                    "hash": "murmurhash3_x86_128",
                    "minishard_index_encoding": "gzip",
                    "data_encoding": "gzip",
                }
            place = f"{folder}/{encoding}-{dtype}-{channels}-{name}"
            volume = CloudVolume(f"file://{place}", info=info, compress=compress, non_aligned_writes=True)
            volume.commit_info()
            volume.commit_provenance()
            data = values(dtype, channels, encoding)
            if name == "murmurhash":
                box = Bbox(OFFSET, np.add(OFFSET, SIZE))
                written, packed = volume.image.make_shard(data, box)
                (Path(place) / info["scales"][0]["key"]).mkdir()
                (Path(place) / info["scales"][0]["key"] / written).write_bytes(packed)
            else:
                volume[:, :, :] = data


if __name__ == "__main__":
    given = sys.argv[1]
    with tempfile.TemporaryDirectory() as top:
        {"tensorstore": write_tensorstore, "cloudvolume": write_cloudvolume}[given](top)
        shutil.make_archive(str(HERE / given), "zip", top)
