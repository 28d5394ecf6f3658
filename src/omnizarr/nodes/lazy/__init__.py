"""Arrays that are not read yet: selections of arrays, and many arrays as one, without a copy.

`LazyArray` is the public class. Its tree (`tree`) consists of sources, selections, conversions and joins; `reading`
turns it into selections of the sources, which `omnizarr.read_many` reads together.
"""

from omnizarr.nodes.lazy.view import LazyArray, LazySelection

__all__ = ["LazyArray", "LazySelection"]
