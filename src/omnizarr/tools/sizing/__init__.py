"""How much is stored, of what, and what is not: sizes of nodes, and chunks that are missing."""

from omnizarr.tools.sizing.usage import NodeUsage, Usage

__all__ = ["NodeUsage", "Usage"]
