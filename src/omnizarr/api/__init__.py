"""The functions of the library that create, open, save and join arrays."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from omnizarr import readers as readers  # which files of other formats can be opened
from omnizarr.stores import kinds

if TYPE_CHECKING:
    from omnizarr.stores import Store
    from omnizarr.stores.kinds import Place


def _open_view(place: Place) -> tuple[Store, str]:
    found: tuple[Store, str] = import_module("omnizarr.api.views").open_place(place)
    return found


kinds.PLUGINS.register(kinds.VIEW, kinds.Kind("a view of many arrays", _open_view, endings=(kinds.VIEW,)))
