"""What we and the process of the vendor's SDK (:mod:`bridges.feishu.sdk`) say to each other: one JSON object a line."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

LONGEST_LINE: Final = 8 * 1024 * 1024
"""Bytes; the longest text of a person is 150 kB."""

UNANSWERED: Final = 256
"""Events of one link that may wait for our answer; the platform delivers further ones again."""


class Open(msgspec.Struct, tag=True):
    """Connect one bot."""

    link: int
    app_id: str
    app_secret: str
    domain: str


class Close(msgspec.Struct, tag=True):
    """Let a bot's connection go."""

    link: int


class Answer(msgspec.Struct, tag=True):
    """Say what became of an event: written down, or to be delivered again."""

    link: int
    event: int
    taken: bool


class Up(msgspec.Struct, tag=True):
    """A bot is connected."""

    link: int


class Pong(msgspec.Struct, tag=True):
    """The platform answered a ping."""

    link: int


class Event(msgspec.Struct, tag=True):
    """The platform delivered an event; it is acknowledged once it is answered."""

    link: int
    number: int
    payload: bytes


class Why(StrEnum):
    """Why a connection ended."""

    LOST = "lost"
    REFUSED = "refused"
    """The platform does not let this app connect."""
    FULL = "full"
    """The app has as many connections as the platform allows."""


class Ended(msgspec.Struct, tag=True):
    """A bot's connection is over. ``detail`` names an error or a code of the platform, nothing else."""

    link: int
    why: Why
    detail: str


Order = Open | Close | Answer
Report = Up | Pong | Event | Ended


def line(words: Order | Report) -> bytes:
    """Return one line."""
    return msgspec.json.encode(words) + b"\n"
