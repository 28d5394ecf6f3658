"""One check: from a place in a store to the report of its findings."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from omnizarr.api import opening
from omnizarr.errors import NodeNotFoundError, StoreError
from omnizarr.formats.consolidated import Slices
from omnizarr.model import GroupMetadata, Metadata
from omnizarr.nodes import detection
from omnizarr.nodes.kept import KeptDocuments, KeptNodes
from omnizarr.nodes.location import StorePath
from omnizarr.stores import pool, verbs
from omnizarr.stores.base import Buffer
from omnizarr.support import amounts
from omnizarr.support.progress import Progress, Tracker
from omnizarr.tools.check import (
    chunks,
    copies,
    decoding,
    documents,
    extensions,
    inventory,
    keyspace,
    meaning,
    siblings,
    unlisted,
    writers,
)
from omnizarr.tools.check.bindings import Bindings
from omnizarr.tools.check.report import CheckReport, Findings
from omnizarr.tools.digest import report as digests
from omnizarr.tools.digest import verifying
from omnizarr.tools.streaming.executors import Executor, Local, executor
from omnizarr.tools.streaming.nodes import hierarchy
from omnizarr.tools.streaming.walking import Effort


def run(
    store: Any,
    *,
    path: str | None,
    zarr_format: int | str | None,
    data: bool,
    strict: bool,
    concurrency: int | None,
    progress: Progress,
    digest: Any = None,
    scheduler: Any = None,
    max_memory: int | str | None = None,
) -> CheckReport:
    """Return what is wrong at a place and below it; see `omnizarr.check`."""
    effort = Effort(amounts.limit(max_memory, "max_memory"), concurrency)
    expected = {} if digest is None else digests.expected(digest)
    where, _ = opening.locate(store, path, "r", None)
    given = where
    can_list = where.store.supports_listing
    where, has_names = (where, True) if can_list else unlisted.with_named_keys(where)
    where = inventory.home_of(where, zarr_format)
    findings = Findings(strict=strict)
    found = inventory.take(where, zarr_format, lists_chunks=can_list, scans=True)
    for at, entry, problems in found.entries:
        documents.check_json(findings, at, entry)
        for problem in problems:
            documents.enter_entry_problem(findings, at, entry, problem)
    bindings, essences, is_netcdf = _understand(findings, found)
    if is_netcdf:
        writers.check_netcdf(findings, found, where)
    siblings.check_places(findings, where, found)
    meaning.check_conventions(findings, where, found, essences, data=data)
    for node in found:
        copies.check_copies(findings, found, node)
        if isinstance(node.metadata, GroupMetadata) and node.metadata.consolidated:
            node.metadata = replace(node.metadata, consolidated={})
            _forget(node)
            for document in node.documents.values():
                document.forget_copies()
    asks = (data or can_list) and where.store.features.listing != "complete"
    keys = keyspace.Keys(
        findings,
        where,
        found,
        bindings,
        unlisted.chunk_keys(found, bindings) if asks else (),
        is_complete=can_list or data,
    )
    with executor(scheduler) as workers:
        most = decoding.at_once(_workers(keys, concurrency, data=data), bindings.largest, effort.max_memory)
        if data and not isinstance(workers, Local):
            looked = _check_elsewhere(findings, keys, workers, most, progress)
        else:
            looked = _check_chunks(findings, keys, data=data, workers=most, progress=progress)
        _check_digests(findings, given, expected, effort, workers)
    keys.check_leftovers()
    if not can_list:
        findings.add("unlisted-store", where.path, _not_looked_at(has_names=has_names, data=data))
    if not found.nodes and not found.entries and all(finding.severity == "note" for finding in findings.found):
        raise _nothing(where)
    return CheckReport(
        store=str(where.store),
        path=where.path,
        findings=findings.sorted(),
        nodes=len(found.nodes),
        chunks=looked,
        missing=keys.missing,
        data=data,
        strict=strict,
    )


def _understand(findings: Findings, found: inventory.Inventory) -> tuple[Bindings, KeptNodes, bool]:
    """Check each node by itself, and keep of it only what later checks need.

    Return what reading chunks needs, what conventions need, and whether netCDF has to do with it.
    """
    bindings = Bindings()
    essences = KeptNodes()
    is_netcdf = False
    for node in found:
        is_netcdf = is_netcdf or writers.is_netcdf(node)
        before = len(findings.found)
        documents.understand(findings, node)
        binding = extensions.check_extensions(findings, node)
        findings.rebase(before, node.base)
        if node.base:
            message = "only consolidated metadata describes this node"
            findings.add("only-consolidated", node.path, message, key=node.marker.key, pointer=node.base)
        extensions.check_keys_in_use(findings, node, binding)
        writers.check_byte_order(findings, found, node)
        essence = meaning.essence(node)
        bindings.add(node, binding)
        if essence is not None and node.path not in essences:
            essences.add(node.path, essence)
            _forget(node, essences.in_common(node.path))
        else:
            _forget(node)
    return bindings, essences, is_netcdf


def _not_looked_at(*, has_names: bool, data: bool) -> str:
    """Describe what the check left out because the store cannot list."""
    missed = ["strays"] if has_names else ["members of this group, which nothing names", "strays"]
    return f"the server cannot list: {', '.join(missed if data else [*missed, 'chunks'])} were not looked at"


def _nothing(where: StorePath) -> NodeNotFoundError:
    """Return the error for a place without a node, with similar names."""
    error = detection.not_found(where, NodeNotFoundError)
    if error.remedy is not None and error.remedy.startswith("create"):
        error.remedy = None
    return error


def _forget(node: inventory.Node, common: Metadata | None = None) -> None:
    """Release documents, attributes and spellings, as there may be many nodes.

    `common` is the metadata without attributes, which other nodes may share.
    """
    for document in node.documents.values():
        document.forget()
    metadata = node.metadata
    if isinstance(metadata, GroupMetadata) and isinstance(metadata.consolidated, Slices):
        node.metadata = replace(metadata, attributes={}, spellings={})
    elif isinstance(metadata, GroupMetadata) and metadata.consolidated:
        kept = KeptDocuments()
        for path, found in metadata.consolidated.items():
            kept.add(path, found)
        node.metadata = replace(metadata, attributes={}, spellings={}, consolidated=kept)
    elif metadata is not None:
        node.metadata = common or replace(metadata, attributes={}, spellings={})


def _workers(keys: keyspace.Keys, concurrency: int | None, *, data: bool) -> int:
    return concurrency or max(pool.default_concurrency() if data else 1, keys.where.store.features.concurrency)


def _check_digests(
    findings: Findings, where: StorePath, expected: dict[str, str], effort: Effort, workers: Executor
) -> None:
    """Report the nodes that differ from their digests, if there are digests."""
    if not expected:
        return
    with ExitStack() as opened:
        for each in verifying.verify(hierarchy(opened, where, None, None, None), expected, effort, workers):
            path = f"{where.prefix}{each.path}".rstrip("/")
            findings.add(each.code, path, each.message, found=each.found, expected=each.expected)


def _check_elsewhere(findings: Findings, keys: keyspace.Keys, workers: Executor, most: int, progress: Progress) -> int:
    """Let the workers of a cluster decode every stored chunk, and return how many there were."""
    looked = 0
    where = keys.where
    workers.expect(where.store, [node.marker.key for node in keys.inventory])
    stored = (decoding.Stored.of(chunk) for chunk in keys.chunks(with_sizes=False))
    with Tracker(progress, "checking", unit="chunk") as shown:
        for result in workers.ask(decoding.Decoding(most), stored, lambda _: None):
            looked += 1
            _enter(findings, result.path, result.key, result.troubles)
            shown.count(1, result.nbytes, result.path)
    return looked


def _enter(findings: Findings, path: str, key: str, troubles: Iterable[chunks.Trouble]) -> None:
    for trouble in troubles:
        findings.add(
            trouble.code,
            path,
            trouble.message,
            key=key,
            found=trouble.found,
            expected=trouble.expected,
            spec=trouble.spec,
        )


def _check_chunks(findings: Findings, keys: keyspace.Keys, *, data: bool, workers: int, progress: Progress) -> int:
    """Look at every stored chunk, several at a time, and return how many there were."""
    looked = 0

    def stream() -> Any:
        nonlocal looked
        for chunk in keys.chunks(with_sizes=not data):
            looked += 1
            yield chunk

    def look(chunk: keyspace.Chunk) -> None:
        path = chunk.owner.node.path
        nbytes = 0
        try:
            value = verbs.get_within(chunk.binding.store, chunk.key, chunk.binding.chain.most_stored) if data else None
            nbytes = 0 if value is None else len(value)
            troubles = list(_troubles(chunk, value, data=data))
        except StoreError as error:
            findings.add("unreadable-key", path, error.message, key=chunk.key, found=error.found)
            troubles = []
        _enter(findings, path, chunk.key, troubles)
        shown.count(1, nbytes, path)

    with Tracker(progress, "checking", unit="chunk") as shown:
        pool.run(look, stream(), workers, 1 if data else 64)
    return looked


def _troubles(chunk: keyspace.Chunk, value: Buffer | None, *, data: bool) -> Any:
    if data:
        if value is not None:
            yield from chunks.check_data(chunk.binding, chunk.coords, value)
        return
    size = chunk.binding.store.size(chunk.key) if chunk.size is None else chunk.size
    if size is not None:
        yield from chunks.check_size(size, chunks.exact_size(chunk.binding, chunk.coords))
