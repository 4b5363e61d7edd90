"""The vocabulary of a smoke report. Every line says whether it is simulated or live."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, get_args

from bridges.config import AnyBot

CHANNELS: Final = tuple(sorted(str(table.__struct_config__.tag) for table in get_args(AnyBot)))
"""All there are."""


class Side(StrEnum):
    """What the other side was."""

    SIMULATED = "simulated"
    LIVE = "live"
    """The platform itself, with a real bot of it."""


class Endpoint(StrEnum):
    """Where the bot connected to."""

    FAKE = "fake"
    """A simulated platform of ours."""
    OVERRIDDEN = "overridden"
    """An address of ``[bot.endpoints]`` that is not known to be the platform's: never live."""
    PLATFORM = "platform"


class Item(StrEnum):
    """What is to be shown, in the order of the report (spec HISTORY 8)."""

    CONNECT = "connect"
    HISTORY = "history"
    HISTORY_MOST = "history-most"
    ATTACHMENT = "attachment"
    GROUP = "group"
    STRANGER = "stranger"
    BATCH = "batch"
    HELP_EN = "help-en"
    HELP_ZH = "help-zh"
    RUNNING = "running"
    QUESTION = "question"
    APPROVAL = "approval"
    DUPLICATE = "duplicate"
    ECHO = "echo"
    FIRST_SEGMENT = "first-segment"
    SECOND_SEGMENT = "second-segment"
    BIND = "bind"


class Verdict(StrEnum):
    """How it ended."""

    PASS = "pass"  # noqa: S105 - the word for a good end
    FAIL = "fail"
    NOT_DONE = "not done"


class Why(StrEnum):
    """Why something failed or was not done."""

    NOT_ASKED = "not-asked"
    """This run was not asked for it."""
    NO_BOT = "no-bot"
    """No bot of the channel is configured."""
    PLATFORM = "platform"
    """The platform has no such thing."""
    MODEL = "model"
    """It would call the model."""
    SWITCHES = "switches"
    """It would bind the chat to another session."""
    NOBODY = "nobody"
    """Nobody can bring it about by hand."""
    OPEN = "open"
    """Everybody is let in, so nobody is a stranger."""

    OVERRIDDEN = "overridden"
    NOT_INSTALLED = "not-installed"
    NOT_CONNECTED = "not-connected"
    NOT_REACHED = "not-reached"
    """The run ended before it."""
    SKIPPED = "skipped"
    TIMED_OUT = "timed-out"
    NOTHING_SENT = "nothing-sent"
    """The bot sent nothing that could have come back to it."""
    NO_SESSION = "no-session"
    """The chat has no session whose history could be shown."""
    TOO_SHORT = "too-short"
    """The session has fewer messages than were to be shown."""
    NOT_ALLOWED = "not-allowed"
    """The sender may not use the bot there."""

    CASE = "case"
    """What the case expects did not happen; ``detail`` is where."""
    WRONG_REPLY = "wrong-reply"
    NO_REPLY = "no-reply"
    NOT_SENT = "not-sent"
    """The platform took not all of the reply; ``detail`` is the outcome of the send."""
    HOST_CALLED = "host-called"
    """The Harness was asked though it must not be."""
    CAME_BACK = "came-back"
    """The bot took its own message for a person's."""


BEYOND: Final = frozenset({Why.NOT_ASKED, Why.NO_BOT, Why.PLATFORM, Why.MODEL, Why.SWITCHES, Why.NOBODY, Why.OPEN})
"""Reasons that no further effort in this run could have changed; they leave the exit code alone."""


@dataclass(frozen=True, slots=True)
class Spot:
    """What a line is about. ``bot`` is the name in the configuration; None for ours on a simulated platform."""

    channel: str
    bot: str | None
    side: Side
    endpoint: Endpoint
    item: Item


@dataclass(frozen=True, slots=True)
class Result:
    """How it went. ``detail`` is a code or a place in source code: no secret, no id, no message.

    ``seconds``: how long the case took; with a bot of the configuration, from its event to the last accepted message
    of its reply.
    """

    verdict: Verdict
    why: Why | None = None
    detail: str | None = None
    seconds: float | None = None


def failed(why: Why, detail: str | None = None) -> Result:
    """Return that something is wrong."""
    return Result(Verdict.FAIL, why, detail)


def not_done(why: Why) -> Result:
    """Return that nothing is known."""
    return Result(Verdict.NOT_DONE, why)


PASSED: Final = Result(Verdict.PASS)
