"""Text -> the messages a platform holds. Graphemes are never torn (:mod:`commands.budget`)."""

from __future__ import annotations

from typing import Final

from bridges.message import Limits
from commands.budget import open_fence, sendable, split, utf16_length

_FENCE_ROOM: Final = 80
"""Units kept free in a message of an answer to close a code fence and to open it again."""


def whole(text: str) -> str:
    """Return a text that every platform can be sent: halves of a character that were cut apart are one again.

    Hosts cut what they stream between two surrogates. One whose other half never came becomes U+FFFD.
    """
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def split_lossless(text: str, limits: Limits) -> tuple[str, ...]:
    """Cut a reply that was already composed; the messages joined give ``text`` again, made whole."""
    return split(whole(text), _units(limits))


def joined(segments: tuple[str, ...], limits: Limits) -> tuple[str, ...]:
    """Return the segments of a composed reply as few messages where the platform wants few, else as they are."""
    return split_lossless("".join(segments), limits) if limits.joins else segments


def split_answer(text: str, limits: Limits) -> tuple[str, ...]:
    """Cut a model's answer, never none: a code fence that a cut leaves open is closed, and opened again behind it."""
    text, limit = whole(text), _units(limits)
    if utf16_length(text) <= limit:
        return (text,)
    messages, opening = [], ""
    for part in sendable(text, limit - _FENCE_ROOM):
        message = opening + part
        fence = open_fence(message)
        opening = f"{fence.opening}\n" if fence and len(fence.opening) <= _FENCE_ROOM // 2 else ""
        messages.append(message.removesuffix("\n") + f"\n{fence.closing}" if fence and opening else message)
    return tuple(messages)


def _units(limits: Limits) -> int:
    """Return the limit in UTF-16 units; one of them takes at most three bytes of UTF-8, and at least a code point."""
    return limits.text // 3 if limits.unit == "utf-8" else limits.text
