"""Reading what `omnizarr.get` selects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from omnizarr.api.opening import open_array
from omnizarr.nodes import labels as by_label


def run(
    store: Any,
    selection: Any,
    path: str | None,
    select: Mapping[str, by_label.Label] | None,
    allow_pickle: bool,  # noqa: FBT001 - passed by name
    storage_options: Mapping[str, Any] | None,
    labels: Mapping[str, by_label.Label],
) -> Any:
    """Return the elements."""
    wanted = {**(select or {}), **labels}
    if wanted and selection is not ...:
        raise TypeError("selection and labels are both given: select either by position or by coordinates")
    array = open_array(store, "r", path=path, storage_options=storage_options, allow_pickle=allow_pickle or None)
    if not wanted:
        return array[selection]
    found = array.get_orthogonal_selection(by_label.positions(array, wanted))
    return found[()] if isinstance(found, np.ndarray) and not found.shape else found
