"""Peers, which start once and answer every test."""

import pytest

from tests.netcdf import peers


@pytest.fixture(scope="session")
def newest():
    """netCDF-C as the netCDF4 of this environment brings it."""
    with peers.running() as peer:
        yield peer


@pytest.fixture(scope="session")
def old():
    """netCDF-C 4.9.0, which writes layout B."""
    with peers.running("4.9.0") as peer:
        yield peer
