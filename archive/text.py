"""Text on its way into the archive."""

from __future__ import annotations

from collections.abc import Iterable

IMAGE = "[image]"
FILE = "[file]"
"""Stand for attachments; their bytes and names never enter an archive (spec ARCHIVE 3.2)."""


def clean(text: str) -> str:
    """Make ``text`` valid UTF-8: every lone surrogate becomes U+FFFD, everything else stays as it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def join(blocks: Iterable[str]) -> str:
    """Join the texts of one message by newlines, empty ones left out."""
    return clean("\n".join(block for block in blocks if block))
