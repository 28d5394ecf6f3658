"""Digests of what a hierarchy means and holds, and of its stored bytes.

`serializing` says which bytes stand for elements, `hash_tree` how the digests of blocks become one, `digester` does it.
"""

from omnizarr.tools.digesting.digests import Digest, NodeDigest

__all__ = ["Digest", "NodeDigest"]
