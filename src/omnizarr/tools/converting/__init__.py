"""What a conversion is made of: a plan, the moving and comparing of chunks, a journal, and an account of it all."""

from omnizarr.tools.converting.conversion_report import Conversion, NodeReport

__all__ = ["Conversion", "NodeReport"]
