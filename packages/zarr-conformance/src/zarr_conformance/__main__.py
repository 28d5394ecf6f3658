"""``python -m zarr_conformance`` is ``zarr-conformance``."""

import sys

from zarr_conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
