"""What tests of two engines share: how to get an array served by either, and how to compare what they did."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import OmnizarrError
from omnizarr.settings import engines
from tests.repeats import runs

needs_native = pytest.mark.skipif(engines.module() is None, reason="the native engine has not been built")
needs_posix = pytest.mark.skipif(os.name != "posix", reason="there is no fork, and there are no such signals, here")
ENGINES = ("reference", "native")
# More examples where time does not matter (`RUNS=200`); a few everywhere else.
RUNS = runs(10)


def served_by(engine: str, array: omnizarr.Array) -> omnizarr.Array:
    """Return `array` as one that `engine` serves."""
    array = array.with_config({"engine": engine})
    assert array.engine == engine, f"{array.metadata} is served by {array.engine}"
    return array


def opened(store: Any, engine: str, **options: Any) -> omnizarr.Array:
    """Open an array that `engine` serves, to be written unless `options` say otherwise."""
    return served_by(engine, omnizarr.open_array(store, **{"mode": "r+", **options}))


def bits(value: Any, dtype: np.dtype[Any] | None = None) -> tuple[Any, ...]:
    """Return what two values that are the same bit for bit have in common; `dtype` is that of what may be a scalar."""
    array = np.asarray(value, dtype if np.ndim(value) == 0 else None)
    return array.dtype.newbyteorder("="), array.shape, array.astype(array.dtype.newbyteorder("="), "C").tobytes()


def outcome(task: Callable[[], Any]) -> Any:
    """Return the bits of what `task` returns; or the class, the text and the attributes of what it raises."""
    try:
        result = task()
        return None if result is None else bits(result)
    except (OmnizarrError, OSError, ValueError, TypeError, MemoryError) as error:
        fields = {name: getattr(error, name, None) for name in OmnizarrError.FIELDS}
        return type(error), str(error), fields


def stored(store: Any) -> dict[str, bytes]:
    """Return all that a store holds."""
    return {key: bytes(store.get(key)) for key in sorted(store.list())}
