"""Text that QQ takes as plain text: no mentions, and no addresses, which it refuses from bots.

Nothing changes its length, so a text that fitted still does: a dot becomes the full stop of Chinese, and the signs that
open a mention or a scheme their wide forms.
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = r"[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?"
_COMMON: Final = "com|net|org|cn|edu|gov|xyz"
"""Endings that are hardly ever a file's or an attribute's; for the others see :func:`dotless`."""

_SCHEME: Final = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{1,15}):(?=//)")
_ADDRESS: Final = re.compile(
    rf"(?<![0-9A-Za-z])(?:{_LABEL}\.)+(?:{_COMMON})(?![0-9A-Za-z-])|\bwww\.[0-9A-Za-z.-]+|(?<=//)[^\s/?#]+",
    re.IGNORECASE,
)
_DOTTED: Final = re.compile(rf"(?<![0-9A-Za-z]){_LABEL}(?:\.{_LABEL})+(?![0-9A-Za-z])")
_MENTION: Final = re.compile(r"<(?=[@#]|qqbot-|emoji:)|@(?=everyone\b|all\b)")

_WIDE: Final = {"<": "＜", "@": "＠"}


def harmless(text: str) -> str:
    """Return ``text`` with its mentions and its obvious addresses disarmed."""
    text = _MENTION.sub(lambda match: _WIDE[match.group()], text)
    text = _ADDRESS.sub(_undotted, text)
    return _SCHEME.sub(r"\1：", text)


def dotless(text: str) -> str:
    """Return ``text`` with every dot between two words replaced, for when it was taken for an address all the same."""
    return _DOTTED.sub(_undotted, harmless(text))


def _undotted(match: re.Match[str]) -> str:
    return match.group().replace(".", "。")
