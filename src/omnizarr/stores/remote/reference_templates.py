"""Templates of Kerchunk references, filled in by jinja2: expressions only, of bounded size and number of steps.

A template is a program that a stranger wrote. Loops, macros, functions of jinja2 and most methods and filters are
refused; results are short texts and small numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import jinja2
from jinja2 import nodes, sandbox

_LONGEST: Final = 4096
"""Maximum number of characters of a template, and of every intermediate value."""
_WIDEST: Final = 1000
_BITS: Final = 128
_MOST_CALLS: Final = 100
_FILTERS: Final = {"int", "float", "string", "lower", "upper", "abs", "round", "replace", "trim", "default", "format"}
_METHODS: Final = (
    {"zfill", "rjust", "ljust", "lower", "upper", "strip", "lstrip", "rstrip", "replace", "title"}
)  # fmt: skip
_REFUSED: Final = (nodes.For, nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.Include, nodes.Import)
_REFUSED_TOO: Final = (nodes.FromImport, nodes.Extends, nodes.Block, nodes.Assign, nodes.AssignBlock, nodes.With)
_is_wide = re.compile(r"[0-9]{4}|\\*|\\{[^{}]*\\{").search


class _Environment(sandbox.SandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%", "+"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        is_text = isinstance(left, str) or isinstance(right, str)
        numbers = [abs(each) for each in (left, right) if isinstance(each, int)]
        texts = [each for each in (left, right) if not isinstance(each, int | float)]
        if operator == "*" and texts and max(numbers, default=0) * max(map(_length, texts)) > _LONGEST:
            raise ValueError("a text is too long")
        if operator == "**" and (is_text or any(number > _WIDEST for number in numbers) or abs(right) > _BITS):
            raise ValueError("a number is too large")
        if operator == "%" and isinstance(left, str) and _is_wide(left):
            raise ValueError("a format is too wide")
        return _checked(super().call_binop(context, operator, left, right))

    def call(self, context: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        name = getattr(function, "__name__", "")
        owner = getattr(function, "__self__", None)
        if not getattr(function, "is_template", False):
            if not isinstance(owner, str):
                raise ValueError("a function that templates may not call")
            if isinstance(owner, str) and name not in _METHODS:
                raise ValueError(f"a method that templates may not call: {name}")
        numbers = [each for each in (*args, *kwargs.values()) if isinstance(each, int)]
        if isinstance(owner, str) and name in {"zfill", "rjust", "ljust"} and any(n > _WIDEST for n in numbers):
            raise ValueError("a text is too long")
        return _checked(super().call(context, function, *args, **kwargs))


def _length(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0


def _checked(value: Any) -> Any:
    if _length(value) > _LONGEST or (isinstance(value, int) and value.bit_length() > _BITS):
        raise ValueError("a value is too long")
    return value


def _parsed(environment: _Environment, text: str) -> Callable[..., str]:
    if len(text) > _LONGEST:
        raise ValueError("a template is too long")
    tree = environment.parse(text)
    if next(tree.find_all((*_REFUSED, *_REFUSED_TOO)), None) is not None:
        raise ValueError("only expressions are allowed")
    for each in tree.find_all(nodes.Filter):
        if each.name not in _FILTERS or any(_is_wide(str(part.value)) for part in each.find_all(nodes.Const)):
            raise ValueError(f"a filter that templates may not use: {each.name}")
    return environment.from_string(tree).render


def compiled(text: str, given: Mapping[str, Any]) -> Callable[..., str]:
    """Return the function that fills in a template; other templates are functions in it."""
    environment = _Environment(undefined=jinja2.StrictUndefined)
    environment.globals.clear()
    render = _parsed(environment, text)
    calls = [0]

    def function_of(template: str) -> Callable[..., str]:
        inner = _parsed(environment, template)

        def called(**kwargs: Any) -> str:
            calls[0] += 1
            if calls[0] > _MOST_CALLS:
                raise ValueError("templates that call one another too often")
            return inner(**kwargs)

        called.is_template = True  # type: ignore[attr-defined]
        return called

    functions = {
        str(name): function_of(value) if isinstance(value, str) and "{{" in value else value
        for name, value in given.items()
    }

    def filled(**variables: Any) -> str:
        calls[0] = 0
        return render({**functions, **variables})

    return filled
