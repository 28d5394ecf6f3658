"""The tables of exchange with netCDF-C in the manual: each cell is tried again, with each netCDF-C that is here."""

from functools import cache

import pytest

from tests.netcdf import exchange
from tests.netcdf.exchange import ABSENT, STORAGES, Attempt

CELLS = list(exchange.cells_of_the_manual())


@cache
def programs():
    return {str(each): each for each in exchange.programs()}


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    with exchange.running_s3(tmp_path_factory.mktemp("s3")) as found:
        yield found


def program(name):
    found = programs().get(name)
    if found is None:
        pytest.skip(f"netCDF-C {name} is not here; {exchange.VARIABLE} names folders into which others were installed")
    return found


def test_manual_has_both_tables():
    assert {(storage, by_netcdf_c) for _, storage, _, by_netcdf_c, _ in CELLS} == {
        (storage, by_netcdf_c) for storage in STORAGES for by_netcdf_c in (False, True)
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "storage", "layout", "by_netcdf_c", "expected"), CELLS)
def test_exchange_comes_as_far_as_the_manual_says(request, name, storage, layout, by_netcdf_c, expected):
    there = program(name)
    s3 = request.getfixturevalue("s3") if storage == "s3" else None
    if expected == ABSENT:
        assert not exchange.has_storage(there, storage, s3)
        return
    result, why = Attempt(there, storage, layout, by_netcdf_c).run(s3)
    assert result == expected, why
