"""Single shards as other programs write them, for tests/codecs/test_sharding.py.

python3.12 -m venv env; env/bin/pip install zarr==3.4.2 tensorstore==0.1.86 zarrista==0.1.0
env/bin/python tests/codecs/make/shards.py
"""

import base64
import json
import tempfile
from pathlib import Path

import numpy as np
import tensorstore
import zarr
import zarrista
from zarrista.store import FilesystemStore

TARGET = Path(__file__).parent.parent / "data" / "shards.json"


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


def sharding(chunk_shape, *codecs, index=None, location="end"):
    return named(
        "sharding_indexed",
        chunk_shape=chunk_shape,
        codecs=codecs or [LITTLE],
        index_codecs=index or [LITTLE, CRC],
        index_location=location,
    )


LITTLE, BIG = named("bytes", endian="little"), named("bytes", endian="big")
GZIP, CRC = named("gzip", level=1), {"name": "crc32c"}

# Each array is one shard of shape (4, 6, 8), in which the corner below (2, 3, 4) is not written.
CASES = {
    "plain": [sharding([2, 3, 4])],
    "start": [sharding([2, 3, 4], location="start")],
    "compressed": [sharding([2, 3, 4], LITTLE, GZIP, CRC)],
    "big": [sharding([2, 3, 4], BIG, index=[BIG])],
    "nested": [sharding([2, 3, 4], sharding([1, 3, 2], LITTLE, GZIP))],
    "nested_start": [sharding([2, 3, 4], sharding([2, 1, 4], location="start"), location="start")],
    "transposed_within": [sharding([2, 3, 4], named("transpose", order=[2, 0, 1]), LITTLE)],
    "transposed_before": [named("transpose", order=[2, 0, 1]), sharding([4, 2, 2])],
    "compressed_after": [sharding([2, 3, 4]), GZIP],
    "one_chunk": [sharding([4, 6, 8])],
}
FILLS = {"int32": -7, "float32": "NaN", "complex64": [1.5, "NaN"]}


def values(data_type):
    return np.arange(1, 193).reshape(4, 6, 8).astype(data_type)


def document(data_type, codecs):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 6, 8],
        "data_type": data_type,
        "chunk_grid": named("regular", chunk_shape=[4, 6, 8]),
        "chunk_key_encoding": named("default", separator="/"),
        "fill_value": FILLS[data_type],
        "codecs": codecs,
        "attributes": {},
    }


def fill(array, data_type):
    """Write all but the corner; in parts, so that shards are also rewritten."""
    data = values(data_type)
    for part in np.s_[2:, :, :], np.s_[:2, 3:, :], np.s_[:2, :3, 4:]:
        array[part] = np.ascontiguousarray(data[part])


def write_zarr_python(folder, meta):
    (folder / "zarr.json").write_text(json.dumps(meta))
    fill(zarr.open_array(folder, mode="r+"), meta["data_type"])


def write_tensorstore(folder, meta):
    store = {"driver": "file", "path": f"{folder}/"}
    array = tensorstore.open({"driver": "zarr3", "kvstore": store, "metadata": meta}, create=True).result()
    fill(array, meta["data_type"])


def write_zarrista(folder, meta):
    array = zarrista.Array.from_metadata(meta, FilesystemStore(str(folder)), "/")
    array.store_metadata()
    fill(array, meta["data_type"])


WRITERS = {
    f"zarr-python {zarr.__version__}": write_zarr_python,
    "tensorstore 0.1.86": write_tensorstore,
    f"zarrista {zarrista.__version__}": write_zarrista,
}

shards = []
for program, write in WRITERS.items():
    for name, codecs in CASES.items():
        for data_type in FILLS if name == "plain" else ["int32"]:
            if data_type == "complex64" and "zarrista" in program:
                continue  # takes no complex values
            if name == "compressed_after" and "tensorstore" in program:
                continue  # refuses codecs after shards
            with tempfile.TemporaryDirectory() as folder:
                write(Path(folder), document(data_type, codecs))
                data = (Path(folder) / "c" / "0" / "0" / "0").read_bytes()
            shard = {"program": program, "name": name, "data_type": data_type, "fill_value": FILLS[data_type]}
            shards.append({**shard, "codecs": codecs, "data": base64.b64encode(data).decode()})

TARGET.write_text("[\n" + ",\n".join(json.dumps(shard) for shard in shards) + "\n]\n")
