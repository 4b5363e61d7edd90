"""The edge to python-telegram-bot: its calls in our words, its errors as our outcomes. Imports the SDK."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from telegram import Bot, BotCommand, LinkPreviewOptions, Message, User
from telegram.constants import ChatAction, UpdateType
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
)
from telegram.error import RetryAfter as FloodControl

from bridges.http import CallFailed, Unreached
from bridges.message import (
    ChannelStopped,
    Clock,
    Menu,
    Noticed,
    NotSent,
    RetryAfter,
    SendOutcome,
    Sent,
    SentId,
    Stop,
)
from bridges.text.telegram_check import look
from bridges.text.telegram_wire import UNREAD, Polls, Wire

CONNECTIONS: Final = 32
"""Sends and edits of one bot at the same time."""

DEAF_SECONDS: Final = 15.0
"""How much longer than it is held a poll may take before its link counts as dead."""

POLL_CONNECTIONS: Final = 4
"""A poll torn down in flight may keep its connection busy for a while; the next one needs another."""

ANSWER_SECONDS: Final = 15.0
"""How long a send waits for its answer; afterwards nobody knows whether it arrived."""

UNREACHED_SECONDS: Final = 2.0
"""When to try again what never left this machine."""

FETCH_SECONDS: Final = 60.0

LONGEST_WAIT: Final = 3_600.0
"""The longest time the platform may tell a bot to wait before it logs in or polls again."""

_NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)

_REFUSALS: Final = (
    ("message is not modified", None),
    ("message is too long", NotSent.TOO_LONG),
    ("chat not found", NotSent.BLOCKED),
    ("not enough rights", NotSent.BLOCKED),
    ("have no rights", NotSent.BLOCKED),
    ("topic_closed", NotSent.BLOCKED),
    ("need administrator rights", NotSent.BLOCKED),
)
"""What a "Bad Request" says, in lower case, and what it means to us; None: the message reads so already."""


@dataclass(frozen=True, slots=True)
class Unread:
    """An update as it came; whoever reads it finds out whether it makes sense."""

    id: int
    body: Mapping[str, object]


class BotApi:
    """The calls one bot makes. ``address`` is the server, without a path."""

    def __init__(self, token: str, address: str, clock: Clock) -> None:
        base = address.rstrip("/")
        self._clock = clock
        self._files = f"{base}/file/bot{token}/"
        self._requests = (
            Wire(CONNECTIONS, ANSWER_SECONDS, clock),
            Polls(POLL_CONNECTIONS, DEAF_SECONDS, clock),
        )
        self._bot = Bot(
            token,
            base_url=f"{base}/bot",
            base_file_url=f"{base}/file/bot",
            request=self._requests[0],
            get_updates_request=self._requests[1],
        )

    async def close(self) -> None:
        """Close all connections."""
        for request in self._requests:
            await request.shutdown()

    # -- in ----------------------------------------------------------------------------------------------------------

    async def log_in(self) -> User:
        """Return who we are, and take the place of a webhook. Raises ChannelStopped, ConnectionError."""
        try:
            me = await self._bot.get_me()
            await self._bot.delete_webhook(drop_pending_updates=False)
        except FloodControl as error:
            await self._clock.sleep(_seconds(error))
            raise ConnectionError("Telegram asked to log in more slowly") from None
        except TelegramError as error:
            raise _lost(error) from None
        return me

    async def check(self) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        return await look(self._bot)

    async def updates(self, offset: int | None, timeout: int) -> list[Unread] | RetryAfter:
        """Poll once; updates in the order of their ids. Raises ChannelStopped, ConnectionError."""
        try:
            updates = await self._bot.get_updates(
                offset=offset, timeout=datetime.timedelta(seconds=timeout), allowed_updates=[UpdateType.MESSAGE]
            )
        except FloodControl as error:
            return RetryAfter(_seconds(error))
        except TelegramError as error:
            raise _lost(error) from None
        unread = [Unread(update.update_id, update.api_kwargs[UNREAD]) for update in updates]
        return sorted(unread, key=lambda update: update.id)

    async def fetch(self, file_id: str, limit: int) -> bytes:
        """Fetch at most ``limit`` bytes of a file. Raises OSError."""
        try:
            file = await self._bot.get_file(file_id)
        except TelegramError as error:
            raise OSError(f"no such file: {type(error).__name__}") from None
        if file.file_path is None or not file.file_path.startswith(self._files):
            raise OSError("the file is elsewhere")
        try:
            reply = await self._requests[0].file(file.file_path, FETCH_SECONDS, limit)
        except CallFailed as error:
            raise OSError(str(error)) from None
        if reply.status != 200:
            raise OSError(f"file: HTTP {reply.status}")
        return reply.body

    # -- out ---------------------------------------------------------------------------------------------------------

    async def send(self, chat: int, topic: int | None, text: str) -> SendOutcome:
        """Send one message; a group that became a supergroup is followed, once."""
        try:
            return await _outcome(self._send(chat, topic, text))
        except ChatMigrated as error:
            moved = error.new_chat_id
        try:
            return await _outcome(self._send(moved, topic, text))
        except ChatMigrated:
            return NotSent.BLOCKED

    def _send(self, chat: int, topic: int | None, text: str) -> Awaitable[Message]:
        return self._bot.send_message(chat, text, message_thread_id=topic, link_preview_options=_NO_PREVIEW)

    async def edit(self, chat: int, message: int, text: str) -> SendOutcome:
        """Replace the text of our message."""
        try:
            return await _outcome(
                self._bot.edit_message_text(text, chat, message, link_preview_options=_NO_PREVIEW), SentId(str(message))
            )
        except ChatMigrated:
            return NotSent.REJECTED

    async def draft(self, chat: int, topic: int | None, number: int, text: str) -> SendOutcome:
        """Show a draft. REJECTED: this chat takes none; REAUTHENTICATE: the server does not know the method."""
        try:
            return await _outcome(self._bot.send_message_draft(chat, number, text, message_thread_id=topic))
        except ChatMigrated:
            return NotSent.REJECTED

    async def typing(self, chat: int, topic: int | None) -> None:
        """Show that the bot is at work."""
        with contextlib.suppress(TelegramError):
            await self._bot.send_chat_action(chat, ChatAction.TYPING, message_thread_id=topic)

    async def set_menu(self, language: str | None, menu: Menu) -> bool:
        """Publish the command menu of a language, None for everybody else; False when it was refused."""
        try:
            await self._bot.set_my_commands(
                [BotCommand(each.name, each.summary) for each in menu], language_code=language
            )
        except TelegramError as error:
            structlog.get_logger(__name__).warning("command menu refused", error=type(error).__name__)
            return False
        return True


def _lost(error: TelegramError) -> Exception:
    """Return what a failed poll means for the link; the SDK's own texts may hold the token."""
    if isinstance(error, InvalidToken):
        if isinstance(error.__cause__, TelegramError):
            return ConnectionError("something that is not Telegram answers in its place")
        return ChannelStopped(Stop.NEEDS_LOGIN, "Telegram refuses the token; get a new one from @BotFather")
    if isinstance(error, Conflict):
        return ConnectionError("another program polls with this token, or a webhook was set for it")
    return ConnectionError(type(error).__name__)


async def _outcome(call: Awaitable[Message | bool], known: SentId | None = None) -> SendOutcome:
    """Await a call about the message ``known``, or a new one. ChatMigrated passes."""
    try:
        message = await call
    except ChatMigrated:
        raise
    except TelegramError as error:
        return _failure(error, known)
    return Sent(known or (SentId(str(message.message_id)) if isinstance(message, Message) else None))


def _failure(error: TelegramError, known: SentId | None) -> SendOutcome:
    """Read an error; the order counts, for BadRequest and TimedOut are NetworkErrors."""
    if isinstance(error.__cause__, TelegramError):
        return NotSent.UNKNOWN  # a page of something in between: whatever its status says, Telegram did not say it
    match error:
        case FloodControl():
            outcome: SendOutcome = RetryAfter(_seconds(error))
        case Forbidden():
            outcome = NotSent.BLOCKED
        case InvalidToken():
            outcome = NotSent.REAUTHENTICATE
        case BadRequest():
            outcome = _refused(str(error), known)
        case NetworkError():
            outcome = _unanswered(error)
        case _:
            outcome = NotSent.REJECTED
    return outcome


def _refused(text: str, known: SentId | None) -> SendOutcome:
    for words, outcome in _REFUSALS:
        if words in text.lower():
            return outcome or Sent(known)
    return NotSent.REJECTED


def _unanswered(error: NetworkError) -> SendOutcome:
    if isinstance(error.__cause__, Unreached):
        return RetryAfter(UNREACHED_SECONDS)
    return RetryAfter(UNREACHED_SECONDS) if "too many requests" in str(error).lower() else NotSent.UNKNOWN


def _seconds(error: FloodControl) -> float:
    wait = error.retry_after
    return min(LONGEST_WAIT, wait.total_seconds() if isinstance(wait, datetime.timedelta) else float(wait))
