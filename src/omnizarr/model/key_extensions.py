"""Chunk key encodings that are proposed as extensions: "suffix", "fanout", "template", "zarrs.default_suffix".

`keys.bind` imports this module when a document names one of them. Keys that are a head, the coordinates with a
separator, and a tail become a `KeyEncoding`, which the native engine runs; others are made by the classes here.

Spec: zarr-extensions, pull requests 28 (suffix), 31 (fanout) and 69 (template), as of November 2026; zarrs 0.23
(zarrs.default_suffix).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

from omnizarr.errors import MetadataError
from omnizarr.model import JSON, Named
from omnizarr.model.key_forms import DOCUMENTS, KeyEncoding

_Bind: TypeAlias = "Callable[[Named, int], KeyEncoding]"
_POINTER: Final = "/chunk_key_encoding"
_DEEPEST: Final = 8
"""More encodings within each other than anybody needs, and fewer than the interpreter's stack."""
_LONGEST: Final = 512
"""Keys are names of files, which have 255 bytes per part and 4,096 in all."""
_FEWEST_CHILDREN: Final = 100
_TERM: Final = re.compile(r"\{\{|\}\}|\{(\*|-?[0-9]{1,4})(?::0([0-9]{1,3}))?\}|([{}])")
_DIGITS: Final = "([0-9]{1,999})"


def bind(named: Named, bind_any: _Bind, depth: int = 0) -> KeyEncoding:
    """Return the encoding with a name of `keys.PROPOSED`. Raises MetadataError if its configuration is broken.

    `bind_any` is `keys.bind`, for encodings within this one.
    """
    return _BINDERS[named.name](named, bind_any, depth)


# -- suffix -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SuffixKeyEncoding(KeyEncoding):
    """Keys of an encoding that has no fixed form, each followed by a text.

    Attributes
    ----------
    base : KeyEncoding
    """

    base: KeyEncoding = field(repr=False)

    @property
    def affixes(self) -> None:
        """None: only `encode` makes keys."""

    def check(self, ndim: int) -> None:
        """Raise MetadataError if chunks of arrays with `ndim` dimensions have no keys."""
        self.base.check(ndim)

    def encode(self, coords: tuple[int, ...]) -> str:
        """Return the key of the chunk at `coords`."""
        return self.base.encode(coords) + self.tail

    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        """Return the coordinates of `key` in an array of `ndim` dimensions; None if it is not a chunk key."""
        return self.base.decode(key.removesuffix(self.tail), ndim) if key.endswith(self.tail) else None


def _suffix(named: Named, bind_any: _Bind, depth: int) -> KeyEncoding:
    given = dict(named.configuration)
    if "base-encoding" in given and "base_encoding" not in given:  # as one example of the proposal spells it
        given["base_encoding"] = given.pop("base-encoding")
    _only(named, given, {"suffix", "base_encoding"})
    suffix, base = given.get("suffix"), given.get("base_encoding")
    if isinstance(base, str):
        base = {"name": base}
    configuration = base.get("configuration", {}) if isinstance(base, Mapping) else None
    if not isinstance(base, Mapping) or not isinstance(base.get("name"), str) or not isinstance(configuration, Mapping):
        raise _broken("base_encoding", "no chunk key encoding", base, "an object with a name", named.name)
    if depth >= _DEEPEST:
        raise _broken(
            "base_encoding", "too many encodings in one another", depth + 1, f"at most {_DEEPEST}", named.name
        )
    made = bind_any(Named(str(base["name"]), configuration), depth + 1)
    text = _literal(suffix, "0{}", "suffix", named.name)
    if made.affixes is None:
        return SuffixKeyEncoding(named.name, "", "", text, "", made)
    return KeyEncoding(named.name, made.separator, made.head, made.tail + text, made.scalar + text)


def _default_suffix(named: Named, bind_any: _Bind, depth: int) -> KeyEncoding:
    _only(named, named.configuration, {"suffix", "separator"})
    text = _literal(named.configuration.get("suffix"), "0{}", "suffix", named.name)
    made = bind_any(Named("default", {"separator": named.configuration.get("separator", "/")}), depth + 1)
    return KeyEncoding(named.name, made.separator, made.head, text, made.scalar + text)


# -- fanout -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FanoutKeyEncoding(KeyEncoding):
    """Keys whose coordinates are split into groups of digits, so that no directory has many entries.

    Attributes
    ----------
    width : int
        Digits per directory.

    Examples
    --------
    >>> from omnizarr.model import keys
    >>> keys.bind(Named("fanout")).encode((1234, 5))
    'c/1/001/234/0/005'
    """

    width: int

    @property
    def affixes(self) -> None:
        """None: only `encode` makes keys."""

    def encode(self, coords: tuple[int, ...]) -> str:
        """Return the key of the chunk at `coords`."""
        width, parts = self.width, ["c"]
        for coordinate in coords:
            digits = str(coordinate)
            count = -(-len(digits) // width)
            digits = digits.zfill(count * width)
            parts.append(str(count - 1))
            parts.extend(digits[at : at + width] for at in range(0, len(digits), width))
        return "/".join(parts)

    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        """Return the coordinates of `key` in an array of `ndim` dimensions; None if it is not a chunk key."""
        parts = key.split("/")
        coords: list[int] = []
        at = 1
        while at < len(parts) and len(coords) < ndim:
            if not re.fullmatch("[0-9]{1,2}", parts[at], re.ASCII):
                return None
            end = at + 2 + int(parts[at])
            digits = "".join(parts[at + 1 : end])
            if not re.fullmatch("[0-9]{1,32}", digits, re.ASCII):
                return None
            coords.append(int(digits))
            at = end
        found = tuple(coords)
        return found if len(found) == ndim and self.encode(found) == key else None


def _fanout(named: Named, _bind_any: _Bind, _depth: int) -> KeyEncoding:
    _only(named, named.configuration, {"max_children"})
    most = named.configuration.get("max_children", 1000)
    if not isinstance(most, int) or isinstance(most, bool) or most < _FEWEST_CHILDREN:
        raise _broken(
            "max_children", "too few entries of a directory", most, f"at least {_FEWEST_CHILDREN}", named.name
        )
    # A number that is not a power of ten counts as the next lower one.
    return FanoutKeyEncoding(named.name, "", "", "", "", min(len(str(most)) - 1, 20))


# -- template ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Field:
    """A place of a template for a coordinate, or for all others."""

    index: int | None
    """None: all coordinates that no other field has."""
    width: int


@dataclass(frozen=True, slots=True)
class TemplateKeyEncoding(KeyEncoding):
    """Keys in the form of a template.

    Attributes
    ----------
    template : str
    parts : tuple
        Texts, and the fields between them.

    Examples
    --------
    >>> from omnizarr.model import keys
    >>> keys.bind(Named("template", {"template": "z{0:03}/{-1}_{1}.png"})).encode((7, 8, 9))
    'z007/9_8.png'
    """

    template: str
    parts: tuple[str | _Field, ...] = field(repr=False)

    @property
    def affixes(self) -> tuple[str, str, str, str] | None:
        """Head, separator and tail of all keys, if the template has nothing but ``{*}`` between them."""
        fields = [part for part in self.parts if isinstance(part, _Field)]
        if len(fields) > 1 or fields[0].index is not None or fields[0].width:
            return None
        return self.head, self.separator, self.tail, ""

    def check(self, ndim: int) -> None:
        """Raise MetadataError if the template does not have each of `ndim` coordinates once."""
        _laid(self, ndim)

    def encode(self, coords: tuple[int, ...]) -> str:
        """Return the key of the chunk at `coords`. Raises MetadataError if the template does not suit them."""
        order, texts, widths = _laid(self, len(coords))
        key = texts[0]
        for at, width, text in zip(order, widths, texts[1:], strict=True):
            key += str(coords[at]).zfill(width) + text
        return key

    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        """Return the coordinates of `key` in an array of `ndim` dimensions; None if it is not a chunk key."""
        order, texts, _ = _laid(self, ndim)
        found = re.fullmatch(_DIGITS.join(map(re.escape, texts)), key, re.ASCII)
        if found is None:
            return None
        coords = tuple(int(digits) for _, digits in sorted(zip(order, found.groups(), strict=True)))
        return coords if self.encode(coords) == key else None


@lru_cache(maxsize=64)
def _laid(encoding: TemplateKeyEncoding, ndim: int) -> tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...]]:
    """Return which coordinate stands in each place of a key, the texts around these places, and their widths."""

    def refuse(problem: str) -> MetadataError:
        expected = f"a template that has each of {ndim} coordinates once"
        return _broken("template", problem, encoding.template, expected, encoding.name)

    asked = [part.index for part in encoding.parts if isinstance(part, _Field)]
    explicit = [at for at in asked if at is not None]
    if not all(-ndim <= at < ndim for at in explicit):
        raise refuse("the template names a coordinate that there is not")
    if len({at % ndim for at in explicit}) < len(explicit):
        raise refuse("the template names a coordinate twice")
    others = [at for at in range(ndim) if at not in {each % ndim for each in explicit}]
    if bool(others) != (None in asked):
        raise refuse("the template leaves out coordinates" if others else "no coordinate is left for {*}")
    order: list[int] = []
    widths: list[int] = []
    texts = [""]
    for part in encoding.parts:
        if isinstance(part, str):
            texts[-1] += part
            continue
        places = others if part.index is None else [part.index % ndim]
        order += places
        widths += [part.width] * len(places)
        texts += [encoding.separator] * (len(places) - 1) + [""]
    return tuple(order), tuple(texts), tuple(widths)


def _template(named: Named, _bind_any: _Bind, _depth: int) -> KeyEncoding:
    given = dict(named.configuration)
    if "format" in given and "template" not in given:  # as the examples of the proposal spell it
        given["template"] = given.pop("format")
    _only(named, given, {"template", "separator"})
    template, separator = given.get("template"), given.get("separator")
    if not isinstance(template, str) or len(template) > _LONGEST:
        raise _broken("template", "no template", template, f"a text of at most {_LONGEST} characters", named.name)
    parts = _parsed(template, named.name)
    indices = [part.index for part in parts if isinstance(part, _Field)]
    if not indices or indices.count(None) > 1:
        message = "a template with more than one {*}" if indices else "a template without a place for coordinates"
        raise _broken("template", message, template, "places such as {0} and {-1:04}, and at most one {*}", named.name)
    if None in indices and separator is None:
        raise _broken("separator", "no separator for {*}", separator, "a text", named.name)
    between = "" if separator is None else _literal(separator, "0{}0", "separator", named.name)
    texts = [part if isinstance(part, str) else "0" for part in parts]
    _literal("".join(texts), "{}", "template", named.name)
    at = [number for number, part in enumerate(parts) if isinstance(part, _Field)]
    gaps = ["".join(texts[a + 1 : b]) for a, b in pairwise(at)] + [between] * (None in indices)
    if not all(re.search("[^0-9]", gap) for gap in gaps):
        expected = "between two coordinates, a text that is not only digits"
        raise _broken("template", "two chunks could have the same key", template, expected, named.name)
    head, tail = "".join(texts[: at[0]]), "".join(texts[at[-1] + 1 :])
    return TemplateKeyEncoding(named.name, between, head, tail, "", template, parts)


def _parsed(template: str, name: str) -> tuple[str | _Field, ...]:
    """Return the texts of a template, and the fields between them."""
    parts: list[str | _Field] = []
    text, end = "", 0
    for found in _TERM.finditer(template):
        text += template[end : found.start()]
        end = found.end()
        index, width, brace = found.groups()
        if brace is not None:
            expected = "places such as {0}, {-1:04} or {*}, and braces in pairs: {{ }}"
            raise _broken("template", "a brace that belongs to no place", template, expected, name)
        if index is None:
            text += found[0][0]
            continue
        parts += [text] * bool(text) + [_Field(None if index == "*" else int(index), int(width or 0))]
        text = ""
    text += template[end:]
    return (*parts, *[text] * bool(text))


# -- all --------------------------------------------------------------------------------------


def _only(named: Named, given: Mapping[str, JSON], known: set[str]) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        message = f"unknown member of the configuration of chunk key encoding {named.name!r}"
        raise _broken(unknown[0], message, given[unknown[0]], ", ".join(sorted(known)), named.name)


def _literal(text: JSON, sample: str, member: str, name: str) -> str:
    """Return a text of keys such as `sample`. Raises MetadataError if keys could lie elsewhere, or be documents."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise _broken(member, "not a text in keys", text, f"a text of at most {_LONGEST} characters", name)
    key = sample.format(text)
    parts = key.split("/")
    is_document = "zarr.json" in key or parts[-1].startswith(DOCUMENTS)
    if is_document or any(part in {"", ".", ".."} for part in parts) or _FORBIDDEN.search(key):
        raise _broken(member, "not the form of the key of a chunk", text, _EXPECTED, name)
    return text


def _broken(member: str, message: str, found: object, expected: str, name: str) -> MetadataError:
    return MetadataError(
        message,
        pointer=f"{_POINTER}/configuration/{member}",
        found=repr(found),
        expected=expected,
        spec=_SPECS[name],
    )


_FORBIDDEN: Final = re.compile(r"\.\.|\\|[\x00-\x1f\x7f]")
_EXPECTED: Final = 'no "..", "//", backslash, control character or name of a document, and no slash at the beginning'
_BINDERS: Final[Mapping[str, Callable[[Named, _Bind, int], KeyEncoding]]] = {
    "suffix": _suffix,
    "zarrs.default_suffix": _default_suffix,
    "fanout": _fanout,
    "template": _template,
}
_SPECS: Final = {
    "suffix": 'zarr-extensions, "suffix" (proposed)',
    "zarrs.default_suffix": 'zarrs, "DefaultSuffixChunkKeyEncoding"',
    "fanout": 'zarr-extensions, "fanout" (proposed)',
    "template": 'zarr-extensions, "template" (proposed)',
}
