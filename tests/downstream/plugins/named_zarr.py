"""A plugin of pytest: ``import zarr`` finds omnizarr, in this process and in those that it starts."""

import sys

from omnizarr.interop import as_zarr

as_zarr.install()

if __name__ == "__main__":
    import pytest

    sys.exit(pytest.main())
