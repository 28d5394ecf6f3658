"""Comparing two hierarchies: what differs in meaning, in values, and in how it is stored."""

from omnizarr.tools.comparing.diff_report import Diff, Difference, Unequal

__all__ = ["Diff", "Difference", "Unequal"]
