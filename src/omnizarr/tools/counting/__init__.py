"""Statistics of arrays: of elements in `moments`, of hierarchies in `counter`."""

from omnizarr.tools.counting.stat_report import ArrayStat, Stat, Statistics

__all__ = ["ArrayStat", "Stat", "Statistics"]
