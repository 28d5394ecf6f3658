"""The page of ``omnizarr view``: an application that answers its requests, and a server that opens a browser."""

from __future__ import annotations

import asyncio
import json
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from html import escape
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Self

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message

from omnizarr.api import opening
from omnizarr.errors import (
    ContainsGroupError,
    NodeNameError,
    NodeNotFoundError,
    NotRepresentableError,
    OmnizarrError,
    SelectionError,
    ServerError,
    Wording,
)
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.stores.tasks import waited
from omnizarr.support import workers
from omnizarr.support.progress import notebook
from omnizarr.support.text import visible
from omnizarr.tools.translate.translated import TranslatedStore
from omnizarr.web.application import guarded
from omnizarr.web.compression import Compressed
from omnizarr.web.facts import Dataset
from omnizarr.web.guards import SafeHeaders, is_loopback
from omnizarr.web.keys import DOCUMENTS, Keys, refusal
from omnizarr.web.plain import words
from omnizarr.web.serving import run, running
from omnizarr.web.stopping import Stop, StoppedError
from omnizarr.web.tiles import DOCUMENT, Steps, Stored, TileArray

PAGE: Final = Path(__file__).parent / "page"
"""The directory of the page, after it has been built."""

_POLICY: Final = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors "
)
_NOTEBOOKS: Final = "http://localhost:* http://127.0.0.1:* http://[::1]:* https://localhost:* vscode-webview:"
"""Pages of this machine, which notebooks are."""
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_CLOSED_REQUEST: Final = 499
"""Status of an answer to a cancelled request."""
_BAD_REQUESTS: Final = (SelectionError, NodeNameError, ContainsGroupError, NotRepresentableError)
_AT_ONCE: Final = 8
"""Number of tiles that are computed at the same time."""
_KEPT: Final = "private, max-age=60"
_NOTE: Final = "Omnizarr-Note"
"""How long a browser caches a tile."""


def view(
    *sources: Any,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    public: bool = False,
    hosts: Iterable[str] = (),
    browser: bool | None = None,
    block: bool | None = None,
    allow_pickle: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    started: Callable[[str], object] | None = None,
) -> Viewing | None:
    """Show hierarchies of any format in the browser, until Ctrl-C; in a notebook, below the cell. Nothing is changed.

    Arrays are drawn as pictures, lines or tables. Only the data on the screen is read.

    Parameters
    ----------
    *sources : path, URL, Store, StorePath, Array, Group, mapping or Dataset
        The hierarchies to show. Two of them can be shown side by side. A `Dataset` also has a name for the page.
    host : str
        The address to listen at. By default, only programs on this machine can reach it.
    port : int
        The port; 0 picks a free one.
    token : str, optional
        A token that every request must contain. The browser that is opened gets it.
    public : bool
        Whether to listen without a token at an address that other machines can reach.
    hosts : iterable of str
        Host names that a proxy on this machine uses for the server, in addition to those of the loopback.
    browser : bool, optional
        Whether to open the page in a browser. By default, if it blocks.
    block : bool, optional
        Whether to return only after Ctrl-C. If not, the page is served in a thread, until `Viewing.close` or the end
        of the process. By default, it does not block in notebooks of Jupyter.
    allow_pickle : bool
        Whether to read pickled objects. Reading them can run arbitrary code.
    storage_options : mapping, optional
        Options of the store, such as credentials; see `omnizarr.stores.resolve`.
    started : callable, optional
        Called with the URL of the page as soon as it can be opened.

    Returns
    -------
    Viewing or None
        The page, if it does not block: notebooks show it.

    Raises
    ------
    NodeNotFoundError
        If a source does not exist.
    MissingDependencyError
        If Starlette or uvicorn is not installed.
    ServerError
        If the port is in use, the address belongs to another machine, or the page was not built.
    ValueError
        If there are no sources, or other machines can reach the address without a token and without `public`.

    Examples
    --------
    >>> import omnizarr
    >>> omnizarr.view("era5.zarr")  # doctest: +SKIP
    >>> page = omnizarr.view("era5.zarr", block=False)  # doctest: +SKIP
    >>> page.url  # doctest: +SKIP
    'http://127.0.0.1:40743/'
    >>> page.close()  # doctest: +SKIP
    """
    if block is None:
        block = notebook() is None
    if browser is None:
        browser = block
    if token is None and not public and not is_loopback(host):
        raise ValueError(
            Wording(
                f"all programs that reach {host} could read the data; set a {{token}}, or pass {{public}}",
                token=...,
                public=True,
            )
        )
    datasets = [_opened(source, allow_pickle=allow_pickle, storage_options=storage_options) for source in sources]
    app = viewer(
        *datasets,
        token=token,
        hosts=hosts if token is None and is_loopback(host) else None,
        allow_pickle=allow_pickle,
        frames=not block,
    )

    def tell(url: str) -> None:
        address = address_of(url)
        if started is not None:
            started(address)
        if browser:  # some browsers run in the terminal, and return when they are closed
            workers.start(lambda: webbrowser.open(address), "omnizarr-browser")

    def address_of(url: str) -> str:
        return f"{url}/" if token is None else f"{url}/?token={token}"

    if block:
        run(app, host=host, port=port, started=tell)
        return None
    server = ExitStack()
    for source, dataset in zip(sources, datasets, strict=True):
        if isinstance(source, str | Path):
            server.callback(dataset.root.store.close)
    url = server.enter_context(running(app, host=host, port=port))
    page = Viewing(address_of(url), server)
    tell(url)
    return page


class Viewing:
    """A page that is served in a thread, until it is closed or the process ends. `omnizarr.view` returns it.

    Attributes
    ----------
    url : str
        The URL of the page.
    height : int
        Its height in a notebook, in pixels.

    Examples
    --------
    >>> import omnizarr
    >>> with omnizarr.view(omnizarr.create_group({}), block=False) as page:  # doctest: +SKIP
    ...     print(page.url)
    http://127.0.0.1:40743/
    """

    def __init__(self, url: str, server: ExitStack) -> None:
        self.url = url
        self.height = 640
        self._server = server
        _served.add(self)

    def close(self) -> None:
        """End the server. The page in the browser no longer gets data. You can call it again."""
        _served.discard(self)
        self._server.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self not in _served

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Viewing {self.url}{' closed' if self.closed else ''}>"

    def _repr_html_(self) -> str:
        """Return the page in a frame; with a token only a link, because browsers keep no cookie for it in a frame."""
        address = escape(self.url)
        if self.closed:
            return f"<p>{address} is closed.</p>"
        link = f'<a href="{address}" target="_blank" rel="noopener">{address}</a>'
        if "?token=" in self.url:
            return f"<p>{link}</p>"
        style = f"width: 100%; height: {self.height:d}px; border: 1px solid #8886; border-radius: 6px"
        return f'<iframe src="{address}" style="{style}" title="omnizarr view"></iframe><p>{link}</p>'


_served: Final[set[Viewing]] = set()
"""The pages that are not closed: they are served, also if no variable holds them."""


def viewer(
    *sources: Any,
    token: str | None = None,
    hosts: Iterable[str] | None = None,
    allow_pickle: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    page: Path | None = None,
    frames: bool = False,
) -> Starlette:
    """Return an ASGI application that shows hierarchies, for your own server. You can mount it under a prefix.

    Parameters
    ----------
    *sources, token, allow_pickle, storage_options
        Like those of `omnizarr.view`.
    hosts : iterable of str, optional
        Host names of the server, in addition to those of the loopback. Requests to other names are refused. By
        default every name is allowed.
    page : Path, optional
        The directory with the page. The default is that of this installation.
    frames : bool
        Whether pages of this machine, such as notebooks, can show the page in a frame.

    Returns
    -------
    Starlette

    Raises
    ------
    NodeNotFoundError
        If a source does not exist.
    ServerError
        If the page was not built.
    ValueError
        If there are no sources.
    """
    if not sources:
        raise ValueError("view() takes at least one path, URL or store")
    page = PAGE if page is None else page
    if not (page / "index.html").is_file():
        raise ServerError(
            "the page of the viewer was not built",
            found=f"no index.html in {page}",
            remedy="build it: make page (needs Node.js); or install omnizarr from a wheel, which has it",
        )
    opened = [_opened(source, allow_pickle=allow_pickle, storage_options=storage_options) for source in sources]
    answers = _Answers(opened)
    shown = [
        Mount(f"/data/{number}", Compressed(Keys(store), DOCUMENTS))
        for number, store in enumerate(
            TranslatedStore(dataset.root.store_path, allow_pickle=allow_pickle) for dataset in opened
        )
    ]
    compressed = [Middleware(Compressed)]
    routes: list[Route | Mount] = [
        Route("/api/datasets", answers.datasets, middleware=compressed),
        Route("/api/{number:int}/{question}", answers.ask, middleware=compressed),
        Route("/small/{number:int}", answers.small),
        Route("/tiles/{number:int}/{steps}/{rest:path}", answers.tile),
        *shown,
        Mount("/", Compressed(StaticFiles(directory=page, html=True))),
    ]
    app = guarded(routes, token=token, hosts=hosts, origins=())
    policy = _POLICY + (_NOTEBOOKS if frames else "'none'")
    app.add_middleware(SafeHeaders, {"Content-Security-Policy": policy, **_HEADERS})
    return app


def _opened(source: Any, *, allow_pickle: bool, storage_options: Mapping[str, Any] | None) -> Dataset:
    if isinstance(source, Dataset):
        return source
    node = source
    if not isinstance(source, Array | Group):
        node = opening.open(source, mode="r", allow_pickle=allow_pickle, storage_options=storage_options)
    return Dataset(node, str(source if isinstance(source, str | Path) else node.store_path))


class _Answers:
    """Answers to the requests of the page, about several datasets."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self._datasets = datasets
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def datasets(self, _: Request) -> Response:
        """Return the datasets."""
        listed = [{"number": number, **dataset.summary()} for number, dataset in enumerate(self._datasets)]
        return _json({"version": version("omnizarr"), "datasets": listed})

    async def ask(self, request: Request) -> Response:
        """Return the answer to a question about a node."""
        question = _QUESTIONS.get(request.path_params["question"])
        if question is None:
            return refusal(HTTPStatus.NOT_FOUND, f"no question {visible(request.path_params['question'])}")

        def answer(stop: Stop) -> Response:
            return _json(question(self._dataset(request), _Query(request.query_params), stop))

        return await _answered(request, answer)

    async def tile(self, request: Request) -> Response:
        """Return the document of a tile array, or one of its tiles; nothing for cancelled requests.

        With ``?broken=mark``, broken chunks have the fill value, and a field of the header names them. Otherwise a tile
        with a broken chunk is an error.
        """

        def answer(stop: Stop) -> Response:
            steps, rest = Steps.of(request.path_params["steps"]), request.path_params["rest"]
            path, _, name = f"/{rest}".rpartition(f"/{DOCUMENT}")
            if rest.endswith(DOCUMENT) and not name:
                tiles = TileArray(self._dataset(request).array(path[1:]), steps)
                return Response(tiles.document(), headers={"Cache-Control": "no-cache"}, media_type="application/json")
            parts = rest.split("/")
            head = len(parts) - len(steps.strides) - 1
            if head < 0:
                raise NodeNotFoundError("there is no such tile", path=rest)
            dataset, at = self._dataset(request), "/".join(parts[:head])
            tiles = TileArray(dataset.array(at), steps, lambda: _stored(dataset, at, stop))
            coords = tiles.coords_of("/".join(parts[head:]))
            if coords is None:
                raise NodeNotFoundError("there is no such tile", path=rest)
            tile = tiles.tile(coords, stop, marks=request.query_params.get("broken") == "mark")
            fields = {"Cache-Control": "no-store" if tile.broken else _KEPT, "Omnizarr-Thinning": str(tile.thinning)}
            if tile.broken:
                what = {"message": words(tile.broken[0].error), "boxes": [part.box for part in tile.broken]}
                fields["Omnizarr-Broken"] = json.dumps(what)
            return Response(tile.data, headers=fields, media_type="application/octet-stream")

        async with self._room:
            if await request.is_disconnected():
                return Response(status_code=_CLOSED_REQUEST)
            return await _answered(request, answer)

    async def small(self, request: Request) -> Response:
        """Return a small picture of a node; no content if it has none."""

        def answer(_: Stop) -> Response:
            picture = self._dataset(request).small(_Query(request.query_params).text("path"))
            if picture is None:
                return Response(status_code=HTTPStatus.NO_CONTENT)
            return Response(picture.data, headers={"Cache-Control": _KEPT, _NOTE: picture.note}, media_type="image/png")

        async with self._room:
            if await request.is_disconnected():
                return Response(status_code=_CLOSED_REQUEST)
            return await _answered(request, answer)

    def _dataset(self, request: Request) -> Dataset:
        number: int = request.path_params["number"]
        if number >= len(self._datasets):
            raise NodeNotFoundError(f"there is no dataset {number}")
        return self._datasets[number]


def _stored(dataset: Dataset, path: str, stop: Stop) -> Stored | None:
    """Return which chunks of an array are stored; None if that is not known, or they differ in shape."""
    found = dataset.stored(path, stop)
    return None if found is None else Stored(*found)


class _Query:
    """The parameters of a request."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = parameters

    def text(self, name: str) -> str:
        return self._parameters.get(name, "")

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer. Raises SelectionError for other values."""
        text = self._parameters.get(name)
        if text is None and default is not None:
            return default
        try:
            return int(text or "")
        except ValueError:
            raise SelectionError(f"{name} is no integer", found=text) from None

    def stop(self) -> int | None:
        return self.integer("stop") if "stop" in self._parameters else None

    def json(self, name: str) -> Any:
        """Return a parameter in JSON. Raises SelectionError if it is not."""
        try:
            return json.loads(self.text(name))
        except (ValueError, RecursionError):
            raise SelectionError(f"{name} is no JSON", found=self.text(name)[:80]) from None

    def list(self, name: str) -> Sequence[Any]:
        """Return a list in JSON. Raises SelectionError if it is none."""
        found = self.json(name)
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise SelectionError(f"{name} is no list", found=self.text(name)[:80])
        return found


_Question = Callable[[Dataset, _Query, Stop], dict[str, Any]]
_QUESTIONS: Final[Mapping[str, _Question]] = {
    "tree": lambda data, query, _: data.tree(
        query.text("path"), query.integer("offset", 0), query.integer("limit", 500)
    ),
    "members": lambda data, query, _: data.members(
        query.text("path"), query.integer("offset", 0), query.integer("limit", 100)
    ),
    "search": lambda data, query, stop: data.search(query.text("q"), query.integer("limit", 200), stop),
    "info": lambda data, query, _: data.info(query.text("path")),
    "labels": lambda data, query, _: data.labels(
        query.text("path"),
        query.integer("dimension"),
        query.integer("start", 0),
        query.stop(),
        query.integer("step", 1),
    ),
    "line": lambda data, query, stop: data.line(
        query.text("path"),
        query.integer("dimension"),
        query.json("at"),
        query.integer("start", 0),
        query.stop(),
        step=query.integer("step") if query.text("step") else None,
        part=query.text("part"),
        fill_is_missing=query.text("fill") == "1",
        gone=stop,
    ),
    "values": lambda data, query, _: data.values(query.text("path"), query.json("select")),
    "nearest": lambda data, query, stop: data.nearest(query.text("path"), query.list("at"), query.list("dims"), stop),
    "chunks": lambda data, query, stop: data.chunks(query.text("path"), stop),
    "check": lambda data, query, stop: data.check(query.text("path"), data=query.text("data") == "1", stop=stop),
}


def _json(answer: Mapping[str, Any]) -> Response:
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(
        text.encode("utf-8", "replace"), headers={"Cache-Control": "no-store"}, media_type="application/json"
    )


async def _answered(request: Request, answer: Callable[[Stop], Response]) -> Response:
    """Return the result of `answer`, called in a thread, or its error. `Stop` is set when the client disconnects."""
    gone = threading.Event()
    watching = asyncio.ensure_future(_watch(request.receive, gone))
    try:
        return await waited(answer, gone.is_set)
    except StoppedError:
        return Response(status_code=_CLOSED_REQUEST)
    except NodeNotFoundError as error:
        if error.remedy is not None and error.remedy.startswith("create"):
            error.remedy = None  # the page only reads
        return _refused(HTTPStatus.NOT_FOUND, error)
    except _BAD_REQUESTS as error:
        return _refused(HTTPStatus.BAD_REQUEST, error)
    except (OmnizarrError, OSError, ValueError, TypeError, NotImplementedError, MemoryError) as error:
        return _refused(HTTPStatus.INTERNAL_SERVER_ERROR, error)
    finally:
        gone.set()
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def _watch(receive: Callable[[], Awaitable[Message]], gone: threading.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


def _refused(status: HTTPStatus, error: Exception) -> Response:
    return refusal(status, words(error))
