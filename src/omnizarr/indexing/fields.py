"""Names of fields in a selection, for structured data types."""

from __future__ import annotations

from typing import Any, TypeAlias

from omnizarr.errors import SelectionError

Fields: TypeAlias = "str | list[str] | None"


def pop_fields(selection: Any) -> tuple[Fields, Any]:
    """Return the field names in a selection, and the selection without them.

    Returns
    -------
    fields : str, list of str, or None
        One name in its original form (a list stays a list); None if there is none.
    selection : object
        The rest. A single item is no longer in a tuple. If nothing is left: ``()``, which means everything.

    Raises
    ------
    SelectionError
        If a name occurs twice.

    Examples
    --------
    >>> pop_fields(("x", slice(2)))
    ('x', slice(None, 2, None))
    >>> pop_fields(["x", "y"])
    (['x', 'y'], ())
    >>> pop_fields((0, "x", 1, "y"))
    (['x', 'y'], (0, 1))
    >>> pop_fields(slice(2))
    (None, slice(None, 2, None))
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    named = [item for item in items if _names_fields(item)]
    if not named:
        return None, selection
    names = [name for item in named for name in ([item] if isinstance(item, str) else item)]
    if len(set(names)) != len(names):
        raise SelectionError("a field is named twice", found=names)
    rest = tuple(item for item in items if not _names_fields(item))
    fields = named[0] if len(named) == 1 else names
    return fields, rest[0] if len(rest) == 1 else rest


def _names_fields(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, list) and bool(item) and all(isinstance(x, str) for x in item))
