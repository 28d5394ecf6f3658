"""What arrays and groups import at first use: opening and reading a node needs none of it."""

from typing import TYPE_CHECKING

from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.formats.conventions import nczarr
    from omnizarr.nodes import (
        habits,
        hierarchy,
        holdings,
        info,
        info_card,
        info_html,
        info_tree,
        nczarr_members,
        nczarr_objects,
        new_hierarchy,
        replacing,
        resizing,
        showing,
        writer,
    )
    from omnizarr.pictures import contents
else:
    contents = Lazy("omnizarr.pictures.contents")
    habits = Lazy("omnizarr.nodes.habits")
    hierarchy = Lazy("omnizarr.nodes.hierarchy")
    holdings = Lazy("omnizarr.nodes.holdings")
    info = Lazy("omnizarr.nodes.info")
    info_card = Lazy("omnizarr.nodes.info_card")
    info_html = Lazy("omnizarr.nodes.info_html")
    info_tree = Lazy("omnizarr.nodes.info_tree")
    nczarr = Lazy("omnizarr.formats.conventions.nczarr")
    nczarr_members = Lazy("omnizarr.nodes.nczarr_members")
    nczarr_objects = Lazy("omnizarr.nodes.nczarr_objects")
    new_hierarchy = Lazy("omnizarr.nodes.new_hierarchy")
    replacing = Lazy("omnizarr.nodes.replacing")
    resizing = Lazy("omnizarr.nodes.resizing")
    showing = Lazy("omnizarr.nodes.showing")
    writer = Lazy("omnizarr.nodes.writer")

__all__ = [
    "contents",
    "habits",
    "hierarchy",
    "holdings",
    "info",
    "info_card",
    "info_html",
    "info_tree",
    "nczarr",
    "nczarr_members",
    "nczarr_objects",
    "new_hierarchy",
    "replacing",
    "resizing",
    "showing",
    "writer",
]
