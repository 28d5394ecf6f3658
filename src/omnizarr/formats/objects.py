"""The kind of Python objects, which NumPy's ``|O`` does not state, but their codec does.

Spec: Zarr v2, "Filters"; the identifiers are those of numcodecs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from omnizarr.errors import MetadataError
from omnizarr.formats.filters import Step, is_object_codec
from omnizarr.formats.reader import Reader, join, problem_of
from omnizarr.model import Named
from omnizarr.model.datatypes import typestr
from omnizarr.model.datatypes.structs import named_to_json

TEXT_OF_OBJECTS: Final[Mapping[str, str]] = {"vlen-utf8": "string", "vlen-bytes": "bytes", "categorize": "string"}
"""Object codecs that imply the type of the objects."""


def object_codec(steps: Sequence[Step]) -> Step | None:
    """Return the step that stores Python objects, if there is one."""
    return next((step for step in steps if is_object_codec(step.id) or step.id == "categorize"), None)


def read_objects(reader: Reader, steps: Sequence[Step], pointer: str, spec: str) -> tuple[Named, Literal["<", ">"]]:
    """Return the kind of the objects that `steps` store. `pointer` is where their codec should be."""
    codec = object_codec(steps)
    if codec is None:
        reader.note(pointer, "Python objects without an object codec: their chunks cannot be read", spec)
        return Named("omnizarr.object", {"object_codec": None}), "<"
    if codec.id in TEXT_OF_OBJECTS:
        return Named(TEXT_OF_OBJECTS[codec.id]), "<"
    if codec.id == "vlen-array":
        place = join(codec.pointer, "dtype")
        try:
            item, byte_order = typestr.load(codec.parameters.get("dtype"), place)
        except MetadataError as error:
            reader.report(problem_of(error, place, spec))
            item, byte_order = Named("uint8"), "<"
        return Named("omnizarr.vlen_array", {"data_type": named_to_json(item)}), byte_order
    return Named("omnizarr.object", {"object_codec": codec.id}), "<"
