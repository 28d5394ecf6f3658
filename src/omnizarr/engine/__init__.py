"""Engines run a plan against a store. There is one so far: `reference`, in Python."""

from omnizarr.engine.binding import Binding, bind
from omnizarr.engine.reference import read, write

__all__ = ["Binding", "bind", "read", "write"]
