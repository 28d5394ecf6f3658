"""What an array loses when it is written with codecs or a data type of the user's choice, for `omnizarr.copy`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from omnizarr import metadata as public
from omnizarr.codecs.numbers import loss_of_cast
from omnizarr.model import Loss
from omnizarr.nodes.array import Array
from omnizarr.nodes.creating import new_array
from omnizarr.nodes.location import StorePath
from omnizarr.stores import MemoryStore
from omnizarr.tools.translate.losses import of_codecs

_NUMBERS: Final = "biufc"


def losses_of(source: Any, zarr_format: int | str, keywords: Mapping[str, Any]) -> Iterator[Loss]:
    """Yield what codecs and data type of a new array do not keep.

    Parameters
    ----------
    source : array_like
        An array of any library; what codecs of an array of ours have rounded already is not lost again.
    zarr_format : int or str
    keywords : mapping
        Those of `omnizarr.create_array`. Its errors are raised, too.
    """
    made = new_array(StorePath(MemoryStore(), "made"), zarr_format=zarr_format, **{**keywords, "overwrite": False})
    path = str(getattr(source, "name", "")).strip("/")
    before, after = np.dtype(source.dtype), made.dtype
    if before.kind in _NUMBERS and after.kind in _NUMBERS and (lost := loss_of_cast(before, after)):
        yield Loss(path, "/data_type", f"digits of the values, by data type {after.name!r}", lost)
    known = public.as_model(source.metadata) if isinstance(source, Array) else None
    for name, lost in of_codecs(known, public.as_model(made.metadata)):
        yield Loss(path, "/codecs", f"digits of the values, by codec {name!r}", lost)
