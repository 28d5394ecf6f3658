"""Samples by number, for programs that choose themselves which samples they want: torch's DataLoader, grain."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from omnizarr.data import caching
from omnizarr.data.assembly import Assembler, explain
from omnizarr.data.keeping import Batch, Step, uses_of
from omnizarr.data.sources import fields_of
from omnizarr.errors import BoundsCheckError
from omnizarr.stores.wrap.cached import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PASSING = 256 * 2**20


class Samples:
    """Samples by number: a map-style dataset of torch, and a random-access source of grain.

    Nothing is kept between calls. If the order of the samples is known, `Loader` reads each chunk only once.

    Parameters
    ----------
    arrays : mapping of str to array
        As for `Loader`.
    transform : callable, optional
        Called with each sample, a mapping of names to arrays. Returns what to use instead.
    cache : path or mapping, optional
        As for `Loader`.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> images = omnizarr.create_array({}, data=np.arange(40).reshape(10, 2, 2), chunks=(4, 2, 2))
    >>> samples = omnizarr.data.Samples({"x": images, "y": np.arange(10)})
    >>> len(samples), samples[3]["y"]
    (10, np.int64(3))
    >>> samples[3]["x"]
    array([[12, 13],
           [14, 15]])
    """

    def __init__(
        self,
        arrays: Mapping[str, Any],
        transform: Callable[[Mapping[str, Any]], Any] | None = None,
        *,
        cache: Place | Mapping[str, Any] = None,
    ) -> None:
        self._fields = fields_of(arrays, None if cache is None else caching.Caches(cache).through)
        self._transform = transform
        self._count = self._fields[0].count

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._count

    def __getitem__(self, index: int) -> Any:
        """Return a sample: a mapping of names to arrays, or what the transform makes of it."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indexes: Iterable[int]) -> list[Any]:
        """Return several samples, which are read together."""
        wanted = [operator.index(index) for index in indexes]
        for index in wanted:
            if not -self._count <= index < self._count:
                raise BoundsCheckError("there is no such sample", found=index, expected=f"0 to {self._count - 1}")
        places = np.array([index % self._count for index in wanted], dtype=np.int64)
        batch = self.batch(places)
        samples = [{name: each[at] for name, each in batch.items()} for at in range(len(wanted))]
        return samples if self._transform is None else [self._transform(sample) for sample in samples]

    def batch(self, indexes: NDArray[np.int64], epoch: int = 0) -> dict[str, NDArray[Any]]:
        """Return several samples as one batch.

        Parameters
        ----------
        indexes : numpy.ndarray of int64
        epoch : int
            For windows at random places.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> omnizarr.data.Samples({"x": np.arange(10, 20)}).batch(np.array([2, 5]))
        {'x': array([12, 15])}
        """
        found = Batch(epoch, 0, np.asarray(indexes, dtype=np.int64))
        uses = [None if field.is_held else uses_of(field, [found])[0] for field in self._fields]
        step = Step(0, found, uses)
        for number, use in enumerate(uses):
            if use is not None:
                for at in range(len(use.cells)):
                    is_single = use.bounds[at + 1] - use.bounds[at] == 1
                    (step.single if is_single else step.passing)[number].add(at)
        outs = [np.empty((len(found.indexes), *field.sample_shape), field.dtype) for field in self._fields]
        failed = Assembler(self._fields, _PASSING, 1).put(step, outs)
        if failed:
            at, name, error = min(failed, key=operator.itemgetter(0))
            raise explain(error, name, int(found.indexes[at]), epoch, 0)
        return {field.name: out for field, out in zip(self._fields, outs, strict=True)}

    def __repr__(self) -> str:
        names = ", ".join(f"{field.name} {field.sample_shape} {field.dtype}" for field in self._fields)
        return f"<Samples {self._count}: {names}>"
