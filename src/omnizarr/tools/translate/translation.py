"""Translation of a node to another format, with an account of what that format cannot express.

Translating is pure: metadata in, metadata out. Everything that the target can express is kept. The rest is replaced by
the nearest equivalent with the same values, with a remark. A `Loss` describes what could not be carried. Whether the
target can say something is not decided here: its dialect writes it, and reads it back. What attributes and names mean
to programs such as xarray is not decided here either: `omnizarr.formats.conventions` carries it first.

Spec: the texts of all formats.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.codecs.values import named as named_codec
from omnizarr.engine import transformers
from omnizarr.errors import NodeNameError, OmnizarrError
from omnizarr.formats import conventions, dialect_named
from omnizarr.formats.contract import Dialect
from omnizarr.formats.conventions import Nodes
from omnizarr.formats.documents import to_json
from omnizarr.formats.extensions import write_extension
from omnizarr.formats.reader import is_list, join
from omnizarr.formats.spelling import is_written_alike, same
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Loss, Metadata, Named
from omnizarr.model.datatypes import DataType
from omnizarr.model.metadata import similar
from omnizarr.nodes.attributes import quotes_nonfinite
from omnizarr.nodes.equivalence import have_same_bytes, have_same_elements, spec_of
from omnizarr.stores.base import invalid_key, is_key
from omnizarr.support.memo import Memo
from omnizarr.tools.translate.coding import (
    KEEP,
    PORTABLE,
    Encoding,
    remark_parameters,
    with_encoding,
    with_nearest_codecs,
    with_nearest_grid,
    without_shards,
)
from omnizarr.tools.translate.elements import (
    TEXT_CODECS,
    VALUE_CODECS,
    Nearest,
    Values,
    carry,
    new_array,
    reads_alike,
    remark_byte_order,
    with_fill_value,
    with_nearest_type,
)
from omnizarr.tools.translate.losses import CannotCarryError, M, NodeLosses, attempt, of_codecs, shown
from omnizarr.tools.translate.readers import remark_readers

__all__ = ["KEEP", "PORTABLE", "Loss", "Translation", "translate"]

_MEMBERS: Final[Mapping[str, str]] = {
    "data_type": "data type",
    "chunk_grid": "chunk grid",
    "fill_value": "fill value",
}
_LITTLE: Final = Named("bytes", {"endian": "little"})
_ENCODED_ANEW: Final = "chunks are encoded again"


@dataclass(frozen=True, slots=True)
class Translation:
    """A node's metadata in another format.

    Attributes
    ----------
    source : Metadata
    target : Metadata, optional
        As the target's dialect reads it back. None if the node cannot be carried (a loss says why), or need not be (a
        group where there are none).
    losses : tuple of Loss
        Of a node that cannot be carried, the one that says why.
    remarks : tuple of str
        What is carried in other words.
    same_bytes : bool
        Stored chunks are, unchanged, chunks of the target. Their keys may differ.
    same_elements : bool
        Stored chunks become chunks of the target by decompressing and compressing them; elements are not touched.
    same_fill : bool
        Chunks that are missing read the same. If not, they have to be written to keep the values.
    of_missing : tuple of Loss
        Those of the losses that concern only chunks that are missing.
    values : {"same", "cast", "integers", "raw", "text", "filled"}
        What `carry` does to elements.
    conventions : mapping of str to (tuple of str)
        The conventions that the node follows, and what is carried of them in another form.
    """

    source: Metadata
    target: Metadata | None
    losses: tuple[Loss, ...] = ()
    remarks: tuple[str, ...] = ()
    same_bytes: bool = False
    same_elements: bool = False
    same_fill: bool = True
    values: Values = "same"
    conventions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of_missing: tuple[Loss, ...] = ()

    def carry(self, array: np.ndarray[Any, Any]) -> Any:
        """Return decoded elements of the source as the target has them, in the same shape.

        Examples
        --------
        >>> from omnizarr.formats import DRAFT2020, V2
        >>> source = V2.load({".zarray": {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<M8[10s]",
        ...     "compressor": None, "filters": None, "fill_value": 0, "order": "C"}})
        >>> translate(source, DRAFT2020).carry(np.array([10, 20], "M8[10s]"))
        array([10, 20])
        """
        if not isinstance(self.source, ArrayMetadata) or not isinstance(self.target, ArrayMetadata):
            raise TypeError("only an array that is carried has elements")
        return carry(self.source, self.target, self.values, array)


def translate(
    metadata: Metadata,
    dialect: Dialect,
    *,
    path: str = "",
    nodes: Nodes | None = None,
    siblings: Collection[str] = (),
    chunks: Any = None,
    shards: Any = None,
    filters: Any = KEEP,
    serializer: Any = KEEP,
    compressors: Any = PORTABLE,
    codecs: Any = None,
    in_place: bool = False,
    characters: int | None = None,
) -> Translation:
    """Return a node's metadata in another format, with an account of what could not be carried.

    Parameters
    ----------
    metadata : ArrayMetadata or GroupMetadata
    dialect : Dialect
        The target.
    path : str
        Of the node in its hierarchy. The target must allow all names in it: nothing is renamed.
    nodes : Nodes, optional
        The nodes of the hierarchy by path, for conventions that concern several of them. Default: this node alone.
    siblings : collection of str
        Names of the nodes beside it: where names may not differ in case alone, the one that sorts first is carried.
    chunks, shards, filters, serializer, compressors, codecs
        Like those of `create_array`. Options that you do not pass stay as in the source. With `chunks` alone
        there are no shards. Compressors of other formats that few readers of v3 know give way to others in v3,
        unless they are ``"keep"``.
    in_place : bool
        Whether the documents will be stored beside those of the source, with the same chunks.
    characters : int, optional
        Strings of any length become strings of this length.

    Returns
    -------
    Translation
        Its `target` passes the target's own reading without problems or notes.

    Raises
    ------
    MetadataError, NotRepresentableError, CodecError, UnknownExtensionError
        If an option is not valid, or is nothing that the target can have.

    Examples
    --------
    >>> from omnizarr.formats import V2, V3
    >>> source = V2.load({".zarray": {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": ">i2", "order": "C",
    ...     "compressor": {"id": "zlib", "level": 1}, "filters": None, "fill_value": 0},
    ...     ".zattrs": {"_ARRAY_DIMENSIONS": ["time"]}})
    >>> found = translate(source, V3)
    >>> found.target.dimension_names, found.target.codecs[-1].name, found.same_elements, found.losses
    (('time',), 'gzip', True, ())
    >>> translate(source, V3, compressors="keep").same_bytes
    True
    """
    account = NodeLosses(metadata, dialect, path)
    encoding = Encoding(chunks, shards, filters, serializer, compressors, codecs, in_place)
    carried = conventions.carry(path, nodes or Nodes({path: metadata}), metadata, dialect.name)
    account.losses += carried.losses
    try:
        _check_names(account, siblings)
        if isinstance(carried.metadata, ArrayMetadata):
            keys = carried.chunk_key_encoding
            found = _translate_array(carried.metadata, encoding, account, keys=keys, characters=characters)
            found = replace(found, same_fill=found.same_fill and reads_alike(metadata, carried.metadata))
        else:
            found = _translate_group(carried.metadata, account)
    except CannotCarryError:
        # other remarks do not matter
        return Translation(metadata, None, (account.losses[-1],))
    return replace(
        found,
        source=metadata,
        losses=tuple(account.losses),
        remarks=tuple(account.remarks),
        of_missing=tuple(account.of_missing),
        conventions=carried.remarks,
    )


def _check_names(account: NodeLosses, siblings: Collection[str]) -> None:
    names = account.path.split("/") if account.path else []
    for name in names:
        try:
            account.dialect.check_name(name)
        except NodeNameError as error:
            rule = f"{error.message}, which is a rule of {account.title}"
            raise account.fail("", f"the node {account.path!r}, for its name {name!r}", f"{rule}: rename it") from None
    if names and not is_key(account.path):
        raise account.fail("", f"the node {account.path!r}", f"{invalid_key(account.path).message}: rename it")
    reason = account.dialect.why_reserved(names[-1]) if names else ""
    if reason:
        account.remark(f"{reason}; some readers refuse it")
    if names and not account.dialect.has_cases:
        rivals = sorted(other for other in siblings if other < names[-1] and other.lower() == names[-1].lower())
        if rivals:
            rule = f"in {account.title} nodes beside each other differ in more than upper and lower case"
            what = f"the node {account.path!r}, for its name {names[-1]!r}"
            raise account.fail("", what, f"{rule}, and {rivals[0]!r} is there: rename one")


# Groups


def _translate_group(source: GroupMetadata, account: NodeLosses) -> Translation:
    if source.consolidated is not None:
        account.remark("copies of the documents below (consolidated metadata) are not carried: they can be made again")
    if not account.dialect.has_groups:
        for name in source.attributes:
            why = f"{account.title} has no groups, so that there is no place for their attributes"
            account.lose(account.pointer("attributes", name), f"attribute {name!r} of the group", why)
        _lose_members(source.unknown, account)
        _lose_extensions(source, account)
        account.remark(f"{account.title} has no groups: the arrays of this one lie in a directory of its name")
        return Translation(source, None)
    if source.implicit and account.dialect.name in ("v2", "v3"):
        account.remark("the group, of which no document spoke, gets one")
    target = GroupMetadata(dialect=account.dialect.name)
    attributes = _strict_attributes(source, account)
    target = _with_members(_with_attributes(target, attributes, account), source, account)
    read, _ = account.attempt(target)
    return Translation(source, target if read is None else _kept(read, target, source))


# What all nodes have


def _kept(read: M, target: M, source: M) -> M:
    """Return what a node was translated from, or what was written for it, if that is written like what was read back.

    What was read back has documents of its own, which take several thousand bytes for each node of a hierarchy.
    """
    if target.spellings is source.spellings and not source.notes and is_written_alike(target, source):
        return source
    return target if is_written_alike(read, target) else read


def _strict_attributes(source: Metadata, account: NodeLosses) -> dict[str, JSON]:
    """Return the attributes as they are stored: numbers that are not finite as strings, if the user wants that."""
    found: Any = to_json(source.attributes, account.pointer("attributes"), quotes_nonfinite=quotes_nonfinite())
    for name, value in source.attributes.items():
        if not same(value, found[name]):
            what = f"that attribute {name!r} is, or holds, a number: {shown(value)}"
            why = "the setting attributes.nonfinite asks for strings"
            account.lose(account.pointer("attributes", name), what, why, f"the text {shown(found[name])}")
    return dict(found)


def _with_attributes(target: M, attributes: Mapping[str, JSON], account: NodeLosses) -> M:
    """Return `target` with those attributes that it can have."""
    made = replace(target, attributes=attributes)
    if _is_held(made, account)[0]:
        return made
    kept: dict[str, JSON] = {}
    for name, value in attributes.items():
        is_held, why = _is_held(replace(target, attributes={name: value}), account)
        if is_held:
            kept[name] = value
        else:
            account.lose(account.pointer("attributes", name), f"attribute {name!r}", f"in {account.title}: {why}")
    return replace(target, attributes=kept)


def _is_held(target: Metadata, account: NodeLosses) -> tuple[bool, str]:
    """Return whether the format keeps the attributes of a node; if not, why."""
    read, why = account.attempt(target)
    if read is not None and not same(read.attributes, target.attributes):
        return False, "it would be read as something else"
    return read is not None, why


def _with_members(target: M, source: Metadata, account: NodeLosses) -> M:
    """Return `target` with the members of the source that no specification defines and that the target allows."""
    if source.dialect == target.dialect:
        target = replace(target, unknown=source.unknown)
        spelled = replace(target, spellings=source.spellings)
        # tolerated spellings are written as specified
        return spelled if account.attempt(spelled)[0] is not None else target
    _lose_extensions(source, account)
    kept: dict[str, JSON] = {}
    # the text of v2 allows none in .zgroup
    is_open = not (isinstance(target, GroupMetadata) and target.dialect == "v2")
    for name, value in source.unknown.items():
        read, _ = attempt(replace(target, unknown={name: value}), account.dialect) if is_open else (None, "")
        is_held = read is not None and same(read.unknown, {name: value})
        if is_held:
            kept[name] = value
            account.remark(f"member {name!r}, which no text defines, is kept")
        else:
            _lose_members({name: value}, account)
    return replace(target, unknown=kept) if kept or target.unknown else target


def _lose_members(members: Mapping[str, JSON], account: NodeLosses) -> None:
    for name in members:
        whose = "NCZarr's, for netCDF" if name.lower().startswith("_nczarr") else "no text defines it"
        why = f"{whose}, and {account.title} has no place for it"
        account.lose(join("", name), f"member {name!r}", why)


def _lose_extensions(source: Metadata, account: NodeLosses) -> None:
    """Account for extensions that may be ignored, of which a node keeps the spelling alone."""
    if not dialect_named(source.dialect).has_extensions:
        return
    memo = source.spellings.get(f"{source.dialect}:extensions")
    extensions = memo.document.get("extensions") if memo is not None else None
    for position, extension in enumerate(extensions if is_list(extensions) else ()):
        uri = extension.get("extension") if isinstance(extension, Mapping) else extension
        why = f"{account.title} cannot express it; readers may ignore it"
        account.lose(join("/extensions", position), f"extension {uri!r}", why)


# Arrays


def _translate_array(
    source: ArrayMetadata,
    encoding: Encoding,
    account: NodeLosses,
    *,
    keys: Named | None,
    characters: int | None,
) -> Translation:
    _refuse_transformers(source, account)
    try:
        before = spec_of(source).data_type
    except OmnizarrError as error:
        return _translate_unknown(source, error, account, keys=keys)
    form = _form_of(source, before, encoding, account, keys=keys, characters=characters)
    if form.effect is not None and form.is_kept and _are_plain(source, account):
        bare, attributes = form.target, dict(source.attributes)
        target = similar(bare, bare.shape, attributes, bare.spellings) if attributes else bare
        account.add(form.later)
        return _translated(source, target, form, form.effect, encoding, account)
    target = _with_attributes(form.target, _strict_attributes(source, account), account)
    target = _with_members(target, source, account)
    if form.values == "filled" and isinstance(target.fill_value, int):  # others mask NaN, NaT and "" without it
        target = replace(target, attributes={**target.attributes, "_FillValue": target.fill_value})
    read, why = account.attempt(target)
    if read is None:
        raise account.fail("", "the array", f"{account.title} cannot hold it: {why}")
    effect = form.effect
    if effect is None:
        effect = _effect(source, read, before, encoding, account)
    else:
        account.add(form.later)
    return _translated(source, _kept(read, target, source), form, effect, encoding, account)


_PLAIN: Final = frozenset({str, int, bool, NoneType})


def _are_plain(source: ArrayMetadata, account: NodeLosses) -> bool:
    """Return whether v3 certainly keeps the attributes of an array of another format, and all else that is its own.

    In any format, attributes whose name begins with an underscore can have a meaning.
    """
    is_other = source.dialect != account.dialect.name == "v3" and not dialect_named(source.dialect).has_extensions
    return (
        is_other
        and not source.unknown
        and all(
            type(name) is str
            and not name.startswith("_")
            and (type(value) in _PLAIN or (type(value) is float and math.isfinite(value)))
            for name, value in source.attributes.items()
        )
    )


def _translated(
    source: ArrayMetadata,
    target: ArrayMetadata,
    form: _Form,
    effect: tuple[bool, bool],
    encoding: Encoding,
    account: NodeLosses,
) -> Translation:
    same_bytes, same_elements = effect
    if not same_elements and not any("again" in remark for remark in account.remarks):
        account.remark(_ENCODED_ANEW)
    if encoding.in_place and not same_bytes:
        why = "chunks would have to be written again, and in place they stay unchanged"
        raise account.fail("", "the array", f"{why}: convert it to another place")
    return Translation(
        source,
        target,
        same_bytes=same_bytes,
        same_elements=same_elements,
        same_fill=form.same_fill,
        values=form.values,
    )


class _Form(NamedTuple):
    """What becomes of an array, whatever its attributes, its unknown members and its path.

    Attributes
    ----------
    target : ArrayMetadata
        Without attributes.
    values : {"same", "cast", "integers", "raw", "text", "filled"}
    same_fill : bool
    effect : (bool, bool), optional
        What `_effect` returns; None if the target is read only with attributes.
    is_kept : bool
        Whether the target is what stays of it, and of what is read back, if it gets no more than attributes.
    first, later : NodeLosses
        What is reported before attributes and members are looked at, and after that.
    """

    target: ArrayMetadata
    values: Values
    same_fill: bool
    effect: tuple[bool, bool] | None
    is_kept: bool
    first: NodeLosses
    later: NodeLosses


_forms: Final[Memo[_Form]] = Memo(most_bytes=8192)
"""Most arrays of a hierarchy differ in attributes alone."""


def _form_of(
    source: ArrayMetadata,
    before: DataType,
    encoding: Encoding,
    account: NodeLosses,
    *,
    keys: Named | None,
    characters: int | None,
) -> _Form:
    """Return what becomes of an array, and add what is reported first to its account."""
    bare = replace(source, attributes={}, unknown={}, spellings={}, notes=())
    first, later = (NodeLosses(bare, account.dialect, "") for _ in range(2))

    def make() -> _Form:
        return _formed(bare, before, encoding, first, later, keys=keys, characters=characters)

    try:
        if encoding.any_layout or encoding.any_coding:  # settings can be asked for then
            form = make()
        else:
            form = _forms.get((bare, account.dialect.name, encoding, keys, characters), make)
    except CannotCarryError:
        account.add(first)
        raise
    account.add(form.first)
    return form


def _formed(
    source: ArrayMetadata,
    before: DataType,
    encoding: Encoding,
    account: NodeLosses,
    later: NodeLosses,
    *,
    keys: Named | None,
    characters: int | None,
) -> _Form:
    """Return what becomes of an array without attributes, with what is reported in two accounts."""
    shape = _nearest_shape(source, account)
    flat = without_shards(source, encoding, account)
    target, values = with_nearest_type(
        source, before, shape, account, keeps_chunks=encoding.keeps_chunks, characters=characters
    )
    if values == "text":  # in v3 each text is encoded by vlen-utf8, as zarr-python does
        flat = replace(flat, codecs=tuple(named for named in flat.codecs if named.name not in VALUE_CODECS))
    if characters is not None:
        flat = replace(flat, codecs=tuple(_without_text_codecs(flat.codecs)))
    if values == "filled":
        flat = replace(flat, codecs=tuple(_of_values(flat.codecs)))
    target = with_nearest_grid(target, flat, encoding, account)
    target = with_nearest_codecs(target, flat, source, encoding, account)
    target = with_encoding(target, encoding, account)
    if encoding.any_layout or encoding.any_coding:
        account.dialect.dump(target)  # what the user wants has to be possible
    target, same_fill = with_fill_value(target, source, before, values, account)
    target = _with_keys(target, source, account, keys=keys, in_place=encoding.in_place)
    target = _with_names(target, source, account)
    read, _ = attempt(target, account.dialect)
    effect = None if read is None else _effect(source, read, before, encoding, later)
    is_kept = read is not None and values != "filled" and is_written_alike(read, target)
    return _Form(target, values, same_fill, effect, is_kept, account, later)


def _effect(
    source: ArrayMetadata, read: ArrayMetadata, before: DataType, encoding: Encoding, account: NodeLosses
) -> tuple[bool, bool]:
    """Return whether stored chunks stay the same, and whether their elements do, and report what changes."""
    remark_byte_order(source, read, before, account)
    remark_parameters(source, read, account)
    if read.dialect == "v3" and (source.dialect != "v3" or encoding.any_coding):
        remark_readers(read, account)
    same_bytes = have_same_bytes(source, read)
    if not same_bytes:
        _lose_values(source, read, account)
    is_as_asked = encoding.any_layout or encoding.any_coding
    return same_bytes, same_bytes or (not is_as_asked and have_same_elements(source, read))


def _without_text_codecs(codecs: Iterable[Named]) -> Iterator[Named]:
    """Yield codecs with plain bytes in place of those of strings of any length, also within shards."""
    for codec in codecs:
        inner = codec.configuration.get("codecs")
        if codec.name == "sharding_indexed" and is_list(inner):
            kept = [write_extension(each) for each in _without_text_codecs(map(named_codec, inner))]
            yield Named(codec.name, {**codec.configuration, "codecs": kept})
        else:
            yield _LITTLE if codec.name in TEXT_CODECS else codec


def _of_values(codecs: Sequence[Named]) -> Iterator[Named]:
    """Yield the codecs of an optional type for elements that are all there."""
    for codec in codecs:
        inner: Any = codec.configuration.get("data_codecs", ())
        yield from map(named_codec, inner) if codec.name.endswith("optional") else (codec,)


def _lose_values(source: ArrayMetadata, target: ArrayMetadata, account: NodeLosses) -> None:
    """Account for codecs that do not keep all values."""
    for name, loss in of_codecs(source, target):
        account.lose(account.pointer("codecs"), f"digits of the values, by codec {name!r}", loss)


def _refuse_transformers(source: ArrayMetadata, account: NodeLosses) -> None:
    for position, named in enumerate(source.storage_transformers):
        pointer = account.pointer("storage_transformers", position)
        what = f"storage transformer {named.name!r}"
        if transformers.find(named.name) is not None:
            why = "chunks lie as it wants them: copy the array to one without it first, with omnizarr.copy"
            raise account.fail(pointer, f"the array, for its {what}", why)
        if named.must_understand:
            raise account.fail(pointer, f"the array, for its {what}", "it is not known here: chunks cannot be read")
        account.lose(pointer, what, "it is not known here; readers may ignore it")


def _translate_unknown(
    source: ArrayMetadata, error: OmnizarrError, account: NodeLosses, *, keys: Named | None
) -> Translation:
    """Return the translation of an array that cannot be read here, between formats that have one name for its type."""
    if ":" in source.data_type.name or source.dialect == account.dialect.name:
        target = replace(source, dialect=account.dialect.name, spellings={}, notes=(), unknown={})
        target = _with_names(_with_keys(target, source, account, keys=keys, in_place=False), source, account)
        target = _with_attributes(target, _strict_attributes(source, account), account)
        read, _ = attempt(target, account.dialect)
        if read is not None and have_same_bytes(source, read):
            _lose_members(source.unknown, account)
            _lose_extensions(source, account)
            account.remark(f"data type {source.data_type.name!r} is not known here, and is kept unchanged")
            return Translation(source, read, same_bytes=True)
    found = (error.pointer or "").split("/")[1:2]
    member = found[0] if found and found[0] in _MEMBERS else "data_type"
    named = source.chunk_grid.name if member == "chunk_grid" else source.data_type.name
    what = f"the array, for its {_MEMBERS[member]}" + (f" {named!r}" if member != "fill_value" else "")
    raise account.fail(account.pointer(member), what, f"chunks cannot be read here: {error.message}")


def _nearest_shape(source: ArrayMetadata, account: NodeLosses) -> tuple[int, ...]:
    if source.shape:
        return source.shape
    read, _ = attempt(new_array(account.dialect, (), Nearest(Named("uint8"), "same", "<")), account.dialect)
    if read is not None:
        return ()
    why = f"{account.title} has no arrays without dimensions"
    account.lose("/shape", "that the array has no dimensions", why, "shape (1,)")
    return (1,)


def _with_keys(
    target: ArrayMetadata, source: ArrayMetadata, account: NodeLosses, *, keys: Named | None, in_place: bool
) -> ArrayMetadata:
    """Return `target` with keys of chunks as the format has them by default, or like the source's where it has filters.

    (v3 can express the keys of v2, too, but a copy gets the keys of its own format.) `keys` is the encoding that a
    convention expects, if any. Chunks that stay in place keep their keys.
    """
    kept = replace(target, chunk_key_encoding=source.chunk_key_encoding)
    read, _ = attempt(kept, account.dialect)
    is_ours = source.chunk_key_encoding.name.startswith("omnizarr.")
    is_possible = read is not None and same(read.chunk_key_encoding, source.chunk_key_encoding)
    if source.dialect != account.dialect.name and is_ours and not account.dialect.new_arrays.has_filters:
        is_possible = False  # a name that no document has
    if in_place:
        origin = dialect_named(source.dialect).keyspace
        if not is_possible or origin.chunk_prefix("a") != account.dialect.keyspace.chunk_prefix("a"):
            why = f"in place chunks keep their keys, which {account.title} cannot express"
            raise account.fail(
                account.pointer("chunk_key_encoding"), "the array", f"{why}: convert it to another place"
            )
        return kept
    is_like_source = account.dialect.new_arrays.has_filters or source.dialect == account.dialect.name
    if keys is None and is_possible and is_like_source:
        return kept
    default = keys or account.dialect.new_arrays.chunk_key_encoding
    before, after = (named.configuration.get("separator") for named in (source.chunk_key_encoding, default))
    usual = dialect_named(source.dialect).new_arrays.chunk_key_encoding
    if before != after and not same(source.chunk_key_encoding, usual):
        account.remark(f"keys of chunks are those that are usual in {account.title}, with separator {after!r}")
    return replace(target, chunk_key_encoding=default)


def _with_names(target: ArrayMetadata, source: ArrayMetadata, account: NodeLosses) -> ArrayMetadata:
    """Return `target` with names of dimensions, if the format has a place for them."""
    names = source.dimension_names
    read, _ = attempt(replace(target, dimension_names=names), account.dialect)
    if read is not None and read.dimension_names == names:
        target = replace(target, dimension_names=names)
    elif names is not None and all(name is None for name in names):
        account.remark("dimension_names that are all null are left out")
    elif names is not None:
        why = f"{account.title} has no place for them, and the attribute _ARRAY_DIMENSIONS has no null"
        account.lose("/dimension_names", f"dimension_names {list(names)}", why)
    return target
