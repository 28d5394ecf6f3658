"""``python -m omnizarr``."""

import sys

from omnizarr.cli import main

if __name__ == "__main__":
    sys.exit(main())
