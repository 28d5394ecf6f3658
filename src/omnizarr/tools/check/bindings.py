"""What reading the chunks of many arrays needs, made again each time it is asked for."""

from __future__ import annotations

from typing import Final

from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.formats import dialect_named
from omnizarr.model import ArrayMetadata
from omnizarr.nodes import bindings
from omnizarr.tools.check.inventory import Node

_MADE: Final = 64


class Bindings:
    """Bindings of the arrays whose chunks can be read.

    Attributes
    ----------
    largest : int
        The bytes of the elements of the largest chunk.
    """

    def __init__(self) -> None:
        self._whole: dict[int, Binding] = {}
        """Bindings of arrays whose documents do not say which keys their chunks have, by the identity of the node."""
        self._made: list[tuple[int, Binding | None]] = [(0, None)] * _MADE
        self.largest = 0

    def add(self, node: Node, binding: Binding | None) -> None:
        """Note how a node was bound, before its metadata are forgotten; None if it cannot be."""
        metadata = node.metadata
        if binding is None or not isinstance(metadata, ArrayMetadata):
            return
        node.is_bound = True
        self.largest = max(self.largest, binding.spec.nbytes or 0)
        if dialect_named(metadata.dialect).other_keys(metadata):
            self._whole[id(node)] = binding

    def of(self, node: Node) -> Binding | None:
        """Return the binding of a node; None if it cannot be bound."""
        number = id(node)
        if not node.is_bound:
            return None
        if number in self._whole:
            return self._whole[number]
        slot = (number >> 4) % _MADE
        known, binding = self._made[slot]
        if known != number or binding is None:
            metadata = node.metadata
            if not isinstance(metadata, ArrayMetadata):
                return None
            binding = bindings.bind(node.where, metadata, ChunkPolicy())
            self._made[slot] = number, binding
        return binding
