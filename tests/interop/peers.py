"""Programs that cannot live in one environment with today's: each gets one of its own, made when first needed.

It is made in the environment that runs the tests, so that ``make clean`` removes it.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

import numpy as np

HOME = Path(sys.prefix) / "peers"
REQUIREMENTS = {
    "zarr2": ["zarr==2.18.7", "numcodecs==0.15.1", "numpy<2.3"],
    "gdal": ["rasterio==1.3.9", "numpy<2"],  # its wheels bring GDAL 3.6, the last that read the draft of v3
}
_PATIENCE = 600


def python_of(name: str) -> str:
    """Return the Python of a peer's environment, after making it if necessary; one process makes it, others wait."""
    home = HOME / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = home / "complete"
    if done.exists():
        return str(python)
    HOME.mkdir(parents=True, exist_ok=True)
    try:
        home.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + _PATIENCE
        while not done.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{home} was begun and never completed: delete it and try again") from None
            time.sleep(0.2)
        return str(python)
    venv.create(home, with_pip=True)
    subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *REQUIREMENTS[name]], check=True
    )
    done.touch()
    return str(python)


def read(name: str, script: str, *arguments: str) -> dict[str, np.ndarray]:
    """Run a script in a peer's environment that writes an ``.npz`` to standard output; return what is in it."""
    environment = {**os.environ, "ZARR_V3_EXPERIMENTAL_API": "1", "ZARR_V3_SHARDING": "1"}
    done = subprocess.run(
        [python_of(name), "-W", "ignore", "-c", script, *arguments], env=environment, capture_output=True, check=False
    )
    assert not done.returncode, done.stderr.decode()
    with np.load(io.BytesIO(done.stdout)) as arrays:
        return dict(arrays)
