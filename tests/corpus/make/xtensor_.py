"""The draft of Zarr v3 of October 2020 as xtensor-zarr 0.0.7 writes it.

apt-get install g++ nlohmann-json3-dev libblosc-dev zlib1g-dev python3-numpy
for one in xtl:0.7.2 xtensor:0.23.9 xtensor-io:0.12.8 zarray:0.1.0 xtensor-zarr:0.0.7; do
    git clone --branch ${one#*:} https://github.com/xtensor-stack/${one%:*}
done
git clone --branch v1.5.14 https://github.com/gulrak/filesystem
# The stores of GDAL are not needed, and neither is GDAL:
sed -i /xzarr_gdal_store/d xtensor-zarr/include/xtensor-zarr/xzarr_hierarchy.hpp
g++ -std=c++17 -Ixtl/include -Ixtensor/include -Ixtensor-io/include -Izarray/include -Ixtensor-zarr/include \
    -Ifilesystem/include tests/corpus/make/xtensor.cpp -o writer -lblosc -lz -lpthread
python3 tests/corpus/make/xtensor_.py ./writer

xtensor-zarr writes no chunk of an array without dimensions, and cannot read the chunks in column-major order that it
wrote: there the values are what it was given.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from recorder import Case

PROGRAM = f"xtensor-zarr 0.0.7, xtensor-io 0.12.8, xtensor 0.23.9, numpy {np.__version__}"
GROUPS = {"marvin": {"heart": "gold"}, "plain": {}, "plain/deep": {}, "types": {}, "": {}}  # plain, types, "": implicit


def given(path, shape, dtype):
    """Return what xtensor.cpp fills an array with."""
    if "missing" in path:
        return np.full(shape, np.nan if dtype.kind == "f" else -7, dtype=dtype)
    values = np.arange(np.prod(shape)).reshape(shape)
    return (values % 3 == 0 if dtype.kind == "b" else values).astype(dtype)


def record(recording, values):
    """Expect what xtensor-zarr read: the files in the folder `values`."""
    root = recording.store / "meta/root"
    documents = (
        {"": recording.store / "meta/root.array.json"}
        if not root.exists()
        else {
            path.relative_to(root).as_posix()[: -len(".array.json")]: path
            for path in sorted(root.rglob("*.array.json"))
        }
    )
    for path, key in documents.items():
        document = json.loads(key.read_text(encoding="utf-8"))
        dtype = np.dtype(document["data_type"])
        expected = given(path, document["shape"], dtype)
        if document["chunk_memory_layout"] == "C":
            found = np.fromfile(values / f"/{path}".replace("/", "%"), dtype=dtype.newbyteorder("="))
            np.testing.assert_array_equal(found.reshape(expected.shape), expected)
        fill_value = document["fill_value"]
        recording.array(path, expected, np.nan if fill_value == "NaN" else fill_value, document["attributes"])


for name in ["tree", "root_array"]:
    excuse = "; order_f and order_f_cube are what it was given, it misreads them" if name == "tree" else ""
    with tempfile.TemporaryDirectory() as values, Case("xtensor", name, PROGRAM + excuse) as c:
        c.document["script"] = "tests/corpus/make/xtensor_.py"
        subprocess.run([sys.argv[1], name, str(c.store), values], check=True)
        record(c, Path(values))
        if name == "tree":
            nodes = {*c.document["nodes"], *GROUPS}
            for path, attributes in GROUPS.items():
                children = {node for node in nodes if node and node.rpartition("/")[0] == path}
                c.group(path, attributes, [child.rpartition("/")[2] for child in children])
