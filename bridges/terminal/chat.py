"""The one chat a terminal has."""

from __future__ import annotations

from typing import Final

from bridges.access import OPERATOR
from bridges.message import EventId, InboundMessage, Limits, ReplyTarget
from commands.model import ChatKey, ChatKind

CHAT: Final = ChatKey("terminal", "terminal", "local")
TARGET: Final = ReplyTarget(CHAT, "")

UNLIMITED: Final = Limits(text=10_000_000)
"""A terminal has no limit of its own: answers are not split for it."""


def spoken(text: str, event: EventId) -> InboundMessage:
    """Return what a person typed as a message of the terminal's chat."""
    return InboundMessage(event, CHAT, ChatKind.DIRECT, OPERATOR, text, TARGET)
