"""Names of extensions: registered, known to omnizarr, or unknown; and whether codecs can be set up as configured.

Spec: Zarr v3 core, "Extension points"; zarr-extensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from omnizarr.codecs import registry
from omnizarr.codecs.chain import Chain
from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.codecs.sharding import Sharding
from omnizarr.engine import Binding, transformers
from omnizarr.errors import (
    MissingDependencyError,
    OmnizarrError,
    PickleDisabledError,
    UnknownCodecError,
    UnknownExtensionError,
)
from omnizarr.formats.reader import is_list, join
from omnizarr.model import JSON, ArrayMetadata, Named, datatypes, grids
from omnizarr.model import keys as chunk_keys
from omnizarr.nodes import bindings
from omnizarr.tools.check.inventory import Node
from omnizarr.tools.check.registered import ALIASES, is_registered
from omnizarr.tools.check.report import Findings

_SPEC: Final = 'Zarr v3, "Extension points"'

Use = tuple[str, str, Named]
"""Extension point, JSON pointer, and the extension there."""


def check_extensions(findings: Findings, node: Node) -> Binding | None:
    """Report problems of the extensions of an array. Return what is necessary to read its chunks, or None."""
    metadata = node.metadata
    if not isinstance(metadata, ArrayMetadata) or not node.is_sound:
        return None
    unknown = False
    if metadata.dialect == "v3":
        for use in uses(node.marker.value):
            unknown |= _check_use(findings, node, use)
    try:
        binding = bindings.bind(node.where, metadata, ChunkPolicy(), document=node.marker.value)
    except PickleDisabledError as error:
        _add(findings, node, "pickled-objects", error)
    except MissingDependencyError as error:
        _add(findings, node, "missing-package", error)
    except UnknownExtensionError as error:
        if not unknown:
            _add(findings, node, "unknown-extension", error)
    except OmnizarrError as error:
        if not unknown and not _has_no_object_codec(metadata):
            _add(findings, node, "unusable-codecs", error)
    else:
        _check_shards(findings, node, binding.chain)
        return binding
    return None


def _check_shards(findings: Findings, node: Node, chain: Chain) -> None:
    """Report inner chunks that do not divide their shard."""
    pointer = "/codecs"
    while isinstance(shard := chain.serializer[1], Sharding):
        pointer += f"/{len(chain.filters)}/configuration"
        if shard.edges is not None:
            message = "inner chunks do not divide the shard evenly"
            findings.add("uneven-inner-chunks", node.path, message, key=node.marker.key,
                         pointer=f"{pointer}/chunk_shape", found=shard.inner.spec.shape,
                         expected=f"divisors of {shard.decoded.shape}")  # fmt: skip
        chain = shard.inner
        pointer += "/codecs"


def _has_no_object_codec(metadata: ArrayMetadata) -> bool:
    """Whether a note already explains why chunks cannot be read."""
    named = metadata.data_type
    return named.name == "omnizarr.object" and named.configuration.get("object_codec") is None


def _add(findings: Findings, node: Node, code: str, error: OmnizarrError) -> None:
    findings.add(
        code,
        node.path,
        error.message if error.codec is None else f"codec {error.codec!r}: {error.message}",
        key=node.marker.key,
        pointer=error.pointer or "",
        found=error.found,
        # a list of all known names would not help
        expected=None if isinstance(error, UnknownExtensionError) else error.expected,
        remedy=error.remedy,
        spec=error.spec,
    )


# Zarr v3


def uses(document: JSON) -> Iterator[Use]:
    """Yield the extensions that an array's document names, those within others too."""
    if not isinstance(document, Mapping):
        return
    yield from _types(document.get("data_type"), "/data_type")
    yield from _one("chunk grid", document.get("chunk_grid"), "/chunk_grid")
    yield from _one("chunk key encoding", document.get("chunk_key_encoding"), "/chunk_key_encoding")
    yield from _codecs(document.get("codecs"), "/codecs")
    transformers = document.get("storage_transformers")
    for index, item in enumerate(transformers if is_list(transformers) else ()):
        yield from _one("storage transformer", item, join("/storage_transformers", index))


def _one(point: str, value: JSON, pointer: str) -> Iterator[Use]:
    if isinstance(value, str):
        yield point, pointer, Named(value)
    elif isinstance(value, Mapping) and isinstance(value.get("name"), str):
        configuration = value.get("configuration")
        named = Named(
            str(value["name"]),
            configuration if isinstance(configuration, Mapping) else {},
            value.get("must_understand") is not False,
        )
        yield point, pointer, named


def _types(value: JSON, pointer: str) -> Iterator[Use]:
    for point, place, named in _one("data type", value, pointer):
        yield point, place, named
        fields = named.configuration.get("fields")
        for index, field in enumerate(fields if is_list(fields) else ()):
            if isinstance(field, Mapping):
                yield from _types(field.get("data_type"), join(place, "configuration", "fields", index, "data_type"))


def _codecs(value: JSON, pointer: str) -> Iterator[Use]:
    for index, item in enumerate(value if is_list(value) else ()):
        for point, place, named in _one("codec", item, join(pointer, index)):
            yield point, place, named
            for member in ("codecs", "index_codecs"):
                yield from _codecs(named.configuration.get(member), join(place, "configuration", member))
            yield from _types(named.configuration.get("data_type"), join(place, "configuration", "data_type"))


def _check_use(findings: Findings, node: Node, use: Use) -> bool:
    """Report findings on one extension. Return whether it is unknown."""
    point, pointer, named = use

    def add(code: str, message: str) -> None:
        findings.add(code, node.path, message, key=node.marker.key, pointer=pointer, found=named.name, spec=_SPEC)

    alias = ALIASES[point].get(named.name)
    if alias is not None:
        add("extension-alias", f"another name of {point} {alias!r}")
        return False
    if (point == "codec" and named.name == "endian") or is_registered(point, named.name):
        return False
    if _is_known(point, named):
        if "format" not in node.where.store.about():  # or else a reader has made the document
            add("unregistered-extension", f"a {point} that is not in the registry")
        return False
    if point in {"codec", "storage transformer"} and not named.must_understand:
        add("optional-extension", f"an unknown {point}, which may be ignored")
        return False
    add("unknown-extension", f"an unknown {point}")
    return True


def _is_known(point: str, named: Named) -> bool:
    try:
        match point:
            case "codec":
                registry.find(named.name)
            case "data type":
                datatypes.bind(named)
            case "chunk grid":
                grids.bind(named, ())
            case "chunk key encoding":
                chunk_keys.bind(named)
            case "storage transformer":
                return transformers.find(named.name) is not None
            case _:
                return False
    except (UnknownExtensionError, UnknownCodecError):
        return False
    except OmnizarrError:  # known, and not as configured
        return True
    return True


def check_keys_in_use(findings: Findings, node: Node, binding: Binding | None) -> None:
    """Report that the chunks of an array have other keys than its document says."""
    metadata = node.metadata
    if binding is None or not isinstance(metadata, ArrayMetadata):
        return
    said, used = metadata.chunk_key_encoding, binding.metadata.chunk_key_encoding
    if said == used:
        return
    if metadata.shape:
        message = "chunks lie nested in directories, which the document does not say"
        separators = (named.configuration.get("separator") for named in (said, used))
        findings.add("undeclared-separator", node.path, message, key=node.marker.key, pointer="/dimension_separator",
                     **dict(zip(("found", "expected"), separators, strict=True)))  # fmt: skip
    else:
        message = f"the chunk is under {binding.keys.encode(())!r}"
        findings.add("draft-scalar-key", node.path, message, key=node.marker.key,
                     expected=repr(chunk_keys.bind(said).encode(())))  # fmt: skip
