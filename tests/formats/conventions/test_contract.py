"""The nodes of a hierarchy, as conventions see them."""

from omnizarr.formats import V3
from omnizarr.formats.conventions import Nodes

SCALAR = V3.load(
    {
        "zarr.json": {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [],
            "data_type": "int8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": []}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": 0,
            "codecs": [{"name": "bytes"}],
        }
    }
)


def test_arrays_beside_each_other_are_looked_at_once():
    seen = []

    def holds(array):
        seen.append(array)
        return True

    nodes = Nodes({f"{group}/{number}": SCALAR for group in "ab" for number in range(50)})
    assert all(nodes.all_beside(path, holds) for path in nodes)
    assert len(seen) == 100


def test_predicate_is_asked_of_the_arrays_of_the_same_group_alone():
    other = V3.load({"zarr.json": {**V3.dump(SCALAR)["zarr.json"], "attributes": {"other": True}}})
    nodes = Nodes({"a/x": SCALAR, "a/y": SCALAR, "b/x": SCALAR, "b/y": other, "a/g/x": other})
    assert [nodes.all_beside(path, lambda array: not array.attributes) for path in ("a/x", "b/x")] == [True, False]
