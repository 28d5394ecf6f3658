"""Messages and advice of the library in terms of the command line: options instead of keywords.

The library says ``pass overwrite=True``, and the command line ``pass --overwrite``. Advice that the typed command has
no option for is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import click

from omnizarr.cli.commands import omnizarr
from omnizarr.errors import Function, OmnizarrError, Setting, StorageOption, in_python, worded
from omnizarr.stores import redaction

_FUNCTIONS: Final = {"copy": "cp", "copy_node": "cp", "delete_node": "rm", "consolidate_metadata": "consolidate"}
"""Functions whose command has another name."""
_ALIASES: Final[Mapping[str, Mapping[str, str]]] = {"convert": {"zarr_format": "source_format"}}
"""Keywords of functions that open a source; the options with these names concern the target."""


_command: ContextVar[click.Command | None] = ContextVar("command", default=None)


@contextmanager
def typed(words: Sequence[str]) -> Iterator[None]:
    """Set the typed command, for `message`: the one in a group, if it is a group of commands."""
    names = (word for word in words if not word.startswith("-"))
    context = click.Context(omnizarr)
    command = omnizarr.get_command(context, next(names, ""))
    while isinstance(command, click.Group) and (below := command.get_command(context, next(names, ""))):
        command = below
    token = _command.set(command)
    try:
        yield
    finally:
        _command.reset(token)


def typed_command() -> str:
    """Return the program with the name of the typed command, if there is such a command."""
    command = _command.get()
    return "omnizarr" if command is None else f"omnizarr {command.name}"


def message(error: Exception) -> str:
    """Return the message of an error in terms of the typed command, with the part of its remedy that can be typed."""
    if isinstance(error, OmnizarrError):
        return safe(error.worded(_word))
    return in_words(error.args[0]) if error.args and isinstance(error.args[0], str) else safe(str(error))


def in_words(text: str) -> str:
    """Return a text of the library in terms of the typed command, without passwords and signatures in URLs."""
    return safe(worded(text, _word))


def safe(text: str) -> str:
    """Return a text without passwords and signatures in URLs."""
    return redaction.redact(text) if "://" in text else text


def _word(name: str, value: Any) -> str | None:
    """Return how a part of a `Wording` is typed; None if the command has nothing for it."""
    command = _command.get()
    params = () if command is None else command.params
    options = {param.name: param for param in params if isinstance(param, click.Option)}
    if isinstance(value, Function):
        known = _FUNCTIONS.get(name, name)
        return f"omnizarr {known}" if omnizarr.get_command(click.Context(omnizarr), known) is not None else None
    if isinstance(value, Setting):
        return f"{in_python(name, value)} (in Python)"
    is_storage = isinstance(value, StorageOption)
    if is_storage:
        value = value.value
    if name == "references":
        name, value = ("is_trusting", True) if value == "trusted" else ("roots", value[0])
    if command is not None:
        name = _ALIASES.get(str(command.name), {}).get(name, name)
    if name in options:
        return _as_option(options[name], value)
    if not is_storage or "pairs" not in options:
        return None
    text = "..." if value is ... else str(value).lower() if isinstance(value, bool) else value
    return f"{min(options['pairs'].opts, key=len)} {name}={text}"


def _as_option(option: click.Option, value: object) -> str:
    """Return an option as it is typed to have a value."""
    name = max(option.opts, key=len)
    if option.is_flag:
        off = max(option.secondary_opts, key=len, default=f"without {name}")
        return off if value is False else name
    if value is ... or value == "...":
        return name
    return f"{name} {','.join(map(str, value)) if isinstance(value, list | tuple) else value}"
