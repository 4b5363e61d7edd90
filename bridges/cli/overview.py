"""What the operator asks of bots and chats: reads of the state file, beside a running program."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from bridges.cli.pairing import OK, Work
from bridges.cli.reason import reason
from bridges.cli.table import rendered
from bridges.config import Config
from bridges.noting import is_fresh
from bridges.state import BotKey, Health, Link, State
from commands.cleaning import one_line
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Words

HASH_LENGTH: Final = 8

_LINKS: Final = {
    Link.CONNECTING: Key.BOTS_CONNECTING,
    Link.UP: Key.BOTS_UP,
    Link.WAITING: Key.BOTS_WAITING,
    Link.STOPPED: Key.BOTS_STOPPED,
    Link.CLOSED: Key.BOTS_CLOSED,
}

_Seen = tuple[BotKey, Link, Health | None]
"""A bot, its link now, and what was noted of it last."""


def bot_list(*, as_json: bool) -> Work:
    """Show every configured bot, as the running program noted it last."""

    async def work(config: Config, state: State, words: Words) -> tuple[str, int]:
        now = SYSTEM_CLOCK.time()
        noted = {note.health.bot: note for note in await state.healths.noted()}
        bots: list[_Seen] = []
        for bot in config.bots:
            note = noted.get(key := BotKey(bot.channel, bot.name))
            runs = note is not None and is_fresh(note.at, now)
            bots.append((key, note.health.link if note and runs else Link.CLOSED, note.health if note else None))
        if as_json:
            return _json([_told(*each) for each in bots]), OK
        if not bots:
            return words(Key.BOTS_NONE), OK
        headings = (Key.BOTS_BOT, Key.BOTS_STATE, Key.BOTS_SINCE, Key.BOTS_LAST_EVENT)
        table = rendered([words(each) for each in headings], [_row(*each, words) for each in bots])
        return "\n".join([table, *_errors(bots, words)]), OK

    return work


def _told(bot: BotKey, link: Link, health: Health | None) -> dict[str, str | None]:
    return {
        "bot": str(bot),
        "state": link,
        "since": _iso(health.since if health else None),
        "last_event": _iso(health.last_event if health else None),
        "error": health.error if health else None,
        "why": health.why if health else None,
    }


def _row(bot: BotKey, link: Link, health: Health | None, words: Words) -> list[str]:
    since, last_event = (health.since, health.last_event) if health else (None, None)
    return [str(bot), words(_LINKS[link]), _local(since), _local(last_event)]


def _errors(bots: Sequence[_Seen], words: Words) -> Iterator[str]:
    """Yield the last errors, which no column of a terminal is wide enough for."""
    errors = [f"  {bot}: {reason(health, words)}" for bot, _, health in bots if health and health.error]
    if errors:
        yield from ("", words(Key.BOTS_ERROR), *errors)


def session_list(*, as_json: bool, full: bool) -> Work:
    """Show every chat that has a session."""

    async def work(_: Config, state: State, words: Words) -> tuple[str, int]:
        shown = one_line if full else short
        rows = [
            (f"{chat.channel}/{chat.bot}", shown(session), shown(chat.chat))
            for chat, session in await state.chats.bound()
        ]
        if as_json:
            return _json([dict(zip(("bot", "session", "chat"), row, strict=True)) for row in rows]), OK
        if not rows:
            return words(Key.BOTS_NO_SESSIONS), OK
        # A session is copied from here into a chat, so its id stays in one line; that of a chat may need several.
        headings = (Key.BOTS_BOT, Key.BOTS_SESSION, Key.BOTS_CHAT)
        return rendered([words(each) for each in headings], rows, folds={0}), OK

    return work


def short(identifier: str) -> str:
    """Return a short hash: the same id is recognised again, and a screen or a bug report does not show it.

    It keeps nothing from somebody who can try all ids there are.
    """
    return hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]


def _json(rows: object) -> str:
    return json.dumps(rows, ensure_ascii=False, indent=2)


def _local(time: float | None) -> str:
    return "" if time is None else datetime.fromtimestamp(time, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _iso(time: float | None) -> str | None:
    return None if time is None else datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
