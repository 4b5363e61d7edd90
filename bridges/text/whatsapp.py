"""WhatsApp: a number on the Cloud API. A webhook in, the Graph API out.

A post is answered with 200 only after ``inbox.accept`` returned for every message in it; WhatsApp delivers again what
gets another answer, for up to 7 days.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from bridges.message import (
    Acceptance,
    ChannelStopped,
    ChatKind,
    Clock,
    InboundAttachment,
    InboundMessage,
    Inbox,
    Limits,
    Noticed,
    NotSent,
    ReplyTarget,
    SendOutcome,
)
from bridges.race import task_group
from bridges.text.whatsapp_graph import Graph
from bridges.text.whatsapp_parse import Route, Undelivered, Unreadable, parse
from bridges.text.whatsapp_webhook import Door, Webhook

MARKS_AT_ONCE: Final = 16
"""Read marks on their way; a message beyond them stays unmarked."""


class WhatsAppChannel:
    """See :class:`bridges.message.Channel`. No message can be edited, so answers come whole."""

    limits = Limits(text=4_096, joins=True)
    typing_seconds = 25.0

    def __init__(
        self, name: str, *, number_id: str, access_token: str, door: Door, api: str | None, clock: Clock
    ) -> None:
        """Know the number and its secrets, and another base of the Graph API, version included, if any."""
        self._name = name
        self._number_id = number_id
        self._token = access_token
        self._door = door
        self._address = api
        self._clock = clock
        self._graph: Graph | None = None
        self._stopped: ChannelStopped | None = None
        self._stopping = asyncio.Event()
        self.webhook: str | None = None
        """Where the webhook listens at present."""

    async def run(self, inbox: Inbox) -> None:
        """Listen until cancelled; see :meth:`bridges.message.Channel.run`."""
        if self._graph is None:
            self._graph = Graph(self._number_id, self._token, self._address, self._clock, self._stop)
        graph = self._graph
        await graph.check()
        log = structlog.get_logger(__name__).bind(bot=self._name)
        async with task_group() as tasks:
            reception = _Reception(self._name, self._number_id, graph, inbox, tasks)
            async with Webhook(self._door, reception.receive, self._clock).listening() as self.webhook:
                log.info("webhook listens", address=self.webhook)
                inbox.connected()
                await self._stopping.wait()
            if self._stopped is not None:
                raise self._stopped

    def _stop(self, stopped: ChannelStopped) -> None:
        self._stopped = self._stopped or stopped
        self._stopping.set()

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`."""
        graph, self._graph = self._graph, None
        if graph is not None:
            await graph.close()

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        graph = Graph(self._number_id, self._token, self._address, self._clock, self._stop)
        try:
            return await graph.look(self._door.app_secret)
        finally:
            await graph.close()

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        if self._graph is None:
            return NotSent.REJECTED
        return await self._graph.send(Route.of(target), text)

    async def typing(self, target: ReplyTarget) -> None:
        """See :meth:`bridges.message.ShowsTyping.typing`; groups have no such sign."""
        route = Route.of(target)
        if self._graph is not None and route.group is None:
            await self._graph.read(route.message, typing=True)

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """See :meth:`bridges.message.FetchesAttachments.fetch`."""
        if self._graph is None or not attachment.handle:
            raise OSError("there is nothing to fetch, or no link")
        return await self._graph.fetch(attachment.handle, limit)


class _Reception:
    """What is done with posts while one run lasts: one after the other, in the order they came."""

    def __init__(self, bot: str, number_id: str, graph: Graph, inbox: Inbox, tasks: asyncio.TaskGroup) -> None:
        self._bot = bot
        self._number_id = number_id
        self._graph = graph
        self._inbox = inbox
        self._tasks = tasks
        self._in_order = asyncio.Lock()
        self._marks = 0
        self._log = structlog.get_logger(__name__).bind(bot=bot)

    async def receive(self, body: bytes) -> None:
        """Take a post; raises OSError when it must be delivered again."""
        async with self._in_order:
            for found in parse(body, self._bot, self._number_id):
                match found:
                    case InboundMessage():
                        await self._take(found)
                    case Undelivered(_, code):
                        self._graph.report(code)
                    case Unreadable(where):
                        self._log.warning("a part of a post cannot be read and was left out", where=where)
                await asyncio.sleep(0)  # a post may hold thousands of things

    async def _take(self, message: InboundMessage) -> None:
        taken = await self._inbox.accept(message)
        if taken is Acceptance.ACCEPTED and message.kind is ChatKind.DIRECT and self._marks < MARKS_AT_ONCE:
            self._marks += 1
            self._tasks.create_task(self._mark(Route.of(message.reply_to).message))

    async def _mark(self, message: str) -> None:
        try:
            await self._graph.read(message, typing=False)
        finally:
            self._marks -= 1
