"""Extension points: a name, perhaps with a configuration, in the documents of Zarr v3.

Spec: Zarr v3 core, "Extension definition".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnizarr.formats.documents import to_json
from omnizarr.formats.reader import Reader, is_object, join, read_object
from omnizarr.model import JSON, Named

SPEC: Final = 'Zarr v3, "Extension definition"'
_MEMBERS = ("name", "configuration", "must_understand")
_PRIVATE = "omnizarr."


def read_extension(reader: Reader, value: JSON, pointer: str) -> Named | None:
    """Return an extension point's value: an object with a name, or just the name; None if it is neither."""
    if isinstance(value, str) and value:
        if value.startswith(_PRIVATE):
            _refuse_private(reader, value, pointer)
            return None
        return Named(value)
    if not is_object(value):
        expected = "an object with a name, or a name"
        reader.problem(pointer, "not an extension", found=value, expected=expected, spec=SPEC)
        return None
    name = value.get("name")
    if not isinstance(name, str) or not name:
        found = name if "name" in value else dict(value)
        place = join(pointer, "name")
        reader.problem(place, "an extension without a name", found=found, expected="a string", spec=SPEC)
        return None
    if name.startswith(_PRIVATE):
        _refuse_private(reader, name, join(pointer, "name"))
        return None
    configuration: Mapping[str, JSON] = {}
    if "configuration" in value:
        configuration = read_object(reader, value["configuration"], f"{pointer}/configuration", SPEC)
    must_understand = value.get("must_understand", True)
    if not isinstance(must_understand, bool):
        place = join(pointer, "must_understand")
        reader.problem(place, "not a boolean", found=must_understand, expected="true or false", spec=SPEC)
        must_understand = True
    for member, content in value.items():
        if member not in _MEMBERS and not may_be_ignored(content):
            message = f"unknown member {member!r} in an extension"
            expected = ", ".join(_MEMBERS)
            reader.problem(join(pointer, member), message, found=content, expected=expected, spec=SPEC)
    return Named(name, configuration, must_understand)


def _refuse_private(reader: Reader, name: str, pointer: str) -> None:
    """Report a name that exists only in memory, for features of other formats. It has no meaning in a document."""
    reader.problem(pointer, "a name that only memory may hold", found=name, expected="a registered name", spec=SPEC)


def read_understood(reader: Reader, value: JSON, pointer: str, default: Named) -> Named:
    """Return the value of an extension point that readers must not skip; `default` if it is not valid."""
    named = read_extension(reader, value, pointer) or default
    if not named.must_understand:
        place = join(pointer, "must_understand")
        expected = "true, or no such member"
        reader.problem(place, "must_understand cannot be false here", found=False, expected=expected, spec=SPEC)
        return Named(named.name, named.configuration)
    return named


def write_extension(named: Named) -> JSON:
    """Return the object form of an extension, with only the needed members."""
    document: dict[str, JSON] = {"name": named.name}
    # zarr-python needs a configuration for codecs of numcodecs, even an empty one
    if named.configuration or named.name.startswith("numcodecs."):
        # NaN and infinities are strings there, as in fill values.
        document["configuration"] = to_json(named.configuration, quotes_nonfinite=True)
    if not named.must_understand:
        document["must_understand"] = False
    return document


def may_be_ignored(value: JSON) -> bool:
    """Whether an unknown member states that it need not be understood."""
    return is_object(value) and value.get("must_understand") is False
