"""Write data/plugins.h5: chunks of filters that h5py has not. ``python plugins.py``, with h5py and hdf5plugin.

Each dataset ``x`` has its elements, as the filter itself decodes them, in ``x decoded``.
"""

from pathlib import Path

import h5py
import numpy as np

PATH = Path(__file__).parent / "data" / "plugins.h5"

wave = np.round(100 * np.sin(np.arange(240) / 9), 2)
ZFP = {
    "rate": {"rate": 14},
    "precision": {"precision": 20},
    "accuracy": {"accuracy": 0.01},
    "reversible": {"reversible": True},
    "expert": {"minbits": 1, "maxbits": 16657, "maxprec": 40, "minexp": -20},
}


def main():
    import hdf5plugin

    with h5py.File(PATH, "w", libver="latest") as file:

        def write(name, data, chunks, options):
            file.create_dataset(name, data=data, chunks=chunks, **options)

        for mode, options in ZFP.items():
            write(f"zfp {mode}", wave.astype("f4").reshape(12, 20), (5, 9), hdf5plugin.Zfp(**options))
        for dtype in ("f8", "i4", "i8"):
            write(f"zfp {dtype}", wave.astype(dtype), (100,), hdf5plugin.Zfp(reversible=True))
        write("zfp 3", wave.reshape(4, 6, 10), (3, 1, 10), hdf5plugin.Zfp(reversible=True))
        write("zfp 4", wave.reshape(4, 6, 5, 2), (3, 6, 3, 2), hdf5plugin.Zfp(reversible=True))
        for filters in range(4):
            write(f"blosc2 {filters}", wave.astype("f4"), (100,), hdf5plugin.Blosc2(cname="zstd", filters=filters))
        for name in ("blosclz", "lz4", "zlib"):
            write(f"blosc2 {name}", wave.reshape(12, 20), (5, 9), hdf5plugin.Blosc2(cname=name))
        write("blosc2 zeros", np.zeros((7, 9)), (5, 9), hdf5plugin.Blosc2())
        write("blosc2 blocks", np.arange(12000).reshape(120, 100), (113, 97), hdf5plugin.Blosc2(cname="zstd", clevel=1))
        write("blosc2 texts", np.array([b"ab", b"c", b"def"] * 9), (20,), hdf5plugin.Blosc2())
    with h5py.File(PATH, "r+", libver="latest") as file:
        for name in list(file):
            file.create_dataset(
                f"{name} decoded",
                data=file[name][...],
                **({"compression": "gzip", "shuffle": True} if file[name].size > 999 else {}),
            )


if __name__ == "__main__":
    main()
