"""What arrays and groups import at first use: opening and reading a node needs none of it."""

from typing import TYPE_CHECKING

from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.nodes import habits, info, info_card, info_html, showing, writer
    from omnizarr.pictures import contents
else:
    contents = Lazy("omnizarr.pictures.contents")
    habits = Lazy("omnizarr.nodes.habits")
    info = Lazy("omnizarr.nodes.info")
    info_card = Lazy("omnizarr.nodes.info_card")
    info_html = Lazy("omnizarr.nodes.info_html")
    showing = Lazy("omnizarr.nodes.showing")
    writer = Lazy("omnizarr.nodes.writer")

__all__ = ["contents", "habits", "info", "info_card", "info_html", "showing", "writer"]
