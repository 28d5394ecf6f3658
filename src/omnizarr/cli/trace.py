"""``--trace``: the requests of a command to a store, printed on stderr when the command is done."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, TypeVar

import click

from omnizarr.cli.text import fit, one_line
from omnizarr.stores import Store
from omnizarr.stores.wrap.metrics import MetricsStore, Report, Traced
from omnizarr.stores.wrap.observed import Spans

P = ParamSpec("P")
R = TypeVar("R")

_MOST: Final = 200
"""Number of requests to print; if there are more, the first and the last ones are printed."""


class Trace:
    """The requests of one command."""

    def __init__(self) -> None:
        self.requests: list[Traced] = []
        self._stores: list[MetricsStore] = []

    def wrap(self, store: Store) -> Store:
        """Return a store that records each request."""
        watched = MetricsStore(store, on_request=self.requests.append)
        self._stores.append(watched)
        return watched

    def report(self) -> Report:
        """Return the sums."""
        return self._stores[0].report() if self._stores else Report()

    def lines(self) -> Iterator[str]:
        """Yield a line per request, in the order in which they began, and the sums."""
        requests = sorted(self.requests, key=lambda request: request.start)
        shown = list(enumerate(requests, 1))
        left_out = len(shown) - _MOST
        if left_out > 0:
            shown = [*shown[: _MOST // 2], *shown[-_MOST // 2 :]]
        width = max([len(one.verb) for _, one in shown], default=4)
        yield _bold(f"{'':>5}  {'':>9} ms  {'bytes':>12}  {'verb':<{width}}  key")
        for place, (number, one) in enumerate(shown):
            if left_out > 0 and place == _MOST // 2:
                yield f"{'...':>5}  {left_out:,} more requests"
            moved = "-" if one.nbytes is None else f"{one.nbytes:,}"
            text = f"{number:>5}  {one.seconds * 1000:>9.2f} ms  {moved:>12}  {one.verb:<{width}}  {_what(one)}"
            yield click.style(f"{text}  failed", fg="red") if one.failed else text
        yield from map(_bold, str(self.report()).splitlines())


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def watched(store: Store) -> Store:
    """Return a store, or with ``--trace`` a store that records each request."""
    trace = _current.get()
    return store if trace is None else trace.wrap(store)


def is_on() -> bool:
    """Return whether to show requests."""
    return _current.get() is not None


def traced(command: Callable[P, R]) -> Callable[..., R]:
    """Give a command the option ``--trace``."""

    @click.option("--trace", is_flag=True, help="Print all requests to the store on stderr.")
    @functools.wraps(command)
    def run(*args: Any, trace: bool, **kwargs: Any) -> R:
        if not trace:
            return command(*args, **kwargs)
        with _tracing():
            return command(*args, **kwargs)

    return run


@contextmanager
def _tracing() -> Iterator[None]:
    trace = Trace()
    token = _current.set(trace)
    try:
        yield
    finally:  # also after an error: what was asked may say why
        _current.reset(token)
        sys.stdout.flush()
        for line in trace.lines():
            click.echo(fit(line), err=True)


def _what(one: Traced) -> str:
    span = _spans(one.span)
    return f"{one_line(one.key) or '(all)'}{f'  {span}' if span else ''}"


def _spans(span: Spans) -> str:
    """Return parts of a value as slices.

    >>> _spans((0, 16)), _spans((-4, None)), _spans(((0, 4), (8, 12)))
    ('[0:16]', '[-4:]', '[0:4, 8:12]')
    """
    if span is None:
        return ""
    spans: Any = span if span and isinstance(span[0], tuple) else (span,)
    few = [f"{start}:{'' if stop is None else stop}" for start, stop in spans[:4]]
    more = f", {len(spans) - 4} more" if len(spans) > 4 else ""
    return f"[{', '.join(few)}{more}]"


def _bold(text: str) -> str:
    return click.style(text, bold=True)
