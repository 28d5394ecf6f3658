"""The list ``zarr_conventions`` of a node: a record of each convention that its attributes follow.

A record identifies a convention by its UUID, else by the address of its schema or of its text. Names identify nothing.
`Known` has all that other modules ask of one convention; each module beside this one has one.

Spec: https://github.com/zarr-conventions/zarr-conventions-spec.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnizarr.formats.conventions.contract import Carried, Fault, Nodes
from omnizarr.formats.reader import is_list, is_object, join
from omnizarr.model import JSON, ArrayMetadata, Metadata, thawed

LIST: Final = "zarr_conventions"
IDENTIFIERS: Final = ("uuid", "schema_url", "spec_url")
"""Members that identify a convention; the first that a record has counts."""
_TEXTS: Final = (*IDENTIFIERS, "name", "description")
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ATTRIBUTES: Final = "/attributes"


@dataclass(frozen=True, slots=True)
class Known:
    """The facts of one convention.

    Attributes
    ----------
    name : str
        In the records that omnizarr writes.
    uuid, schema_url, spec_url, description : str
        Of these records.
    repositories : tuple of str
        Parts of addresses by which records without a UUID are recognised: the places where the text has been.
    keys : tuple of str
        Attributes of the convention.
    nodes : tuple of {"array", "group"}
        The nodes that may have it.
    state : str
        How far the text has come, as it says itself.
    more : tuple of str
        Members of its records that only this convention defines.
    """

    name: str
    uuid: str
    schema_url: str
    spec_url: str
    description: str
    repositories: tuple[str, ...]
    keys: tuple[str, ...]
    nodes: tuple[Literal["array", "group"], ...]
    state: str
    more: tuple[str, ...] = ()

    @property
    def record(self) -> dict[str, JSON]:
        """The record that omnizarr writes."""
        return {
            "schema_url": self.schema_url,
            "spec_url": self.spec_url,
            "uuid": self.uuid,
            "name": self.name,
            "description": self.description,
        }

    def is_meant_by(self, record: object) -> bool:
        """Return whether a record is of this convention."""
        if not is_object(record):
            return False
        if "uuid" in record:
            return bool(record["uuid"] == self.uuid)
        address = next((record[key] for key in IDENTIFIERS[1:] if key in record), None)
        return isinstance(address, str) and any(f"/{each}/" in f"{address}/" for each in self.repositories)

    def is_declared(self, node: Metadata) -> bool:
        """Return whether a node has a record of the convention."""
        return any(map(self.is_meant_by, listed(node)))

    def is_used(self, node: Metadata) -> bool:
        """Return whether a node has a record of the convention, or one of its attributes."""
        return any(key in node.attributes for key in self.keys) or self.is_declared(node)


def listed(node: Metadata) -> Sequence[Any]:
    """Return the records of a node; none if it has no list."""
    found = node.attributes.get(LIST)
    return found if is_list(found) else ()


def kind(node: Metadata) -> Literal["array", "group"]:
    """Return what a node is."""
    return "array" if isinstance(node, ArrayMetadata) else "group"


def with_records(attributes: Mapping[str, Any], known: Iterable[Known]) -> dict[str, Any]:
    """Return attributes with a record of each convention; records that are there stay.

    >>> from omnizarr.formats.conventions.registered.uom import UOM
    >>> [record["name"] for record in with_records({"uom": {"ucum": {"unit": "m"}}}, [UOM])["zarr_conventions"]]
    ['uom']
    """
    there = attributes.get(LIST)
    records = list(thawed(there)) if is_list(there) else []
    missing = [each.record for each in known if not any(map(each.is_meant_by, records))]
    return {LIST: [*records, *missing], **{name: value for name, value in attributes.items() if name != LIST}}


def unchanged(metadata: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    """Carry a convention whose attributes are the same in all formats."""
    return Carried(metadata)


# -- what is wrong -----------------------------------------------------------------------------------------------------


def faults_of_list(path: str, nodes: Nodes, known: Sequence[Known]) -> Iterator[Fault]:
    """Yield what is wrong with the list of a node, which has one."""
    found = nodes[path].attributes.get(LIST)
    pointer = join(_ATTRIBUTES, LIST)
    if not is_list(found):
        yield Fault("convention-record", path, pointer, "the records are no list", found, "a list of objects")
        return
    for number, record in enumerate(found):
        at = join(pointer, number)
        if not is_object(record) or not any(key in record for key in IDENTIFIERS):
            message = "a record that identifies no convention"
            yield Fault("convention-record", path, at, message, record, f"an object with {', '.join(IDENTIFIERS)}")
            continue
        meant = next((each for each in known if each.is_meant_by(record)), None)
        yield from _of_record(path, at, record, meant)
        if meant is None:
            title = next(record[key] for key in ("name", *IDENTIFIERS) if key in record)
            message = "a convention that omnizarr does not know; its attributes were not checked"
            yield Fault("convention-unknown", path, at, message, title)


def _of_record(path: str, at: str, record: Mapping[str, Any], meant: Known | None) -> Iterator[Fault]:
    more = meant.more if meant is not None else ()
    for name, value in record.items():
        if name not in (*_TEXTS, *more):
            yield Fault("convention-record", path, join(at, name), "a member that records do not have", name)
        elif not isinstance(value, str):
            yield Fault("convention-record", path, join(at, name), f"the {name} is no text", value, "a text")
        elif name == "uuid" and not _UUID.fullmatch(value):
            yield Fault("convention-record", path, join(at, name), "no UUID", value, "a UUID in small letters")


@dataclass(frozen=True, slots=True)
class Checking:
    """One convention of one node that is checked."""

    known: Known
    path: str
    node: Metadata
    code: str

    def fault(
        self,
        below: Sequence[str | int],
        message: str,
        found: object = None,
        expected: object = None,
        code: str | None = None,
    ) -> Fault:
        """Return a violation at a place in the attributes."""
        return Fault(code or self.code, self.path, join(_ATTRIBUTES, *below), message, found, expected)

    def about(self) -> Iterator[Fault]:
        """Yield what is wrong with how the convention is declared."""
        name = self.known.name
        first = next((key for key in self.known.keys if key in self.node.attributes), None)
        if kind(self.node) not in self.known.nodes:
            message = f"{name} is not for {kind(self.node)}s"
            yield self.fault((first or LIST,), message, kind(self.node), " or ".join(self.known.nodes))
        elif first is not None and not self.known.is_declared(self.node):
            message = f"attributes of {name} without its record in {LIST}"
            yield self.fault((first,), message, None, {"uuid": self.known.uuid}, "convention-undeclared")


def numbers(value: object, count: int | None = None) -> tuple[float, ...] | None:
    """Return a list of finite numbers in JSON, of this many if told; None if it is something else."""
    if not is_list(value) or (count is not None and len(value) != count):
        return None
    if not all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in value):
        return None
    try:
        found = tuple(float(each) for each in value)
    except OverflowError:
        return None
    return found if all(abs(each) < float("inf") for each in found) else None


def lengths(value: object, count: int) -> tuple[int, ...] | None:
    """Return a list of this many lengths; None if it is something else."""
    found = numbers(value, count)
    if found is None or not all(each.is_integer() and each >= 1 for each in found):
        return None
    return tuple(map(int, found))


def texts(value: object, count: int) -> tuple[str, ...] | None:
    """Return a list of this many texts; None if it is something else."""
    return tuple(value) if is_list(value) and len(value) == count and all(isinstance(x, str) for x in value) else None
