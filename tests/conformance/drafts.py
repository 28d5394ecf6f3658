"""What the drafts of 2019 and 2020 say in the same words: their tests inherit `DraftContract`."""

import gzip
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.stores import MemoryStore
from tests.conformance.raw import document, store

ELSEWHERE = "http://example.org/zarr/extension/foo"


@dataclass(frozen=True)
class Draft:
    """A draft, and the documents that its tests begin with."""

    name: str
    entry: Mapping[str, Any]
    group: Mapping[str, Any]
    array: Mapping[str, Any]
    rows: Mapping[str, Any]
    """The array of 10,000 rows and 1,000 columns that the texts show."""
    suffix: str
    """Of the keys of documents."""
    chunks: str
    """Where the chunks of the root are."""
    key: Callable[..., str]
    """Of the chunk with some coordinates, below that."""

    def at(self, key):
        """Return the key of a document with the suffix that the draft has."""
        return key + self.suffix

    def hierarchy(self, values, entry=None):
        return store({"zarr.json": self.entry if entry is None else entry, **values})

    def opened(self, chunks=(), **changes):
        """Open an array at the root whose document differs from `array` in some members."""
        chunks = {f"{self.chunks}{name}": value for name, value in dict(chunks).items()}
        return omnizarr.open(self.hierarchy({self.at("meta/root.array"): {**self.array, **changes}, **chunks}))

    def refused(self, kind=errors.MetadataError, **changes):
        """Return the pointer of the error with which such an array is refused, at the latest when it is read."""
        with pytest.raises(kind) as caught:
            self.opened(**changes)[...]
        return caught.value.pointer

    def create(self, made, **options):
        return omnizarr.create_array(made, zarr_format=self.name, **options)


def pointers_of_notes(node):
    return [note.pointer for note in node._metadata.notes]


def grid(*lengths, **more):
    return {"type": "regular", "chunk_shape": list(lengths), **more}


class DraftContract:
    """Tests of a draft, which the fixture `draft` gives."""

    def test_path_names_the_node_and_those_above_it(self, draft):
        root = omnizarr.open(
            draft.hierarchy(
                {draft.at("meta/root.group"): draft.group, draft.at("meta/root/foo/bar.array"): draft.array}
            )
        )
        bar = root["foo"]["bar"]
        assert (root.name, bar.name, bar.basename) == ("/", "/foo/bar", "bar")

    def test_shape_is_the_tuple_of_lengths(self, draft):
        assert draft.opened(shape=[100, 20], chunk_grid=grid(10, 10)).shape == (100, 20)
        assert draft.opened(shape=[], chunk_grid=grid()).shape == ()

    def test_little_endian_int32_ends_where_the_text_says(self, draft):
        ends = [-2147483648, 2147483647]
        array = draft.opened({draft.key(0): struct.pack("<2i", *ends)}, shape=[2], data_type="<i4", chunk_grid=grid(2))
        assert array[...].tolist() == ends
        for beyond in (ends[0] - 1, ends[1] + 1):
            assert draft.refused(data_type="<i4", fill_value=beyond) == "/fill_value"

    @pytest.mark.parametrize("layout", ["C", "F"])
    def test_layout_is_the_order_of_elements_in_a_chunk(self, draft, layout):
        values = np.arange(6, dtype="u1").reshape(2, 3)
        stored = bytes([0, 1, 2, 3, 4, 5]) if layout == "C" else bytes([0, 3, 1, 4, 2, 5])
        array = draft.opened({draft.key(0, 0): stored}, chunk_memory_layout=layout)
        np.testing.assert_array_equal(array[:2, :3], values)
        made = MemoryStore()
        draft.create(made, shape=(2, 3), dtype="u1", chunks=(2, 3), order=layout, compressors=None)[...] = values
        assert bytes(made.get(draft.chunks + draft.key(0, 0))) == stored
        assert document(made, draft.at("meta/root.array"))["chunk_memory_layout"] == layout

    def test_shape_is_a_list_of_lengths(self, draft):
        array = draft.opened(shape=[10, 20], chunk_grid=grid(5, 5))
        assert (array.ndim, array.shape) == (2, (10, 20))

    def test_little_endian_float64(self, draft):
        array = draft.opened(
            {draft.key(0): struct.pack("<2d", 1.5, -2)}, shape=[2], data_type="<f8", chunk_grid=grid(2)
        )
        assert array[...].tolist() == [1.5, -2]

    def test_data_type_that_is_not_known_and_has_no_fallback_is_not_read(self, draft):
        array = draft.opened(
            {draft.key(0): b"\1"}, shape=[1], data_type={"extension": ELSEWHERE, "type": "x"}, chunk_grid=grid(1)
        )
        assert array.shape == (1,)
        with pytest.raises(errors.UnknownDataTypeError, match=ELSEWHERE):
            array[...]

    @pytest.mark.parametrize("value", [2, -1, 0.5, "true", [True]])
    def test_fill_value_of_bool_is_true_or_false(self, draft, value):
        assert draft.refused(data_type="bool", fill_value=value) == "/fill_value"
        for good in (True, False):
            array = draft.opened(data_type="bool", fill_value=good)
            assert array[0, 0] == good
            assert pointers_of_notes(array) == []
        assert pointers_of_notes(draft.opened(data_type="bool", fill_value=1)) == ["/fill_value"]

    def test_array_of_10000_rows_and_1000_columns(self, draft):
        values = np.arange(100_000, dtype="<f8").reshape(1000, 100)
        made = draft.hierarchy(
            {
                draft.at("meta/root/a.array"): draft.rows,
                f"{draft.chunks}a/{draft.key(9, 3)}": gzip.compress(values.tobytes()),
            }
        )
        array = omnizarr.open(made)["a"]
        assert (array.shape, array.chunks, array.cdata_shape, array.nchunks) == (
            (10000, 1000),
            (1000, 100),
            (10, 10),
            100,
        )
        assert array.dtype == np.dtype("<f8")
        np.testing.assert_array_equal(array[9000:, 300:400], values)
        assert np.isnan(array[:9000, 300:400]).all()
        assert dict(array.attrs) == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
        assert array.documents() == {"array": draft.rows}
        array.attrs["new"] = 1
        assert document(made, draft.at("meta/root/a.array")) == {
            **draft.rows,
            "attributes": {**draft.rows["attributes"], "new": 1},
        }
