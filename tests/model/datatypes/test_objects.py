"""Python objects and ragged arrays."""

import numpy as np
import pytest

from omnizarr.errors import MetadataError
from omnizarr.model import Named
from omnizarr.model.datatypes import bind

RAGGED = Named("omnizarr.vlen_array", {"data_type": "int32"})


def test_any_json_is_an_object():
    data_type = bind(Named("omnizarr.object", {"codec": {"id": "json2"}}))
    assert data_type.dtype == np.dtype(object)
    for value in (0, "a", [1, None], {"a": True}):
        assert data_type.fill_to_json(data_type.fill_from_json(value)) == value
    assert data_type.default_fill_value is None


def test_ragged_items_are_arrays_of_one_dtype():
    data_type = bind(RAGGED)
    value = data_type.fill_from_json([1, 2])
    assert value.dtype == np.dtype("<i4")
    assert data_type.fill_to_json(value) == [1, 2]
    assert data_type.fill_to_json(data_type.cast(np.array([3]))) == [3]
    for blank in (0, "", None, []):
        assert data_type.fill_from_json(blank).tolist() == []


def test_the_default_of_ragged_arrays_cannot_be_changed_by_accident():
    assert not bind(RAGGED).fill_from_json([1]).flags.writeable


@pytest.mark.parametrize("value", [1, "x", {}, [1.5], [[1]], True])
def test_other_things_are_no_ragged_items(value):
    with pytest.raises(MetadataError):
        bind(RAGGED).fill_from_json(value)


@pytest.mark.parametrize("configuration", [{}, {"data_type": "string"}, {"data_type": 5}])
def test_ragged_arrays_need_items_of_a_fixed_size(configuration):
    with pytest.raises(MetadataError):
        bind(Named("omnizarr.vlen_array", configuration))
