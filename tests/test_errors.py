"""Names of errors that zarr-python has."""

import inspect
import json
import pickle

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.formats import V2

pytestmark = pytest.mark.rules

zarr_errors = pytest.importorskip("zarr.errors", reason="names are compared with those of zarr-python")

# Nothing here is raised for what these mean: negative steps work.
WITHOUT_USE = {"NegativeStepError"}


def test_every_error_of_zarr_python_has_its_name_here():
    theirs = {
        name
        for name, value in vars(zarr_errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and not issubclass(value, Warning)
    }
    assert {name for name in theirs if name.endswith("Error") and not hasattr(errors, name)} == WITHOUT_USE


def array_and_group():
    values = {}
    omnizarr.create_array(values, shape=3, dtype="i4", zarr_format=2)
    V2.load({".zarray": json.loads(values[".zarray"]), ".zgroup": {"zarr_format": 2}})


ARRAY = omnizarr.create_array({}, shape=(3, 3), dtype="i4")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("BaseZarrError", lambda: omnizarr.open({})),
        ("MetadataValidationError", lambda: omnizarr.open({"zarr.json": b"[]"})),
        ("NodeTypeValidationError", lambda: omnizarr.open({"zarr.json": b'{"zarr_format": 3, "node_type": "x"}'})),
        ("ContainsArrayAndGroupError", array_and_group),
        ("DataTypeValidationError", lambda: omnizarr.create_array({}, shape=3, dtype="float7")),
        ("ArrayIndexError", lambda: ARRAY.oindex[np.zeros((2, 2), int), 0]),
        ("VindexInvalidSelectionError", lambda: ARRAY.vindex[0, "x"]),
        ("BoundsCheckError", lambda: ARRAY[7]),
    ],
)
def test_name_is_that_of_the_error_raised(name, cause):
    with pytest.raises(getattr(errors, name)):
        cause()


def _all_below(kind):
    return {kind}.union(*map(_all_below, kind.__subclasses__()))


@pytest.mark.parametrize("kind", sorted(_all_below(errors.OmnizarrError), key=lambda kind: kind.__name__))
def test_error_keeps_everything_over_pickle(kind):
    error = kind("a message", **{field: f"some {field}" for field in kind.FIELDS})
    error.add_note("a note")
    if isinstance(error, OSError):
        error.errno = 28
    if isinstance(error, ImportError):
        error.name = "zfpy"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert {field: getattr(again, field) for field in kind.FIELDS} == {field: f"some {field}" for field in kind.FIELDS}
    assert (again.message, again.__notes__) == ("a message", ["a note"])
    assert getattr(again, "errno", None) == getattr(error, "errno", None)
    assert getattr(again, "name", None) == getattr(error, "name", None)
