"""Comparing two hierarchies: differences in meaning, in values, and in how they are stored."""

from omnizarr.tools.comparing.diff_report import Diff, Difference, Unequal

__all__ = ["Diff", "Difference", "Unequal"]
