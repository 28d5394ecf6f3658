"""The options and arguments that commands share, so that each has one spelling, one meaning and one help text.

A command is written with `command` and these decorators::

    @command()
    @path_argument
    @storage_options
    @scheduler_option
    @max_memory_option
    @quiet_option
    @json_option
    def stat(path: str, storage: dict[str, Any], *, as_json: bool, **options: Any) -> int:
        ...

The options appear in its help in the order of the decorators, then the storage options and the options of all commands.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from omnizarr.cli import help  # noqa: A004 - what a command calls it
from omnizarr.settings import config
from omnizarr.stores import trust
from omnizarr.stores.urls import scheme_of
from omnizarr.support import amounts

if TYPE_CHECKING:
    _ParamType = click.ParamType[str]
else:  # not generic before click 8.4
    _ParamType = click.ParamType

P = ParamSpec("P")
R = TypeVar("R")
Function = Callable[..., Any]


class _StorageOption(click.Option):
    """An option that help pages list under "Storage options"."""

    section = "Storage options"


# -- places ----------------------------------------------------------------------


class Place(_ParamType):
    """A path or URL of a hierarchy, or of a node in it; a shell completes files, and paths inside hierarchies."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a path as it was typed. Raises click.BadParameter if it is empty, as an unset variable is."""
        if not value:
            self.fail("the path is empty; '.' is the current directory", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the places that begin with the typed text."""
        return self.complete(incomplete)

    def complete(self, incomplete: str) -> list[CompletionItem]:
        """Return the places that begin with the typed text; those that continue have the type "open"."""
        complete = import_module("omnizarr.cli.places").complete
        return [CompletionItem(path, "open" if path.endswith("/") else "path") for path in complete(incomplete)]


PLACE: Final = Place()
path_argument: Final = click.argument("path", type=PLACE)
"""The argument ``PATH``, passed as `path`."""
paths_argument: Final = click.argument("paths", metavar="PATH...", type=PLACE, nargs=-1, required=True)
"""One or more of them, passed as `paths`: see `omnizarr.cli.several`."""


def one_of(values: Iterable[str]) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what completes an option that takes one of these values, among others: for ``shell_complete=``."""
    known = tuple(values)
    return lambda _, __, incomplete: [CompletionItem(value) for value in known if value.startswith(incomplete)]


def refuse_options(words: Iterable[str]) -> None:
    """Raise click.NoSuchOption for a word that looks like an option, among words that can begin with a minus sign."""
    for word in words:
        if re.match(r"--|-[A-Za-z]", word):
            raise click.NoSuchOption(word, ctx=click.get_current_context())


# -- output ----------------------------------------------------------------------

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""``--json``, passed as `as_json`."""

_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)


def is_quiet() -> bool:
    """Return whether ``--quiet`` was typed: show no progress then."""
    return _is_quiet.get()


def quiet_option(command: Callable[P, R]) -> Callable[..., R]:
    """Give a command the option ``--quiet``: nothing on stdout but JSON that was asked for, and no progress.

    The command need not check it: its output is dropped, and progress bars check `is_quiet`.
    """

    @click.option("-q", "--quiet", is_flag=True, help="Print only warnings and errors.")
    @functools.wraps(command)
    def run(*args: Any, quiet: bool, **kwargs: Any) -> R:
        if not quiet:
            return command(*args, **kwargs)
        with _quiet(dropping=not kwargs.get("as_json")):
            return command(*args, **kwargs)

    return run


@contextmanager
def _quiet(*, dropping: bool) -> Iterator[None]:
    token = _is_quiet.set(True)
    stdout = sys.stdout
    try:
        if not dropping:
            yield
            return
        with open(os.devnull, "w", encoding="utf-8") as sys.stdout:  # noqa: PTH123 - no path
            yield
    finally:
        sys.stdout = stdout
        _is_quiet.reset(token)


# -- storage ---------------------------------------------------------------------


def _pairs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """Return ``key=value`` options as a dictionary; ``true`` and ``false`` are booleans."""
    pairs = {}
    for text in values:
        key, sign, value = text.partition("=")
        if not key or not sign:
            raise click.BadParameter(f"{text!r}: expected KEY=VALUE, as in region=eu-central-1")
        pairs[key] = {"true": True, "false": False}.get(value.lower(), value)
    return pairs


def _trust_options(command: Function) -> Function:
    """Give a command the options by which a user trusts what references and HDF5 files lead to."""

    @click.option(
        "--trust-references",
        "is_trusting",
        cls=_StorageOption,
        is_flag=True,
        help="Read all files and URLs that references and HDF5 files name.",
    )
    @click.option(
        "--trust-root",
        "roots",
        cls=_StorageOption,
        metavar="ROOT",
        multiple=True,
        help="Read such files and URLs below this directory or URL. Can be repeated.",
    )
    @functools.wraps(command)
    def run(*args: Any, is_trusting: bool, roots: tuple[str, ...], **kwargs: Any) -> Any:
        if not is_trusting and not roots:
            return command(*args, **kwargs)
        absolute = [root if scheme_of(root) else str(Path(root).expanduser().absolute()) for root in roots]
        with config.set({"references.trust": trust.TRUSTED if is_trusting else absolute}):
            return command(*args, **kwargs)

    return run


def _storage(*names: str) -> Callable[[Function], Function]:
    def decorate(command: Function) -> Function:
        @click.option(
            *names,
            "pairs",
            cls=_StorageOption,
            metavar="KEY=VALUE",
            multiple=True,
            callback=_pairs,
            help="Pass an option to the store. Can be repeated.",
        )
        @click.option("--anon", cls=_StorageOption, is_flag=True, help="Read public data without credentials.")
        @click.option("--endpoint", cls=_StorageOption, metavar="URL", help="URL of a server other than Amazon's.")
        @click.option("--region", cls=_StorageOption, metavar="NAME", help="Region of the bucket.")
        @_trust_options
        @functools.wraps(command)
        def run(
            *args: Any, pairs: dict[str, Any], anon: bool, endpoint: str | None, region: str | None, **kwargs: Any
        ) -> Any:
            named = {"anon": anon or None, "endpoint": endpoint, "region": region}
            storage = {**pairs, **{key: value for key, value in named.items() if value is not None}}
            return command(*args, storage=storage, **kwargs)

        return run

    return decorate


storage_options: Final = _storage("-o", "--storage-option")
"""``-o KEY=VALUE --anon --endpoint URL --region NAME``, passed as the dictionary `storage`; empty if none is typed."""

long_storage_options: Final = _storage("--storage-option")
"""The same without ``-o``, for commands in which that is the output."""


# -- work ------------------------------------------------------------------------


def parse_bytes(text: str) -> int:
    """Return a number of bytes, which may have a unit.

    >>> parse_bytes("500MB"), parse_bytes("2 GiB"), parse_bytes("4096")
    (500000000, 2147483648, 4096)
    """
    with suppress(ValueError):
        if number := amounts.nbytes(text):
            return number
    raise click.BadParameter(f"{text!r}: expected {amounts.EXPECTED}")


def _schedulers(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    known = [os.environ.get("DASK_SCHEDULER_ADDRESS", ""), "tcp://127.0.0.1:8786", "tls://"]
    return [CompletionItem(address) for address in known if address and address.startswith(incomplete)]


scheduler_option: Final = click.option(
    "--scheduler",
    metavar="ADDRESS",
    shell_complete=_schedulers,
    help="Run on the dask.distributed cluster at this address: tcp://10.0.0.1:8786.",
)
"""``--scheduler ADDRESS``, passed as `scheduler`; None for threads of this process."""

max_memory_option: Final = click.option(
    "--max-memory", type=parse_bytes, metavar="BYTES", help="Limit of memory for elements, as in 500MB or 2GiB."
)
"""``--max-memory BYTES``, passed as the number `max_memory`, or None."""

concurrency_option: Final = click.option(
    "--concurrency", type=click.IntRange(min=1), metavar="N", help="Maximum number of chunks in flight."
)
"""``--concurrency N``, passed as `concurrency`, or None."""

dry_run_option: Final = click.option("-n", "--dry-run", is_flag=True, help="Report what would be done. Write nothing.")
"""``-n``, ``--dry-run``, passed as `dry_run`."""

overwrite_option: Final = click.option("--overwrite", is_flag=True, help="Replace an existing DST.")
"""``--overwrite``, passed as `overwrite`."""


# -- options of all commands ---------------------------------------------------


def has_color() -> bool:
    """Return whether colors are wanted: neither ``--no-color`` nor NO_COLOR; `click.echo` asks for itself."""
    context = click.get_current_context(silent=True)
    return context is None or context.color is not False


def no_color_option() -> click.Option:
    """Return ``--no-color``, which every command has; `help.Helped` looks for it before all else."""
    return click.Option(
        ["--no-color"],
        is_flag=True,
        expose_value=False,
        help="Print without colours, as with NO_COLOR=1.",
    )


class Command(help.Page):
    """A command with the options that all commands have."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(no_color_option())


def command(name: str | None = None, **settings: Any) -> Callable[[Function], Command]:
    """Make a command of a function, like `click.command`."""
    return click.command(name, cls=Command, **settings)
