"""Who may talk to a bot, command it and own it. Denies whatever it is not sure of.

``direct`` and ``group`` are independent scopes; pairing admits to direct chats only. Owners may do everything in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import structlog

from bridges.config import Access, Config, load, locate
from bridges.config_error import ConfigError
from bridges.state.model import BotKey, Pairings
from commands.model import ChatKind, SenderId

OPERATOR: Final = SenderId("operator")
"""The person at the terminal."""

TERMINAL: Final = Access(direct=frozenset({OPERATOR}), owners=frozenset({OPERATOR}))
"""The terminal's policy: whoever could start the program owns it."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What one sender may do in one chat. ``pair``: a stranger who may be given a pairing code."""

    talk: bool = False
    command: bool = False
    own: bool = False
    pair: bool = False


NOTHING: Final = Rights()


def decide(policy: Access | None, kind: ChatKind, sender: SenderId, *, paired: bool) -> Rights:
    """Judge a sender by the policy of the bot, None when it has no readable one; ``paired`` is the state's word."""
    if policy is None or not sender:
        return NOTHING
    if sender in policy.owners:
        return Rights(talk=True, command=True, own=True)
    scope = policy.direct if kind is ChatKind.DIRECT else policy.group
    if not (paired if scope == "pairing" else _covers(scope, sender, everyone="open")):
        return Rights(pair=scope == "pairing")
    return Rights(talk=True, command=_covers(policy.commands, sender, everyone="all"))


async def rights(policy: Access | None, pairings: Pairings, bot: BotKey, kind: ChatKind, sender: SenderId) -> Rights:
    """Judge a sender, asking the state only where its word counts. Raises StateError."""
    asks = policy is not None and policy.direct == "pairing" and kind is ChatKind.DIRECT
    return decide(policy, kind, sender, paired=asks and await pairings.admitted(bot, sender))


def _covers(rule: str | frozenset[str], sender: SenderId, *, everyone: str) -> bool:
    return rule == everyone if isinstance(rule, str) else sender in rule


class Policies:
    """The policies in force: the configuration's, read again when its file has changed.

    A change counts from the next event on. While the file cannot be read, everybody is denied.
    """

    def __init__(self, stamp: Callable[[], object], read: Callable[[], Config]) -> None:
        self._stamp = stamp
        self._read = read
        self._seen: object = None
        self._rules: Mapping[BotKey, Access] = {}

    @classmethod
    def following(cls, path: Path | None, environ: Mapping[str, str]) -> Self:
        """Follow the configuration file that :func:`bridges.config.load` would read."""
        file = locate(path, environ)
        return cls(lambda: _stamp(file), lambda: load(path, environ))

    def of(self, bot: BotKey) -> Access | None:
        """Return the policy of a bot, None when there is no readable one. Blocking, and cheap while nothing changed."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            self._rules = self._load()
        return self._rules.get(bot)

    def _load(self) -> Mapping[BotKey, Access]:
        try:
            return {BotKey(bot.channel, bot.name): bot.access for bot in self._read().bots}
        except ConfigError as error:
            structlog.get_logger(__name__).error("access denied to everybody", problem=str(error))
            return {}


def _stamp(file: Path) -> object:
    try:
        stat = file.stat()
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return "absent"
    return (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
