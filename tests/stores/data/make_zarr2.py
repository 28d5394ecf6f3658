"""Write the databases of this directory; to be run with zarr-python 2.18.7 and lmdb 1.7 or later."""

import sys
from pathlib import Path

import numpy as np
import zarr


def main(folder: Path) -> None:
    """Write the same group with each store."""
    stores = {
        "zarr2.sqldb": zarr.SQLiteStore,
        "zarr2.lmdb": lambda path: zarr.LMDBStore(path, map_size=2**20, writemap=False),
        "zarr2_file.lmdb": lambda path: zarr.LMDBStore(path, map_size=2**20, writemap=False, subdir=False),
    }
    for name, make in stores.items():
        store = make(str(folder / name))
        group = zarr.group(store=store, overwrite=True)
        group.attrs["written by"] = f"zarr-python {zarr.__version__}"
        group.create_dataset("a", data=np.arange(20, dtype="<i4").reshape(4, 5), chunks=(2, 3))
        store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
