"""Write ocdbt.zip: databases with all forms of manifests and nodes, by TensorStore 0.1.86: ``python make_ocdbt.py``."""

import shutil
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CONFIGS = {
    "single": {},
    "numbered": {"manifest_kind": "numbered"},
    "small": {"max_decoded_node_bytes": 300, "max_inline_value_bytes": 10, "compression": None},
    "deep": {"max_decoded_node_bytes": 160, "version_tree_arity_log2": 1},
}
DATA = np.arange(60, dtype="int32").reshape(6, 10)
COUNT = 12  # versions behind those of the arrays


def spec(place, name):
    return {"driver": "ocdbt", "base": f"file://{place}/", "config": CONFIGS[name]}


def write(place, name):
    """Write arrays, values and versions."""
    import tensorstore as ts

    store = spec(place, name)
    for path, driver, metadata in [
        ("params.w", "zarr", {"shape": [6, 10], "chunks": [3, 4], "dtype": "<i4"}),
        ("step/params.v", "zarr", {"shape": [6, 10], "chunks": [6, 10], "dtype": "<i4"}),
        ("other/v3", "zarr3", {"shape": [6, 10], "data_type": "int32"}),
    ]:
        made = {"driver": driver, "kvstore": {**store, "path": f"{path}/"}, "metadata": metadata}
        ts.open(made, create=True).result().write(DATA).result()
    volume = {
        "driver": "neuroglancer_precomputed",
        "kvstore": {**store, "path": "em/"},
        "multiscale_metadata": {"type": "image", "data_type": "int32", "num_channels": 1},
        "scale_metadata": {
            "size": [10, 6, 1],
            "resolution": [8, 8, 40],
            "chunk_size": [4, 4, 1],
            "encoding": "raw",
            "key": "8_8_40",
        },
    }
    ts.open(volume, create=True).result().write(DATA.T[:, :, None, None]).result()
    values = ts.KvStore.open(store).result()
    for number in range(COUNT):
        values.write(f"values/v{number:02d}", b"x" * (7 * number)).result()
    values.write("odd//name", b"1").result()
    values.write("odd/\\", b"1").result()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as top:
        for each in CONFIGS:
            write(f"{top}/{each}", each)
        shutil.make_archive(str(HERE / "ocdbt"), "zip", top)
