"""Known mistakes of writers, corrected within the document that has them.

Each correction is tried on a copy. It counts only if the new document is read as exactly the same node as the old one,
without the mistake. So the meaning of a document is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from omnizarr.codecs import chain as chains
from omnizarr.codecs import registry
from omnizarr.codecs.blosc import SHUFFLES
from omnizarr.codecs.sharding import Sharding
from omnizarr.errors import OmnizarrError
from omnizarr.formats import documents
from omnizarr.formats.jsontext import JSONText
from omnizarr.formats.reader import is_list, join
from omnizarr.formats.spelling import same
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, Metadata, Named, datatypes
from omnizarr.model import keys as chunk_keys
from omnizarr.nodes import holdings
from omnizarr.nodes.equivalence import have_same_bytes, spec_of
from omnizarr.nodes.location import chunk_prefix
from omnizarr.tools.check import documents as texts
from omnizarr.tools.check import extensions
from omnizarr.tools.check.inventory import Document, Inventory, Node
from omnizarr.tools.check.report import Finding, Findings
from omnizarr.tools.repair.report import Action
from omnizarr.tools.repair.transaction import RepairState, identity

_BOM: Final = b"\xef\xbb\xbf"
_ROUNDS: Final = 16
"""Maximum number of passes, as a correction may reveal another mistake: `endian` without configuration is `bytes`."""
_BYTES: Final[JSON] = {"name": "bytes", "configuration": {"endian": "little"}}
_INDEX_CODECS: Final[JSON] = [_BYTES, {"name": "crc32c"}]
_MOVING: Final = {"missing-serializer"}
_KEEP_THE_TYPE: Final = {"reshape", "transpose"}
_SHUFFLE: Final = "numcodecs.shuffle"
_SHUFFLED: Final = 4
"""The item size of a shuffle that does not name one, in Zarr v2."""
_OF_THE_LETTER: Final = frozenset(
    {
        *("integer-with-fraction", "infinity-spelling", "loose-fill-value", "legacy-struct"),
        *("missing-parameter", "invalid-typesize", "shuffle-of-other-format", "null-member"),
    }
)
"""Corrected in words that memory keeps: what they mean is compared."""
_UNCERTAIN: Final = "correct the document by hand: readers would not take what comes out for the same"


class _CannotBeMendedError(Exception):
    """A finding was not repaired; the message gives the reason and a remedy."""


@dataclass(slots=True)
class _Draft:
    """A document on its way to a correct one."""

    document: Document
    text: JSONText
    has_mark: bool

    @property
    def data(self) -> bytes:
        return (_BOM if self.has_mark else b"") + self.text.text.encode()


@dataclass(frozen=True, slots=True)
class _Case:
    """One finding, and what is known about it."""

    finding: Finding
    node: Node
    draft: _Draft

    @property
    def pointer(self) -> str:
        return self.finding.pointer

    @property
    def text(self) -> JSONText:
        return self.draft.text

    @property
    def array(self) -> ArrayMetadata:
        metadata = self.node.metadata
        if not isinstance(metadata, ArrayMetadata):
            raise _CannotBeMendedError(_UNCERTAIN)
        return metadata

    def parent(self) -> str:
        return self.pointer.rpartition("/")[0]


def mend_documents(state: RepairState, inventory: Inventory, findings: list[Finding]) -> None:
    """Correct the documents of all nodes in which something was found."""
    codes = CODES & state.codes
    paths = {finding.path for finding in findings if finding.code in codes}
    for node in inventory:
        if node.path in paths and not node.base and not _is_only_copies(node):
            _mend_node(state, node, codes)


def _is_only_copies(node: Node) -> bool:
    return list(node.documents) == [node.dialect.consolidated.document]


def _mend_node(state: RepairState, node: Node, codes: frozenset[str]) -> None:
    found = _look(node)
    if not any(finding.code in codes for finding in found):
        return
    drafts = {document.key: _draft(document) for document in node.documents.values() if _is_text(document)}
    copies = node.documents.get(str(node.dialect.consolidated.document))
    if copies is not None:
        drafts.pop(copies.key, None)  # is made again from the documents
    entered: list[tuple[Finding, Action]] = []
    given_up: set[object] = set()
    current = node
    for _ in range(_ROUNDS):
        todo = [one for one in found if one.code in codes and one.key in drafts and identity(one) not in given_up]
        # Corrections that shift other items of a list come last, one at a time.
        todo = [one for one in todo if one.code not in _MOVING] or todo[:1]
        for finding in todo:
            given_up.add(identity(finding))
            made = _try(state, _Case(finding, current, drafts[str(finding.key)]))
            if made is not None:
                entered.append((finding, made))
                current = _with(node, drafts)
        if not todo:
            break
        found = _look(current)
    _write(state, node, drafts, entered)


def _write(state: RepairState, node: Node, drafts: Mapping[str, _Draft], entered: list[tuple[Finding, Action]]) -> None:
    """Write the documents that are different now; the one that makes the node last."""
    for key in sorted(drafts, key=lambda key: key == node.marker.key):
        draft = drafts[key]
        here = [(finding, action) for finding, action in entered if finding.key == key]
        if not here or draft.data == bytes(draft.document.data):
            continue
        if state.change(key, draft.document.data, draft.data, [action for _, action in here], lock=node.where.lock_key):
            state.touched.add(node.path)
            for finding, _ in here:
                state.settle(finding)


def _try(state: RepairState, case: _Case) -> Action | None:
    """Make one correction and return it. If that is not possible, record the reason and return None."""
    draft, before = case.draft, case.draft.text.text
    old, mark = case.node, draft.has_mark
    try:
        what, found, made = _MENDERS[case.finding.code](case)
        _prove(case, old, _with(old, {draft.document.key: draft}))
    except (_CannotBeMendedError, KeyError, ValueError, OmnizarrError) as error:
        draft.text.text, draft.has_mark = before, mark
        why = str(error) if isinstance(error, _CannotBeMendedError) else _UNCERTAIN
        state.refuse(case.finding, why)
        return None
    return Action(
        code=case.finding.code,
        path=old.path,
        key=draft.document.key,
        pointer=case.pointer,
        what=what,
        before=found,
        after=made,
    )


# The meaning of a document, before and after


def _is_text(document: Document) -> bool:
    return not document.is_broken and isinstance(document.value, Mapping)


def _draft(document: Document) -> _Draft:
    data = bytes(document.data)
    return _Draft(document, JSONText(data.removeprefix(_BOM).decode()), data.startswith(_BOM))


def _with(node: Node, drafts: Mapping[str, _Draft]) -> Node:
    """Return a node with the metadata that its corrected documents mean."""
    own = {
        name: Document(document.key, drafts[document.key].data if document.key in drafts else bytes(document.data))
        for name, document in node.documents.items()
    }
    result = Node(node.where, node.dialect, own)
    texts.understand(Findings(), result)
    return result


def _look(node: Node) -> list[Finding]:
    """Return what is wrong with a node's documents."""
    findings = Findings()
    for document in node.documents.values():
        document.is_read = False
    texts.understand(findings, node)
    binding = extensions.check_extensions(Findings(), node)
    extensions.check_keys_in_use(findings, node, binding)
    return findings.found


def _prove(case: _Case, old: Node, new: Node) -> None:
    """Raise unless two nodes are the same but for how they are spelled."""
    if case.finding.code in _OF_THE_LETTER:
        new = _with_words_of(old, new)
    if case.finding.code == "undeclared-separator" and isinstance(old.metadata, ArrayMetadata):
        encoding = Named("v2", {"separator": "/"})
        old = Node(old.where, old.dialect, old.documents, replace(old.metadata, chunk_key_encoding=encoding))
    if old.metadata is None or new.metadata is None or not same(_meaning(old.metadata), _meaning(new.metadata)):
        raise _CannotBeMendedError(_UNCERTAIN)
    if any(identity(finding) == identity(case.finding) for finding in _look(new)):
        raise _CannotBeMendedError(_UNCERTAIN)


def _with_words_of(old: Node, new: Node) -> Node:
    """Return a node with data type, codecs and fill value of another that is read as the same elements."""
    before, after = old.metadata, new.metadata
    if not isinstance(before, ArrayMetadata) or not isinstance(after, ArrayMetadata):
        raise _CannotBeMendedError(_UNCERTAIN)
    dtypes = [datatypes.bind(metadata.data_type, metadata.byte_order).dtype for metadata in (before, after)]
    is_alike = dtypes[0] == dtypes[1] and same(_fill_of(before), _fill_of(after))
    if not is_alike or not have_same_bytes(_without_levels(before), _without_levels(after)):
        raise _CannotBeMendedError(_UNCERTAIN)
    metadata = replace(after, data_type=before.data_type, codecs=before.codecs, fill_value=before.fill_value)
    return Node(new.where, new.dialect, new.documents, metadata)


def _fill_of(metadata: ArrayMetadata) -> JSON:
    """Return the fill value in its canonical form; None if it is undefined."""
    value = metadata.fill_value
    if value is UNDEFINED:
        return None
    bound = datatypes.bind(metadata.data_type, metadata.byte_order)
    return bound.fill_to_json(bound.fill_from_json(value))


def _without_levels(metadata: ArrayMetadata) -> ArrayMetadata:
    """Return an array with those parameters of its codecs fixed that decoding does not need."""
    codecs = (Named(codec.name, _decoding(codec.name, codec.configuration)) for codec in metadata.codecs)
    return replace(metadata, codecs=tuple(codecs))


def _decoding(name: str, configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the configuration of a codec with parameters fixed that decoding does not need, in shards too."""
    record = registry.record(name)
    if record is not None and record.decodes_with is not None:
        return record.decodes_with
    return {
        member: [{**each, "configuration": _decoding(each["name"], each.get("configuration", {}))} for each in value]
        if member in ("codecs", "index_codecs")
        else value
        for member, value in configuration.items()
    }


def _meaning(metadata: Metadata) -> dict[str, object]:
    left_out = {"spellings", "notes"}
    meaning = {field.name: getattr(metadata, field.name) for field in fields(metadata) if field.name not in left_out}
    # copies of other nodes' documents: NaN is quoted in them as well
    return {**meaning, "consolidated": documents.to_json(meaning.get("consolidated"), quotes_nonfinite=True)}


# The corrections: the action, the old value, and the new value

Made = tuple[str, str, str]


def _show(value: object) -> str:
    return one_line(value)


def one_line(value: object) -> str:
    """Return a value as JSON on one line."""
    return " ".join(documents.render(value).decode().split())


def _byte_order_mark(case: _Case) -> Made:
    case.draft.has_mark = False
    return "leave out the byte order mark", "3 bytes", ""


def _repeated_member(case: _Case) -> Made:
    if not case.text.unrepeat():
        raise _CannotBeMendedError("delete the wrong one by hand: the two say different things")
    return "leave out the member where it is there again", "", ""


def _bare_nan(case: _Case) -> Made:
    case.text.quote_nonfinite(list(texts.attributes_of(case.draft.document.key, case.draft.document.value)))
    return "quote what JSON has no number for", "", ""


def _replace(what: str, new: Callable[[_Case, Any], JSON]) -> Callable[[_Case], Made]:
    """Return a correction that puts another value in the place of one."""

    def mend(case: _Case) -> Made:
        old = case.text.get(case.pointer)
        value = new(case, old)
        case.text.replace(case.pointer, value)
        return what, _show(old), _show(value)

    return mend


def _insert(what: str, new: JSON) -> Callable[[_Case], Made]:
    """Return a correction that adds the member that is missing."""

    def mend(case: _Case) -> Made:
        case.text.insert(case.parent(), case.pointer.rpartition("/")[2], new)
        return what, "", _show(new)

    return mend


def _remove(what: str) -> Callable[[_Case], Made]:
    """Return a correction that takes a member out."""

    def mend(case: _Case) -> Made:
        old = case.text.get(case.pointer)
        case.text.remove(case.pointer)
        return what, _show(old), ""

    return mend


def _separator(case: _Case) -> Made:
    metadata = case.array
    place = chunk_prefix(case.node.where, metadata)
    said = chunk_keys.bind(metadata.chunk_key_encoding)
    ndim = len(metadata.shape)
    for key in holdings.keys(case.node.where):
        if key.startswith(place) and said.decode(key[len(place) :], ndim) is not None:
            raise _CannotBeMendedError("rename the chunks by hand: some have keys with dots, others with slashes")
    document = case.draft.document.value
    if isinstance(document, Mapping) and "dimension_separator" in document:
        case.text.replace(case.pointer, "/")
    else:
        case.text.insert("", "dimension_separator", "/")
    return "name the separator that the chunks have", "", '"/"'


def _number(_: _Case, old: str) -> JSON:
    return int(old) if re.fullmatch(r"[+-]?[0-9]+", old.strip()) else float(old)


def _item_size(case: _Case, _: object) -> JSON:
    """Return the size that a shuffle is taken to have: of several, in their order."""
    sizes = [codec.configuration.get("elementsize") for codec in case.array.codecs if codec.name == _SHUFFLE]
    document = case.draft.document.value
    filters = document.get("filters") if isinstance(document, Mapping) else None
    before = list(filters) if is_list(filters) else []
    if case.pointer.startswith("/filters/"):
        before = before[: int(case.pointer.split("/")[2])]
    number = sum(isinstance(item, Mapping) and item.get("id") == "shuffle" for item in before)
    if number >= len(sizes):
        raise _CannotBeMendedError(_UNCERTAIN)
    size: JSON = sizes[number]
    return size


def _without_order(_: _Case, old: str) -> JSON:
    return "|" + old.lstrip("<>|=")


def _fill_value(case: _Case, _: object) -> JSON:
    return case.array.fill_value  # type: ignore[return-value]


def _endian_codec(case: _Case) -> Made:
    pointer = case.pointer if isinstance(case.text.get(case.pointer), str) else join(case.pointer, "name")
    case.text.replace(pointer, "bytes")
    return "give the codec its name of today", '"endian"', '"bytes"'


def _endian(case: _Case) -> Made:
    _insert_parameter(case, case.parent(), "endian", "little")
    return "name the byte order that readers take", "", '"little"'


def _missing_item_size(case: _Case) -> Made:
    what = "name the item size that is taken"
    if case.node.dialect.name != "v3":  # the parameters of a codec stand beside its id
        case.text.insert(case.pointer, "elementsize", _SHUFFLED)
        return what, "", _show(_SHUFFLED)
    of_index = "/index_codecs/" in case.pointer
    bound = datatypes.bind(Named("uint64") if of_index else case.array.data_type)
    size = bound.dtype.itemsize if bound.is_fixed_size else 1
    codec = case.text.get(case.parent())
    given = codec.get("configuration") if isinstance(codec, Mapping) else None
    if isinstance(given, Mapping) and "elementsize" in given:
        case.text.replace(join(case.pointer, "elementsize"), size)
        return what, _show(given["elementsize"]), _show(size)
    _insert_parameter(case, case.parent(), "elementsize", size)
    return what, "", _show(size)


def _insert_parameter(case: _Case, extension: str, name: str, value: JSON) -> None:
    """Give an extension of v3 a parameter that its configuration lacks."""
    old = case.text.get(extension)
    if not isinstance(old, Mapping):
        case.text.replace(extension, {"name": old, "configuration": {name: value}})
    elif isinstance(old.get("configuration"), Mapping):
        case.text.insert(join(extension, "configuration"), name, value)
    elif "configuration" in old:
        case.text.replace(join(extension, "configuration"), {name: value})
    else:
        case.text.insert(extension, "configuration", {name: value})


def _missing_parameter(case: _Case) -> Made:
    owner, _, name = case.pointer.rpartition("/")
    value: JSON = 1 if name == "scale_factor" else _parameter(case, name)
    if owner.endswith("/configuration"):
        _insert_parameter(case, owner.removesuffix("/configuration"), name, value)
    else:
        case.text.insert(owner, name, value)
    return "name what is taken where the parameter is missing", "", _show(value)


def _parameter(case: _Case, name: str) -> JSON:
    """Return the value that a parameter of a codec has here, where the document has none or one that means nothing."""
    value = getattr(_codec_at(case), {"elementsize": "item_size"}.get(name, name), None)
    if name == "shuffle" and isinstance(value, int) and case.node.dialect.name == "v3":
        return SHUFFLES[value]
    if not isinstance(value, str | int):
        raise _CannotBeMendedError(_UNCERTAIN)
    return value


def _codec_at(case: _Case) -> object:
    """Return the codec, set up, that a pointer in a document is about."""
    chain = chains.bind(case.array.codecs, spec_of(case.array))
    steps = re.findall(r"/(codecs|index_codecs)/([0-9]+)", case.pointer)
    if case.node.dialect.name != "v3" or not steps:
        name = str(case.finding.message).partition(" ")[0]
        named = [codec for own, codec in chain.compressors if own.removeprefix("numcodecs.") == name]
        return named[0] if len(named) == 1 else None
    codec: object = None
    for member, index in steps:
        if isinstance(codec, Sharding):
            chain = codec.inner if member == "codecs" else codec.index
        codec = (*chain.filters, chain.serializer, *chain.compressors)[int(index)][1]
    return codec


def _typesize(case: _Case, _: object) -> JSON:
    return _parameter(case, "typesize")


def _shuffle(case: _Case, old: object) -> JSON:
    if isinstance(old, str):
        return SHUFFLES.index(old)
    if not isinstance(old, int) or not 0 <= old < len(SHUFFLES):
        raise _CannotBeMendedError(_UNCERTAIN)
    return SHUFFLES[old]


def _struct(case: _Case, old: Any) -> JSON:
    if is_list(old):
        name, data_type = old
        return {"name": name, "data_type": data_type}
    return _canonical(case, old)


def _as_object(_: _Case, old: object) -> JSON:
    # Another correction may have made an object of it already.
    return {"name": old} if isinstance(old, str) else old  # type: ignore[return-value]


def _serializer(case: _Case) -> Made:
    items = case.text.get(case.pointer)
    names = [item.get("name") if isinstance(item, Mapping) else item for item in items] if is_list(items) else []
    at = next((index for index, name in enumerate(names) if name not in _KEEP_THE_TYPE), len(names))
    case.text.insert_item(case.pointer, at, _BYTES)
    return "name the codec that readers take for elements to become bytes", "", _show(_BYTES)


def _axes(case: _Case, old: str) -> JSON:
    axes = list(range(len(case.array.shape) + ("/index_codecs/" in case.pointer)))
    return axes if old == "C" else axes[::-1]


def _canonical(case: _Case, _: object) -> JSON:
    """Return the value at this place in a document that was written again."""
    array = case.array
    if case.pointer.startswith("/fill_value"):
        array = replace(array, fill_value=_fill_of(array))
    written = case.node.dialect.dump(replace(array, spellings={}))
    name = next(name for name, document in case.node.documents.items() if document.key == case.draft.document.key)
    return JSONText(documents.render(written[name]).decode()).get(case.pointer)


_MENDERS: Final[Mapping[str, Callable[[_Case], Made]]] = {
    "byte-order-mark": _byte_order_mark,
    "bare-nan": _bare_nan,
    "repeated-member": _repeated_member,
    "missing-filters": _insert("write that there are no filters", None),
    "empty-filters": _replace("write null for no filters", lambda *_: None),
    "null-separator": _remove("leave out the member"),
    "undeclared-separator": _separator,
    "numbers-as-strings": _replace("write the number as a number", _number),
    "zero-elementsize": _replace("name the item size", _item_size),
    "missing-elementsize": _missing_item_size,
    "byte-order-of-bytes": _replace("leave out the byte order of single bytes", _without_order),
    "missing-byte-order": _replace("begin the type string with its byte order", _without_order),
    "fixed-width-strings": _replace("name the type of objects, which the filter stores", lambda *_: "|O"),
    "null-fill-value": _replace("name the fill value that readers take", _fill_value),
    "empty-fill-value": _replace("name the fill value that readers take", _fill_value),
    "fill-value-kind": _replace("write the value that readers take", _canonical),
    "null-member": _remove("leave out the member"),
    "endian-codec": _endian_codec,
    "missing-endian": _endian,
    "missing-codecs": _insert("name the codec that readers take", [_BYTES]),
    "codec-id": _remove("leave out the id, which repeats the name of the codec"),
    "empty-codecs": _replace("name the codec that readers take", lambda *_: [_BYTES]),
    "transpose-letter": _replace("name the axes", _axes),
    "missing-index-codecs": _insert("name the codecs of the index that readers take", _INDEX_CODECS),
    "zero-chunk-length": _replace("write 1, as readers take it", lambda *_: 1),
    "shuffle-word": _replace("write the number that is meant by the word", _canonical),
    "fill-value-as-string": _replace("write the number as a number", _number),
    "missing-serializer": _serializer,
    "codec-uri": _replace("name the codec in its URI", _canonical),
    "integer-with-fraction": _replace("write the integer without fraction and exponent", lambda _, old: int(old)),
    "infinity-spelling": _replace("spell the infinity as the text does", lambda *_: "Infinity"),
    "loose-fill-value": _replace("write the fill value that readers interpret as specified", _canonical),
    "legacy-struct": _replace("write an object, as the text of struct does", _struct),
    "missing-parameter": _missing_parameter,
    "invalid-typesize": _replace("name the item size that is taken", _typesize),
    "shuffle-of-other-format": _replace("write the shuffle in the form of this format", _shuffle),
    "short-name": _replace("write an object with this name", _as_object),
}

CODES: Final = frozenset(_MENDERS)
