"""Digests of the meaning and values of a hierarchy, and of its stored bytes.

`serializing` defines the bytes of elements, `hash_tree` combines the digests of blocks, `digester` computes them.
"""

from omnizarr.tools.digesting.digests import Digest, NodeDigest

__all__ = ["Digest", "NodeDigest"]
