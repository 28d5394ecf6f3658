"""The common base of groups and variables: typed attributes, which are also Python attributes.

Spec: NCZarr, Appendix C ("JSON Attribute Convention"); the names are those of netCDF4-python.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from omnizarr.errors import MetadataError, NodeNameError, OmnizarrError
from omnizarr.netcdf import types
from omnizarr.netcdf.header import Attribute

if TYPE_CHECKING:
    from omnizarr.netcdf.session import Session

Attributes: TypeAlias = dict[str, Attribute]

# netCDF-C reserves these: they state how data is stored, and cannot be set like other attributes.
RESERVED = frozenset(
    {"_NCProperties", "_IsNetcdf4", "_SuperblockVersion", "_ARRAY_DIMENSIONS", "_nczarr_superblock", "_nczarr_group"}
    | {
        "_nczarr_array",
        "_nczarr_arrays",
        "_nczarr_attr",
        "_nczarr_attrs",
        "_Codecs",
        "_Storage",
        "_ChunkSizes",
        "_Endianness",
        "_Filter",
    }
    | {"_DeflateLevel", "_Shuffle", "_Fletcher32", "_NoFill"}
)


class Attributed(ABC):
    """A group or a variable: something with attributes.

    ``node.units = "K"`` means ``node.setncattr("units", "K")``, for all names that are not Python attributes of
    the class.
    """

    __slots__ = ("__weakref__", "_attributes", "_session")

    _session: Session
    _attributes: Attributes

    @property
    @abstractmethod
    def full_name(self) -> str:
        """Path from the root; "" for the root itself."""

    @abstractmethod
    def _change_attributes(self, change: Callable[[Attributes], Attributes]) -> None:
        """Store the result of `change` for the stored attributes."""

    def ncattrs(self) -> list[str]:
        """Return the names of the attributes."""
        self._session.check_open()
        return list(self._attributes)

    def getncattr(self, name: str, encoding: str = "utf-8") -> Any:
        """Return the value of an attribute: text, a NumPy scalar, or a vector.

        Parameters
        ----------
        name : str
        encoding : str
            Encoding of text.

        Raises
        ------
        AttributeError
            If there is none.
        """
        self._session.check_open()
        found = self._attributes.get(name)
        if found is None:
            raise AttributeError(f"{self._label}: no attribute {name!r}")
        value = found.python
        if isinstance(value, str) and encoding not in ("utf-8", "UTF-8", "utf8"):
            return value.encode("utf-8", "surrogateescape").decode(encoding)
        return value

    def getncattr_type(self, name: str) -> str:
        """Return the netCDF type of an attribute in the terms of CDL: ``"short"``, ``"char"``, ``"string"``.

        netCDF4-python does not distinguish char and string.
        """
        self.getncattr(name)
        return self._attributes[name].type.name

    def setncattr(self, name: str, value: Any) -> None:
        """Set an attribute.

        Text becomes char; several texts, or text beyond ASCII, become string; numbers keep their NumPy type.

        Parameters
        ----------
        name : str
        value : str, bytes, number, array_like or Attribute
            A NumPy scalar or array keeps its type. An int becomes int64, a float double. Bytes always become
            char, and so does text beyond ASCII in layouts A and B, where attributes cannot be string.

        Raises
        ------
        NodeNameError
            If the name is not valid, or is reserved by netCDF.
        UnknownDataTypeError
            If netCDF has no type for the value.
        MetadataError
            If the value has more than one dimension (a ValueError).
        ReadOnlyError
        """
        self.setncatts({name: value})

    def setncattr_string(self, name: str, value: Any) -> None:
        """Set an attribute of type string, also for a single text or bytes. Numbers keep their type."""
        self.setncattr(name, self._attribute(name, value, as_string=True))

    def setncatts(self, attributes: Mapping[str, Any]) -> None:
        """Set several attributes in one change. Raises the errors of `setncattr`."""
        new = dict(self._checked(name, value) for name, value in attributes.items())
        self._change_attributes(lambda old: {**old, **new})

    def delncattr(self, name: str) -> None:
        """Remove an attribute. Raises AttributeError if there is none."""
        self.getncattr(name)
        self._refuse_reserved(name)
        self._change_attributes(lambda old: {each: value for each, value in old.items() if each != name})

    def renameAttribute(self, oldname: str, newname: str) -> None:  # noqa: N802 - netCDF4-python's name
        """Rename an attribute. It keeps its place in the order."""
        self.getncattr(oldname)
        newname = checked_name(newname)
        for name in (oldname, newname):
            self._refuse_reserved(name)
        if newname in self._attributes:
            raise MetadataError("there is such an attribute already", path=self.full_name[1:], found=newname)
        self._change_attributes(
            lambda old: {newname if each == oldname else each: value for each, value in old.items()}
        )

    def _checked(self, name: str, value: Any) -> tuple[str, Attribute]:
        name = checked_name(name)
        self._refuse_reserved(name)
        return name, self._attribute(name, value)

    def _attribute(self, name: str, value: Any, *, as_string: bool = False) -> Attribute:
        try:
            return attribute_of(value, as_string=as_string, has_strings=self._session.layout.has_string_attributes)
        except OmnizarrError as error:
            raise error.add(path=f"{self.full_name[1:]}@{name}")

    def _refuse_reserved(self, name: str) -> None:
        """Raise NodeNameError for an attribute that cannot be set, renamed or removed."""
        if name in RESERVED:
            raise NodeNameError(
                "netCDF keeps this attribute to itself",
                path=self.full_name[1:],
                found=name,
                remedy="it follows from the arguments of createVariable and Dataset",
            )

    @property
    def _label(self) -> str:
        return self.full_name or "/"

    def __getattr__(self, name: str) -> Any:
        # Called only for names that are not Python attributes, and for empty slots, which must not ask again.
        if name in ("_attributes", "_session") or name.startswith("__"):
            if name == "__dict__":
                return {each: self.getncattr(each) for each in self.ncattrs()}
            raise AttributeError(name)
        return self.getncattr(name)

    def __setattr__(self, name: str, value: Any) -> None:
        known = getattr(type(self), name, None)
        if known is not None and not callable(known):  # as in netCDF4-python, even if a method has this name
            object.__setattr__(self, name, value)
        else:
            self.setncattr(name, value)

    def __delattr__(self, name: str) -> None:
        self.delncattr(name)


def attribute_of(value: Any, *, as_string: bool = False, has_strings: bool = True) -> Attribute:
    """Return what netCDF4-python stores for a value: one text in ASCII, or bytes, becomes char; all other text string.

    Parameters
    ----------
    value : object
    as_string : bool
        Whether all text becomes string.
    has_strings : bool
        Whether one text beyond ASCII becomes string.

    Raises
    ------
    UnknownDataTypeError, MetadataError
        As `Attribute.of`.

    Examples
    --------
    >>> [attribute_of(each).type for each in ("m", "°C", "°C".encode(), ["m"], ["m", "s"], np.int16(2))]
    [char, string, char, char, string, short]
    """
    if isinstance(value, Attribute):
        return value
    given = [value] if isinstance(value, str | bytes) else _texts(value)
    if given is None or not (given or as_string):
        return Attribute.of(value)
    texts = [each.decode("utf-8", "surrogateescape") if isinstance(each, bytes) else str(each) for each in given]
    if len(texts) == 1 and not as_string:
        is_char = isinstance(given[0], bytes) or texts[0].isascii() or not has_strings
        if is_char:
            return Attribute(types.CHAR, texts[0])
    strings = np.empty(len(texts), object)
    strings[:] = texts
    return Attribute(types.STRING, strings)


def _texts(value: Any) -> list[str | bytes] | None:
    """Return the texts of a vector; None if it is not a vector, or holds something else."""
    array = np.asarray(value)
    items = array.ravel().tolist()
    is_text = array.dtype.kind in "SUT" or all(isinstance(each, str | bytes) for each in items)
    return items if array.ndim < 2 and is_text else None


def checked_name(name: Any) -> str:
    """Return a name as netCDF stores it: in normalization form C of Unicode.

    Raises NodeNameError for names that netCDF does not allow.

    Source: netCDF user's guide, "NetCDF Names".
    """
    if not isinstance(name, str) or not name:
        problem = "a name must be text that is not empty"
    elif "/" in name:
        problem = "a name cannot contain a slash"
    elif any(each < " " or each == "\x7f" for each in name):
        problem = "a name cannot contain control characters"
    elif name.endswith(" ") or not (name[0].isalnum() or name[0] == "_" or name[0] > "\x7f"):
        problem = "a name begins with a letter, a digit or an underscore, and does not end with a space"
    else:
        return unicodedata.normalize("NFC", name)
    raise NodeNameError(problem, found=repr(name), spec='netCDF, "Names"')
