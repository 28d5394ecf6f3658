"""Moments and durations."""

import datetime as dt
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError
from omnizarr.model import Named
from omnizarr.model.datatypes import bind, parse

UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"]


def moments(unit="s", scale=1, name="numpy.datetime64"):
    return Named(name, {"unit": unit, "scale_factor": scale})


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("name", "kind"), [("numpy.datetime64", "M8"), ("numpy.timedelta64", "m8")])
@pytest.mark.parametrize("unit", UNITS)
def test_units_are_numpys(name, kind, unit, order):
    assert bind(moments(unit, 1, name), order).dtype == np.dtype(f"{order}{kind}[{unit}]")
    assert bind(moments(unit, 25, name), order).dtype == np.dtype(f"{order}{kind}[25{unit}]")


def test_generic_and_mu():
    assert bind(moments("generic")).dtype == np.dtype("<M8")
    assert bind(moments("\u03bcs")).dtype == np.dtype("<M8[us]")
    assert bind(moments("\u00b5s")).dtype == np.dtype("<M8[us]")


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from("<>"), st.sampled_from([*UNITS, "generic"]))
def test_every_count_survives_a_document(count, order, unit):
    data_type = bind(moments(unit), order)
    data = count.to_bytes(8, "little" if order == "<" else "big", signed=True)
    scalar = np.frombuffer(data, data_type.dtype)[0]
    document = json.loads(json.dumps(data_type.fill_to_json(scalar)))
    # As an integer: NumPy (2.4) does not swap the bytes of times without a unit.
    read = np.asarray(data_type.fill_from_json(document)).view(np.int64)
    assert read.astype(f"{order}i8").tobytes() == data


def test_nat_has_two_forms():
    data_type = bind(moments())
    assert np.isnat(data_type.fill_from_json("NaT"))
    assert np.isnat(data_type.fill_from_json(-(2**63)))
    assert np.isnat(data_type.cast(np.datetime64("NaT", "s")))
    assert np.isnat(data_type.cast("NaT"))


def test_records_swap_times_without_a_unit():
    data_type = parse([("t", ">M8")])
    assert data_type.fill_from_json({"t": 1}).tobytes() == bytes(7) + b"\1"


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 1.5, True, "2000-01-01", "", [], {}, float("nan")])
def test_other_things_are_no_counts(value):
    with pytest.raises(MetadataError) as caught:
        bind(moments()).fill_from_json(value)
    assert caught.value.pointer == "/fill_value"


@pytest.mark.parametrize(
    ("dtype", "value", "count"),
    [
        ("M8[s]", np.datetime64(5, "m"), 300),
        ("M8[s]", dt.datetime(1970, 1, 1, 0, 1), 60),  # noqa: DTZ001  datetime64 knows no time zones
        ("M8[D]", dt.date(1970, 1, 3), 2),
        ("M8[D]", "1970-01-05", 4),
        ("M8[10s]", np.datetime64(50, "s"), 5),
        ("m8[s]", dt.timedelta(minutes=1), 60),
        ("m8[s]", np.timedelta64(1, "h"), 3600),
        ("m8[s]", np.int16(4), 4),
        ("m8[s]", 4, 4),
        ("M8[ns]", 4.0, 4),
    ],
)
def test_users_may_pass_times_that_fit(dtype, value, count):
    data_type = parse(dtype)
    assert data_type.fill_to_json(data_type.cast(value)) == count


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("M8[D]", np.datetime64(1, "s")),  # would be cut off
        ("M8[10s]", np.datetime64(55, "s")),
        ("M8[ns]", np.datetime64(300_000, "Y")),  # would overflow
        ("M8[s]", np.timedelta64(1, "s")),
        ("m8[s]", np.datetime64(1, "s")),
        ("m8[s]", np.timedelta64(1, "M")),
        ("M8[s]", "yesterday"),
        ("M8[s]", object()),
    ],
)
def test_users_may_not_pass_times_that_do_not_fit(dtype, value):
    with pytest.raises(MetadataError):
        parse(dtype).cast(value)


@pytest.mark.parametrize(
    ("configuration", "member"),
    [
        ({}, "unit"),
        ({"unit": "min", "scale_factor": 1}, "unit"),
        ({"unit": None, "scale_factor": 1}, "unit"),
        ({"unit": [], "scale_factor": 1}, "unit"),
        ({"unit": "s", "scale_factor": 0}, "scale_factor"),
        ({"unit": "s", "scale_factor": 2**31}, "scale_factor"),
        ({"unit": "s", "scale_factor": 1.0}, "scale_factor"),
        ({"unit": "s", "scale_factor": True}, "scale_factor"),
        ({"unit": "s", "scale_factor": 1, "zone": "UTC"}, "zone"),
    ],
)
def test_malformed_configurations_are_refused(configuration, member):
    with pytest.raises(MetadataError) as caught:
        bind(Named("numpy.datetime64", configuration))
    assert caught.value.pointer == f"/data_type/configuration/{member}"
