"""What the operator is asked to send, and what the bot must answer to it (spec HISTORY 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bridges.cli.smoking.lines import PASSED, Item, Result, Why, failed, not_done
from bridges.cli.smoking.overlay import NO_CODE
from commands.batch import LIMIT
from commands.catalog import COMMANDS
from commands.count import DEFAULT, MAXIMUM
from commands.help import form
from commands.history import label
from commands.model import ChatKind
from harness_client.types import SessionId
from i18n import Key, Language, Words


@dataclass(frozen=True, slots=True)
class Heard:
    """The whole reply of the bot, in ``words``' language, to a chat that talks to ``session``."""

    text: str
    words: Words
    session: SessionId | None


Judge = Callable[[Heard], Result]


@dataclass(frozen=True, slots=True)
class Ask:
    """One message that somebody is asked to send."""

    how: Key
    """What the operator is told to do."""
    text: str
    judge: Judge
    kind: ChatKind = ChatKind.DIRECT
    attached: bool = False
    language: Language | None = None
    """The language the bot must answer in; None for that of the run."""
    reads: bool = False
    """Whether the Harness may be asked for it."""


def _says(key: Key, **values: object) -> Judge:
    """Want exactly one of our phrases."""

    def judge(heard: Heard) -> Result:
        return PASSED if heard.text == heard.words(key, **values) else failed(Why.WRONG_REPLY)

    return judge


def _history(most: int) -> Judge:
    """Want the newest ``most`` messages of the chat's own session, and the line that ends a history, once."""

    def judge(heard: Heard) -> Result:
        words, text = heard.words, heard.text
        if text in {words(Key.HISTORY_UNBOUND), words(Key.HISTORY_STARTING)}:
            return not_done(Why.NO_SESSION)
        if text == words(Key.HISTORY_EMPTY):
            return not_done(Why.TOO_SHORT)
        end = words(Key.HISTORY_FOOTER)
        count = _shown(heard, most)
        if count is None or not text.endswith(end) or text.count(end) != 1 or f"\n\n{count}. " not in text:
            return failed(Why.WRONG_REPLY)
        if count == most or words(Key.HISTORY_DROPPED, count=most - count) in text:
            return PASSED
        shortages = (words(key, count=count) for key in (Key.HISTORY_ONLY, Key.HISTORY_BOUNDED))
        return not_done(Why.TOO_SHORT) if any(each in text for each in shortages) else failed(Why.WRONG_REPLY)

    return judge


def _shown(heard: Heard, most: int) -> int | None:
    """Return how many messages the header speaks of; None when it is no header for this session and this count."""
    name = label(heard.session) if heard.session else "-"
    headers = {count: heard.words(Key.HISTORY_HEADER, label=name, count=count) for count in range(1, most + 1)}
    return next((count for count, header in headers.items() if heard.text.startswith(f"{header}\n")), None)


def _help(heard: Heard) -> Result:
    words = heard.words
    wanted = [words(Key.HISTORY_SUMMARY), *(form(command, words) for command in COMMANDS.values())]
    return PASSED if all(each in heard.text for each in wanted) else failed(Why.WRONG_REPLY)


STEPS: Final[Mapping[Item, Sequence[Ask]]] = {
    Item.HISTORY: (Ask(Key.SMOKE_SEND, "/history", _history(DEFAULT), reads=True),),
    Item.HISTORY_MOST: (Ask(Key.SMOKE_SEND, "/history 10", _history(MAXIMUM), reads=True),),
    Item.ATTACHMENT: (Ask(Key.SMOKE_SEND_ATTACHED, "/history", _says(Key.CHAT_TEXT_ONLY), attached=True),),
    Item.GROUP: (Ask(Key.SMOKE_SEND_GROUP, "/history", _says(Key.HISTORY_PRIVATE_ONLY), kind=ChatKind.GROUP),),
    Item.HELP_EN: (Ask(Key.SMOKE_SEND, "/help", _help, language=Language.EN),),
    Item.HELP_ZH: (Ask(Key.SMOKE_SEND, "/help", _help, language=Language.ZH),),
    Item.BATCH: (
        Ask(Key.SMOKE_SEND, "/batch", _says(Key.BATCH_BEGUN, limit=LIMIT)),
        Ask(Key.SMOKE_SEND, "/history", _says(Key.BATCH_COLLECTING)),
        Ask(Key.SMOKE_SEND, "/cancel", _says(Key.CANCEL_DONE, count=0)),
    ),
}
"""What somebody with access does, in this order; a batch that is left half-way would be in the way of the others."""

STRANGER: Final = Ask(Key.SMOKE_SEND_STRANGER, "/history", _says(Key.CHAT_PAIRING, code=NO_CODE))
"""Judged so where the bot pairs; elsewhere a stranger hears nothing."""

BY_NATURE: Final[Mapping[Item, Why]] = {
    Item.RUNNING: Why.MODEL,
    Item.QUESTION: Why.MODEL,
    Item.APPROVAL: Why.MODEL,
    Item.DUPLICATE: Why.NOBODY,
    Item.FIRST_SEGMENT: Why.NOBODY,
    Item.SECOND_SEGMENT: Why.NOBODY,
    Item.BIND: Why.SWITCHES,
}
"""What is not done with a real bot, whatever the operator does. A duplicate is noted when the platform makes one."""

NO_GROUPS: Final = frozenset({"weixin"})
"""Channels whose bots have private chats only."""
