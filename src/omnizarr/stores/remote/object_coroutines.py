"""The functions of obstore that `ObjectStore` calls, as coroutine functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from omnizarr.stores.base import Buffer
from omnizarr.stores.remote.object_answers import of_length
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import asyncio

    import obstore
else:
    asyncio = Lazy("asyncio")  # without an event loop, it is not needed
    obstore = Lazy("obstore")

_TWINS: Final = frozenset({"get_range", "get_ranges", "head", "put", "delete", "copy"})
"""Functions that also exist with "_async" appended to the name."""


def coroutine_of(name: str, most_bytes: int, list_timeout: float) -> Callable[..., Awaitable[Any]] | None:
    """Return the coroutine function for a function with this name; None if it sends no request.

    Larger values are not received.
    """
    if name == "get":
        return partial(_get, most_bytes)
    if name == "list_with_delimiter":
        return partial(_list, list_timeout)
    if name == "next":  # of a listing
        return anext
    return getattr(obstore, f"{name}_async") if name in _TWINS else None


class _Fetched(NamedTuple):
    """The result of a read of obstore, with the bytes already in memory."""

    meta: Mapping[str, Any]
    attributes: Mapping[str, Any]
    range: tuple[int, int]
    data: Any

    def stream(self, _: int) -> Iterator[Any]:
        return iter([self.data])


async def _get(most_bytes: int, store: Any, path: str, options: Any = None) -> _Fetched:
    answer = await obstore.get_async(store, path, options=options)
    start, stop = answer.range
    # A value that is too large is refused before its bytes are requested.
    is_wanted = not (options or {}).get("head") and stop - start <= most_bytes
    data: Buffer = b""
    if is_wanted:
        data = of_length(await anext(answer.stream(stop - start), b""), stop - start)
    return _Fetched(answer.meta, answer.attributes, (start, stop), data)


async def _list(list_timeout: float, store: Any, path: str | None) -> Any:
    return await asyncio.wait_for(obstore.list_with_delimiter_async(store, path), list_timeout)
