"""The parts of a conversion: a plan, moving and comparing chunks, a journal, and a report."""

from omnizarr.tools.converting.conversion_report import Conversion, NodeReport

__all__ = ["Conversion", "NodeReport"]
