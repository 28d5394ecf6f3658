"""All that omnizarr uses of xarray without its being public; `tests/interop/xarray/test_internals.py` guards it.

Of `ZarrStore`, which is public, writing inherits `_validate_and_autodetect_region`, `_validate_encoding`, `encode` and
`encode_attribute`, and sets the attributes that these look at: `_mode`, `_append_dim` and `_write_region`.
None of this imports zarr-python.
"""

import inspect
from typing import Any, Final

import xarray

from omnizarr.errors import MissingDependencyError

try:
    from xarray.backends import chunks, common, writers, zarr
except ImportError as _error:
    raise MissingDependencyError(
        "writing datasets needs a later release of xarray, reading does not",
        found=xarray.__version__,
        expected="2025.9 or later",
        remedy="pip install --upgrade xarray, or write with xarray's own to_zarr",
    ) from _error
from xarray.coding import strings

ArrayWriter: Final[Any] = common.ArrayWriter
FillValueCoder: Final = zarr.FillValueCoder
check_vlen_dtype: Final[Any] = strings.check_vlen_dtype
choose_mode: Final[Any] = zarr._choose_default_mode  # noqa: SLF001 - this module exists for this and the following names
dump_to_store: Final[Any] = writers.dump_to_store
encode_variable_name: Final[Any] = common._encode_variable_name  # noqa: SLF001
extract_zarr_variable_encoding: Final[Any] = zarr.extract_zarr_variable_encoding
grid_rechunk: Final = chunks.grid_rechunk
validate_and_transpose: Final[Any] = zarr._validate_and_transpose_existing_dims  # noqa: SLF001
validate_data_types: Final[Any] = zarr._validate_datatypes_for_zarr_append  # noqa: SLF001
validate_grid_chunks_alignment: Final = chunks.validate_grid_chunks_alignment
validate_names: Final = writers._validate_dataset_names  # noqa: SLF001


_FORMAT: Final = "zarr_format"
_TAKES_FORMAT: Final = _FORMAT in inspect.signature(zarr.encode_zarr_variable).parameters


def encode_zarr_variable(variable: Any, name: Any, zarr_format: int) -> Any:
    """Return a variable as it is stored. Releases before 2026.7 know no `StringDType`, which depends on the format."""
    options: dict[str, Any] = {_FORMAT: zarr_format} if _TAKES_FORMAT else {}
    return zarr.encode_zarr_variable(variable, name=name, **options)


class WritableStore(zarr.ZarrStore):
    """A store of xarray that encodes and checks variables, with what `writers.to_zarr` calls of it made public."""

    def checked(self, dataset: Any, encoding: Any) -> Any:
        """Return a dataset without what a region leaves alone. Raises ValueError if region or encoding do not fit."""
        dataset = self._validate_and_autodetect_region(dataset)
        self._validate_encoding(encoding)
        return dataset

    def encoded(self, variables: Any, attributes: Any) -> tuple[dict[Any, Any], dict[str, Any]]:
        """Return variables and attributes as they are stored."""
        coded: tuple[dict[Any, Any], dict[str, Any]] = self.encode(variables, attributes)  # type: ignore[no-untyped-call]
        return coded

    def plain(self, value: Any) -> Any:
        """Return a value of an attribute without types of NumPy."""
        return self.encode_attribute(value)  # type: ignore[no-untyped-call]
