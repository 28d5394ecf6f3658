"""A plugin of pytest, or a program that calls it: ``import zarr`` finds omnizarr."""

import sys

import pytest

from omnizarr.interop import as_zarr

as_zarr.install()


def pytest_report_header() -> str:
    import zarr

    if zarr is not as_zarr:
        raise RuntimeError(f"zarr is {zarr.__file__}: what passes here would say nothing of omnizarr")
    return "zarr is omnizarr"


if __name__ == "__main__":
    sys.exit(pytest.main())
