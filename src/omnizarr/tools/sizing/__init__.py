"""Sizes of nodes, and missing chunks."""

from omnizarr.tools.sizing.usage import NodeUsage, Usage

__all__ = ["NodeUsage", "Usage"]
