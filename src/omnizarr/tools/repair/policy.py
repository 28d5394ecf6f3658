"""Which findings a repair mends, by default and when asked, from the table in `omnizarr.tools.check.codes`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from omnizarr.support import suggestions
from omnizarr.tools.check.codes import CODES, MENDS, Part

KINDS: Final = frozenset(MENDS)
"""All that can be mended."""

ASKED: Final[Mapping[str, str]] = {code: mend.why for code, mend in MENDS.items() if mend.asked}
"""Codes that are mended only if they are named, with the reason."""

CERTAIN: Final = KINDS - ASKED.keys()
"""Mended by default."""

NEEDS_DATA: Final = frozenset(code for code, mend in MENDS.items() if mend.decodes)
"""Found only by decoding chunks."""


def codes_of(part: Part) -> frozenset[str]:
    """Return the kinds for which a repair changes one part of a hierarchy."""
    return frozenset(code for code, mend in MENDS.items() if mend.part == part)


def wanted(codes: Iterable[str] | None) -> frozenset[str]:
    """Return the codes to repair. Raises ValueError for codes that cannot be repaired."""
    if codes is None:
        return CERTAIN
    chosen = frozenset([codes] if isinstance(codes, str) else codes)
    for code in sorted(chosen - KINDS):
        if code in CODES:
            raise ValueError(f"{code} cannot be repaired: {CODES[code].remedy}")
        hint = suggestions.question(suggestions.near_names(code, sorted(KINDS)))
        raise ValueError(f"there is no code {code!r}{f'; {hint}' if hint else ''}")
    return chosen
