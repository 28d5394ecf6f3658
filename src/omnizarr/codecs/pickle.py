"""pickle: Python objects as Python pickles them.

Configuration: ``protocol`` (5 if missing).
Unpickling can run arbitrary code in the data, so nothing is read or written unless the array was opened with
``allow_pickle=True``. Agrees with numcodecs.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, Configuration
from omnizarr.codecs.record import A2B, Name, Record
from omnizarr.codecs.streams import ObjectCodec
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, PickleDisabledError, Remedy


@dataclass(frozen=True, slots=True)
class Pickle(ObjectCodec):
    """An array of objects as a pickle."""

    protocol: int
    decoded: ArraySpec

    def encode(self, array: AnyArray) -> Buffer:
        """Return the pickled array."""
        try:
            # a pickle keeps the layout in memory, and readers read the elements in that order
            return pickle.dumps(np.asarray(array, order="C"), protocol=self.protocol)
        except Exception as error:  # objects may raise any error
            raise CodecError(f"cannot pickle: {error}") from error

    def decode(self, data: Buffer) -> AnyArray:
        """Return the unpickled array."""
        try:
            array = pickle.loads(data)  # noqa: S301  allowed by the caller
        except Exception as error:  # unpickling may raise any error, too
            raise ChunkError(f"cannot unpickle: {error}") from error
        if not isinstance(array, np.ndarray):
            raise ChunkError("the pickle holds no array", found=type(array).__name__, expected="ndarray")
        if array.size != np.prod(self.decoded.shape, dtype=np.int64):
            raise ChunkSizeError("the pickled array has another size", found=list(array.shape),
                                 expected=list(self.decoded.shape))  # fmt: skip
        # zarr-python 2 hands over chunks of order F in shape, so it is their memory that has the order of the chunk
        return array.astype(self.decoded.dtype, copy=False).reshape(-1, order="A").reshape(self.decoded.shape)


def bind(configuration: Configuration, decoded: ArraySpec) -> Pickle:
    """Return the codec. Raises PickleDisabledError unless the policy allows it."""
    protocol = Fields(configuration, ("protocol",)).integer("protocol", 5, 0, pickle.HIGHEST_PROTOCOL)
    if not decoded.policy.allow_pickle:
        raise PickleDisabledError(
            "the data is pickled, and unpickling can run any code",
            remedy=Remedy("open the array with {allow_pickle} if you trust its writer", allow_pickle=True),
        )
    return Pickle(protocol, decoded)


CODECS = (
    Record(
        id="pickle", kind=A2B, names={"numcodecs.pickle": Name(bind)}, parameters={"protocol": int},
        note="`allow_pickle=True`", words="pickled objects",
    ),
)  # fmt: skip
