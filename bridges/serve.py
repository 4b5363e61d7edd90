"""All configured bots at once, each by itself: own link, own queue, own tasks, so that its failure stays its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from bridges.app import FAREWELL_SECONDS, Parts
from bridges.delivery import Delivery
from bridges.intake import Intake, Policy
from bridges.message import Acceptance, Channel, InboundMessage, PublishesCommands
from bridges.observer import Observer
from bridges.race import to_its_end
from bridges.split import split_lossless
from bridges.state import BotKey
from bridges.supervise import Health, Link, Supervisor
from commands.catalog import COMMANDS
from commands.help import menu
from commands.model import ChatKey
from i18n import Key, Language, Words

DRAIN_SECONDS: Final = 5.0
"""What replies under way get once a bot takes nothing more; the next start sees to what is left."""

RESTART_SECONDS: Final = 5.0
"""How long a bot rests after a fault of our own took all its tasks."""


class ServedBot:
    """One bot from its first connection to its last reply. :meth:`serve` it in a task of its own."""

    def __init__(
        self,
        parts: Parts,
        key: BotKey,
        channel: Channel,
        policy: Policy,
        *,
        redact: Callable[[str], str],
        workspace: str | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._parts = replace(parts, observer=observer or parts.observer)
        self._key = key
        self._channel = channel
        self._policy = policy
        self._redact = redact
        self._workspace = workspace
        self._health = Health(key, Link.CLOSED, parts.clock.time())
        self._supervisor: Supervisor | None = None
        self._queued: Callable[[], int] = lambda: 0

    @property
    def waiting(self) -> int:
        """Return how many messages wait for their turn and how many replies for theirs, together."""
        return self._queued()

    @property
    def health(self) -> Health:
        """Return how the bot's link is."""
        return self._supervisor.health if self._supervisor else self._health

    async def serve(self, stop: asyncio.Event) -> None:
        """Serve until ``stop``, then take nothing more and let what is under way end, for DRAIN_SECONDS at most."""
        log = structlog.get_logger(__name__).bind(bot=str(self._key))
        while not stop.is_set():
            work = asyncio.create_task(self._work(stop), name=f"bot {self._key}")
            try:
                await self._until_over(work, stop)
            except Exception as failure:  # noqa: BLE001 - the supervisor of one bot: the other bots go on
                log.error("bot failed", error=type(failure).__name__, restart_in=RESTART_SECONDS)
                await self._parts.clock.sleep(RESTART_SECONDS)

    async def _until_over(self, work: asyncio.Task[None], stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
            async with self._parts.clock.timeout(DRAIN_SECONDS):
                await asyncio.shield(work)
        except TimeoutError:
            structlog.get_logger(__name__).warning("left to the next start", bot=str(self._key))
        finally:
            stopping.cancel()
            work.cancel()
            await asyncio.wait({work, stopping})

    async def _work(self, stop: asyncio.Event) -> None:
        observer = self._parts.observer
        sent = partial(observer.sent, self._key.channel)

        async def rest_waits(chat: ChatKey) -> str:
            return (await bot.words(chat))(Key.CHAT_REST_WAITS)

        delivery = Delivery(self._channel, split_lossless, clock=self._parts.clock, observe=sent, rest_waits=rest_waits)
        bot = self._parts.bot(self._key, self._channel, delivery, workspace=self._workspace)
        supervisor: Supervisor | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                intake = Intake(bot, self._policy, tasks, settled=observer.settled)
                self._queued = lambda: intake.conversations.waiting + delivery.waiting
                await intake.inherit()
                inbox = _Entrance(intake, self._channel, bot.language(), observer, tasks)
                supervisor = Supervisor(self._key, self._channel, inbox, redact=self._redact, clock=self._parts.clock)
                self._supervisor = supervisor
                link = tasks.create_task(supervisor.keep_running())
                await stop.wait()
                link.cancel()
        finally:
            await delivery.close(FAREWELL_SECONDS)
            if supervisor is not None:
                await supervisor.close()


class _Entrance:
    """The bot's inbox as its channel sees it."""

    def __init__(
        self, intake: Intake, channel: Channel, language: Language, observer: Observer, tasks: asyncio.TaskGroup
    ) -> None:
        self._intake = intake
        self._channel = channel
        self._language = language
        self._observer = observer
        self._tasks = tasks
        self._published = False

    async def accept(self, message: InboundMessage) -> Acceptance:
        """See :meth:`bridges.message.Inbox.accept`.

        A link that is lost meanwhile stops no message between its claim and its work: delivered again it would count as
        a duplicate, and nobody would ever see to it.
        """
        return await to_its_end(self._accept(message))

    async def _accept(self, message: InboundMessage) -> Acceptance:
        acceptance = await self._intake.accept(message)
        self._observer.accepted(message, acceptance)
        return acceptance

    def connected(self) -> None:
        """Publish the command menu at the first connection, in all languages, the configured one first."""
        if isinstance(self._channel, PublishesCommands) and not self._published:
            self._published = True
            languages = sorted(Language, key=lambda language: language is not self._language)
            menus = {str(language): menu(COMMANDS.values(), Words(language)) for language in languages}
            self._tasks.create_task(self._channel.publish(menus))
        self._intake.connected()
