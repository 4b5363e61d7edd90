"""Slack: an app in Socket Mode.

An envelope is acknowledged only after ``inbox.accept`` returned; Slack delivers again what was not acknowledged. The
SDK is loaded when the bot first runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

import structlog

from bridges.message import (
    ChatKind,
    Clock,
    InboundAttachment,
    InboundMessage,
    Inbox,
    Limits,
    Noticed,
    NotSent,
    ReplyTarget,
    RetryAfter,
    SendOutcome,
    SentId,
)
from bridges.text.slack_parse import Said, SlashCommand, parse_command, parse_event, place_of, read

if TYPE_CHECKING:
    from bridges.text.slack_api import SlackApi
    from bridges.text.slack_parse import Me

PING_SECONDS: Final = 5.0
"""How often the link is tried, and how long the SDK waits before it connects again."""

EDIT_SECONDS: Final = 1.2
"""All edits of a bot together may be about 50 a minute (rate limit tier 3)."""

SHORT_WAIT: Final = 5.0
"""Seconds that an edit waits for its turn by itself; for more, the caller is asked to come again."""

LONGEST_PLACE: Final = 60.0
"""Seconds for which a place in the queue of edits is kept."""

A_MOMENT: Final = 0.001
"""Seconds by which a sleeper may wake too early."""

CONVERSATIONS_REMEMBERED: Final = 10_000


class SlackChannel:
    """One bot. ``commands`` are the names, in lower case, that ``!name`` may stand for."""

    limits = Limits(text=3_000, gap=1.0)
    """A message may have 4,000 characters to stay editable; escaping makes it longer."""
    pace = 1.5

    def __init__(
        self,
        name: str,
        *,
        bot_token: str,
        app_token: str,
        api: str | None,
        commands: Collection[str],
        clock: Clock,
        hide: Callable[[str], None],
        ping: float = PING_SECONDS,
    ) -> None:
        """Know the tokens, and another address of the Web API, ending in ``/api/``, if any."""
        self._name = name
        self._bot_token = bot_token
        self._app_token = app_token
        self._address = api
        self._commands = frozenset(commands)
        self._clock = clock
        self._hide = hide
        self._ping = ping
        self._api: SlackApi | None = None
        self._edits = EditQueue(clock)
        self._own: OrderedDict[str, None] = OrderedDict()
        self.doubted = False
        """Whether Slack refused our token since that was last looked into."""

    async def run(self, inbox: Inbox) -> None:
        """Keep a link until it is lost; see :meth:`bridges.message.Channel.run`."""
        api = await self._opened()
        from bridges.text.slack_link import SlackLink  # noqa: PLC0415 - needs the SDK, which is loaded now

        me = await api.log_in()
        link = SlackLink(
            _Reception(self, api, me, inbox),
            app_token=self._app_token,
            api=self._address,
            me=me,
            clock=self._clock,
            hide=self._hide,
            ping=self._ping,
        )
        await link.run()

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        await self._opened()  # loads the SDK
        from bridges.text.slack_check import look  # noqa: PLC0415 - needs the SDK, which is loaded now

        return await look(self._bot_token, self._app_token, self._address, self._hide)

    async def _opened(self) -> SlackApi:
        if self._api is None:
            # This takes a second or two, which the loop does not have.
            await asyncio.to_thread(importlib.import_module, "slack_bolt.adapter.socket_mode.aiohttp")
            from bridges.text.slack_api import SlackApi  # noqa: PLC0415 - needs the SDK

            self._api = SlackApi(self._bot_token, self._address, self._clock)
        return self._api

    async def parsed(self, body: Mapping[str, object], me: Me, api: SlackApi) -> InboundMessage | None:
        """Return the message in a payload, if there is one; a payload that makes no sense is left out."""
        try:
            found = read(body)
        except ValueError as error:
            structlog.get_logger(__name__).warning("payload not understood", error=type(error).__name__)
            return None
        match found:
            case Said():
                message = parse_event(found, me, self._name, self._commands)
                if message is not None and message.kind is ChatKind.DIRECT:
                    self._remember(found.event.channel)
                return message
            case SlashCommand():
                return await self._picked(found, api)
            case None:
                return None

    async def _picked(self, command: SlashCommand, api: SlackApi) -> InboundMessage | None:
        if command.command.removeprefix("/").lower() not in self._commands:
            structlog.get_logger(__name__).warning("slash command unknown; the app's manifest is of another version")
            return None
        return parse_command(command, self._name, direct=await self._is_direct(command, api))

    async def _is_direct(self, command: SlashCommand, api: SlackApi) -> bool:
        """Whether a command was picked in the bot's own chat with a person.

        A slash command works anywhere, and "directmessage" is also what Slack calls the chat of two other people.
        """
        if command.channel_name != "directmessage":
            return False
        if command.channel_id not in self._own:
            if not await api.is_ours(command.channel_id):
                return False
            self._remember(command.channel_id)
        return True

    def _remember(self, conversation: str) -> None:
        self._own[conversation] = None
        self._own.move_to_end(conversation)
        while len(self._own) > CONVERSATIONS_REMEMBERED:
            self._own.popitem(last=False)

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`; nothing is open between two calls."""
        self._api = None

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        if self._api is None:
            return NotSent.REJECTED
        place = place_of(target)
        if place.hook is not None:
            return await self._api.respond(place.hook, text)
        return self._noted(await self._api.post(place.channel, place.thread, text))

    async def edit(self, target: ReplyTarget, message: SentId, text: str) -> SendOutcome:
        """See :meth:`bridges.message.EditsMessages.edit`; when too many answers grow at once, each waits its turn."""
        wait = self._edits.wait(message)
        if 0 < wait <= SHORT_WAIT:
            await self._clock.sleep(wait)
            wait = self._edits.wait(message)
        if self._api is None:
            return NotSent.REJECTED
        if wait > 0:
            return RetryAfter(wait)
        return self._noted(await self._api.update(place_of(target).channel, message, text))

    def _noted(self, outcome: SendOutcome) -> SendOutcome:
        """Have the link look into it when Slack refuses our token: receiving goes on without it, answering does not."""
        self.doubted = self.doubted or outcome is NotSent.REAUTHENTICATE
        return outcome

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """See :meth:`bridges.message.FetchesAttachments.fetch`; needs the scope ``files:read``."""
        if self._api is None:
            raise ConnectionError("the bot is not connected")
        return await self._api.fetch(attachment.handle, limit)


class _Reception:
    """The channel as its link sees it, while one run lasts."""

    def __init__(self, channel: SlackChannel, api: SlackApi, me: Me, inbox: Inbox) -> None:
        self._channel = channel
        self._api = api
        self._me = me
        self._inbox = inbox

    def connected(self) -> None:
        """See :meth:`bridges.text.slack_link.Owner.connected`."""
        self._inbox.connected()

    async def receive(self, body: Mapping[str, object]) -> None:
        """See :meth:`bridges.text.slack_link.Owner.receive`."""
        message = await self._channel.parsed(body, self._me, self._api)
        if message is not None:
            await self._inbox.accept(message)

    async def check(self) -> None:
        """See :meth:`bridges.text.slack_link.Owner.check`."""
        if self._channel.doubted:
            self._channel.doubted = False
            with contextlib.suppress(ConnectionError):
                await self._api.log_in()


class EditQueue:
    """Deals out the moments at which edits may go, EDIT_SECONDS apart."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = 0.0
        self._places: dict[SentId, float] = {}

    def wait(self, message: SentId) -> float:
        """Return 0 when the message may be edited now, else the seconds until its turn, which is kept for it."""
        now = self._clock.monotonic()
        self._places = {name: due for name, due in self._places.items() if due > now - LONGEST_PLACE}
        due = self._places.pop(message, None)
        if due is None:
            due = max(now, self._next)
            self._next = due + EDIT_SECONDS
        wait = due - now
        if wait < A_MOMENT:
            return 0.0
        self._places[message] = due
        return wait
