"""A plugin of pytest for netCDF4-python's own tests: files are NCZarr directories, which netCDF-C writes and reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import files_as_zarr
import netCDF4

pytest_plugins = ("files_as_zarr",)


class Dataset(netCDF4.Dataset):
    """A dataset in NCZarr, by the name of a file."""

    def __init__(self, filename: Any, mode: str = "r", *arguments: Any, **options: Any) -> None:
        folder = files_as_zarr.place(filename, mode)
        url = f"file://{folder}#mode=nczarr,file" if isinstance(folder, Path) else folder
        options.pop("format", None)
        self.__dict__["_named"] = str(filename)
        super().__init__(url, mode, *arguments, **options)

    def filepath(self, encoding: Any = None) -> str:
        return self.__dict__["_named"]

    def close(self) -> None:
        name = self.filepath()
        super().close()
        files_as_zarr.show_size(name)


netCDF4.Dataset = Dataset
