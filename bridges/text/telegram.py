"""Telegram: a bot of @BotFather, over the Bot API's long polls.

An update is confirmed by the next poll, so only after ``inbox.accept`` returned: what a crash swallows is delivered
again. No offset is kept longer than there is something to confirm, let alone stored: update ids start anew after a
quiet week, and one above them would confirm messages nobody read. The SDK is loaded when the bot first runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from bridges.lean import import_without
from bridges.message import (
    AnswerStream,
    Clock,
    InboundAttachment,
    Inbox,
    Limits,
    Menu,
    Noticed,
    NotSent,
    ReplyTarget,
    RetryAfter,
    SendOutcome,
    SentId,
)

if TYPE_CHECKING:
    from bridges.text.telegram_api import BotApi

POLL_SECONDS: Final = 25
"""How long the server holds a poll that has nothing to tell."""

GROUP_EDIT_SECONDS: Final = 4.0
"""A group takes 20 messages a minute, edits included; this leaves some for replies."""

DRAFT_SECONDS: Final = 0.7
"""The least time between two states of a draft."""

DRAFT_LIFE_SECONDS: Final = 20.0
"""A draft fades after 30 seconds."""

API: Final = "https://api.telegram.org"

CHATS_REMEMBERED: Final = 1_000


_V = TypeVar("_V")


class TelegramChannel:
    """One bot. Private chats see an answer grow as a draft where the platform offers them, groups by edits."""

    limits = Limits(text=4_096, gap=1.0)
    pace = 1.5
    typing_seconds = 5.0

    def __init__(self, name: str, *, token: str, api: str | None, clock: Clock) -> None:
        """Know the token, and the address of another Bot API server, without a path, if any."""
        self._name = name
        self._token = token
        self._address = api or API
        self._clock = clock
        self._api: BotApi | None = None
        self._drafts = itertools.count(1)
        self._offers_drafts = True
        self._draftless: OrderedDict[int, None] = OrderedDict()
        self._edited: OrderedDict[int, float] = OrderedDict()

    async def run(self, inbox: Inbox) -> None:
        """Poll until cancelled; see :meth:`bridges.message.Channel.run`."""
        api = await self._opened()
        from bridges.text.telegram_parse import read  # noqa: PLC0415 - needs the SDK, which is loaded now

        me = await api.log_in()
        offset, timeout = None, 0  # the first poll returns at once and shows that the link is good
        while True:
            updates = await api.updates(offset, timeout)
            if isinstance(updates, RetryAfter):
                await self._clock.sleep(updates.seconds)
                continue
            if not timeout:
                timeout = POLL_SECONDS
                inbox.connected()
            for update in updates:
                message = read(update.body, me, self._name)
                if message is not None:
                    await inbox.accept(message)
                offset = update.id + 1
            if not updates:
                offset = None  # all is confirmed

    async def _opened(self) -> BotApi:
        if self._api is None:
            # It takes a second, which the loop has not; and for passports, which no chat has, it would load 8 MB more.
            await asyncio.to_thread(import_without, "cryptography.hazmat.backends", "telegram")
            from bridges.text.telegram_api import BotApi  # noqa: PLC0415 - needs the SDK

            self._api = BotApi(self._token, self._address, self._clock)
        return self._api

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`."""
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        if self._api is None:
            return NotSent.REJECTED
        return await self._api.send(*place_of(target), text)

    async def edit(self, target: ReplyTarget, message: SentId, text: str) -> SendOutcome:
        """See :meth:`bridges.message.EditsMessages.edit`; a group's next edit waits until it may come."""
        if self._api is None:
            return NotSent.REJECTED
        chat, _ = place_of(target)
        wait = self._until_next_edit(chat)
        return RetryAfter(wait) if wait > 0 else await self._api.edit(chat, int(message), text)

    def _until_next_edit(self, chat: int) -> float:
        """Return the seconds until an edit may be sent; 0 when it is sent now. A group's id is negative."""
        if chat > 0:
            return 0.0
        now = self._clock.monotonic()
        wait = self._edited.get(chat, -GROUP_EDIT_SECONDS) + GROUP_EDIT_SECONDS - now
        if wait <= 0:
            _remember(self._edited, chat, now)
        return max(0.0, wait)

    async def begin(self, target: ReplyTarget) -> AnswerStream | None:
        """Open a draft in a private chat, where the platform offers them."""
        chat, _ = place_of(target)
        if chat < 0 or not self._offers_drafts or chat in self._draftless:
            return None
        return _Draft(self, target, next(self._drafts), self._clock)

    async def draft(self, target: ReplyTarget, number: int, text: str) -> float | None:
        """Show a draft; return the seconds until the next one may come.

        None when the platform refused it: in that chat, or everywhere when it has none at all, answers grow by edits.
        A draft that is lost does not matter, it is a preview.
        """
        if self._api is None:
            return None
        chat, topic = place_of(target)
        match await self._api.draft(chat, topic, number, text):
            case RetryAfter(seconds):
                return max(DRAFT_SECONDS, seconds)
            case NotSent.REAUTHENTICATE:
                self._offers_drafts = False
                return None
            case NotSent.REJECTED | NotSent.BLOCKED:
                _remember(self._draftless, chat, None)
                return None
            case _:
                return DRAFT_SECONDS

    async def typing(self, target: ReplyTarget) -> None:
        """See :meth:`bridges.message.ShowsTyping.typing`."""
        if self._api is not None:
            await self._api.typing(*place_of(target))

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """See :meth:`bridges.message.FetchesAttachments.fetch`."""
        if self._api is None:
            raise ConnectionError("the bot is not connected")
        return await self._api.fetch(attachment.handle, limit)

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        return await (await self._opened()).check()

    async def publish(self, commands: Mapping[str, Menu]) -> None:
        """See :meth:`bridges.message.PublishesCommands.publish`."""
        if self._api is None:
            return
        everybody = [(None, menu) for menu in list(commands.values())[:1]]
        for language, menu in [*everybody, *commands.items()]:
            if not await self._api.set_menu(language, menu):
                structlog.get_logger(__name__).warning("command menu not published", language=language)


class _Draft:
    """An answer that grows as a draft, which is only ever a preview: the answer itself is sent as a message."""

    def __init__(self, channel: TelegramChannel, target: ReplyTarget, number: int, clock: Clock) -> None:
        self._channel = channel
        self._target = target
        self._number = number
        self._clock = clock
        self._text = ""
        self._changed = asyncio.Event()
        self._showing: asyncio.Task[None] | None = None

    async def update(self, text: str) -> None:
        """Show the answer so far, or as much of its end as a draft holds, as soon as one may be shown."""
        units = text.encode("utf-16-le", "surrogatepass")[-2 * self._channel.limits.text :]
        shown = units.decode("utf-16-le", "ignore")
        if shown.isspace():
            return  # the platform takes no blank draft
        self._text = shown
        self._changed.set()
        if self._showing is None:
            self._showing = asyncio.create_task(self._show())

    async def _show(self) -> None:
        """Show every change, and an unchanged draft again before it fades: a tool may run for minutes."""
        while True:
            self._changed.clear()
            wait = await self._channel.draft(self._target, self._number, self._text)
            if wait is None:
                return
            await self._clock.sleep(wait)
            with contextlib.suppress(TimeoutError):
                async with self._clock.timeout(DRAFT_LIFE_SECONDS):
                    await self._changed.wait()

    async def finish(self, text: str) -> SendOutcome:
        """Leave the answer to be sent, which takes the draft away."""
        if self._showing is not None:
            self._showing.cancel()
            await asyncio.wait({self._showing})
        return NotSent.TOO_LONG


def _remember(chats: OrderedDict[int, _V], chat: int, value: _V) -> None:
    """Keep a value for a chat, in the place of the one kept longest when there are many."""
    chats[chat] = value
    chats.move_to_end(chat)
    while len(chats) > CHATS_REMEMBERED:
        chats.popitem(last=False)


def place_of(target: ReplyTarget) -> tuple[int, int | None]:
    """Read a route: the chat's id and the topic's, if any."""
    chat, _, topic = target.route.partition("/")
    return int(chat), int(topic) if topic else None
