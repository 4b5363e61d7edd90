"""Walks the operator through every configured bot. The Harness handed to the bots can only be read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import click

from bridges.access import Policies
from bridges.app import Parts, open_parts
from bridges.channels import Surroundings, build
from bridges.cli.reason import reason
from bridges.cli.smoking.lines import PASSED, Endpoint, Item, Result, Verdict, Why, failed, not_done
from bridges.cli.smoking.overlay import over
from bridges.cli.smoking.plan import endpoint, spot_of
from bridges.cli.smoking.record import Record
from bridges.cli.smoking.report import ITEMS, MARKS, REASONS
from bridges.cli.smoking.steps import NO_GROUPS, STEPS
from bridges.cli.smoking.walk import Flow, Walk
from bridges.config import AnyBot, Config
from bridges.environment import environment
from bridges.intake import Policy
from bridges.log import Redactor
from bridges.message import Stop
from bridges.observer import Observer
from bridges.serve import ServedBot
from bridges.state import BotKey
from bridges.supervise import Health, Link
from commands.model import ChatKey
from harness_client.clock import SYSTEM_CLOCK, Clock
from harness_client.types import SessionId
from i18n import Key, Words

CONNECT_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.02
"""How often a link that is being made is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """One run over ``chosen`` bots. ``publish`` is called whenever the record has grown; ``patience`` in seconds."""

    config: Config
    path: Path | None
    chosen: Sequence[AnyBot]
    words: Words
    redact: Redactor
    record: Record
    publish: Callable[[], None]
    flow: Flow
    patience: float
    clock: Clock = SYSTEM_CLOCK

    async def run(self) -> None:
        """Walk through all of them. Raises StateError, HarnessError, EmbeddedError."""
        walks: list[Walk] = []

        def requested(method: str, end: str, seconds: float) -> None:
            self.record.calls[method] += 1
            if walks:
                walks[-1].requested(method, end, seconds)

        observer = Observer(requested=requested)
        async with open_parts(self.config, environment(), self.redact, observer=observer, only_reads=True) as parts:
            for bot in self.chosen:
                if not self.flow.stopped:
                    await self._bot(bot, replace(parts, archives=None, clock=self.clock), walks)

    async def _bot(self, bot: AnyBot, parts: Parts, walks: list[Walk]) -> None:
        key, config = BotKey(bot.channel, bot.name), self.config
        policies = Policies.following(self.path, environment())
        state = over(parts.state, config.state.path, language=lambda: walk.language, pairs=lambda: walk.pairs)
        around = Surroundings(state.cursors(key), self.clock, self.redact.hide, config.state.path.absolute().parent)

        async def session(chat: ChatKey) -> SessionId | None:
            return (await parts.state.chats.get(chat)).session

        def tell(how: Key, text: str) -> None:
            click.echo(f"\n{self.words(how, text=text, bot=key, seconds=round(self.patience))}")

        walk = Walk(
            build(bot, around),
            self.flow,
            self.clock,
            language=config.language,
            session=session,
            tell=tell,
            patience=self.patience,
        )
        walks.append(walk)
        policy = Policy(partial(policies.of, key), turns_down=walk.turns_down)
        served = ServedBot(
            replace(parts, state=state),
            key,
            walk.channel,
            policy,
            redact=self.redact,
            workspace=bot.workspace,
            observer=Observer(settled=walk.settled),
        )
        stop = asyncio.Event()
        overridden = endpoint(bot) is Endpoint.OVERRIDDEN
        click.echo(f"\n{self.words(Key.SMOKE_CONNECTING_ELSEWHERE if overridden else Key.SMOKE_CONNECTING, bot=key)}")
        if bot.channel == "slack":
            click.echo(self.words(Key.SMOKE_SLACK))
        serving = asyncio.create_task(served.serve(stop))
        try:
            if await self._connected(bot, served):
                await self._steps(bot, walk, served, policies)
        finally:
            stop.set()
            await serving

    async def _connected(self, bot: AnyBot, served: ServedBot) -> bool:
        began = self.clock.monotonic()
        while not self.flow.stopped and self.clock.monotonic() < began + CONNECT_SECONDS:
            health = served.health
            if health.link is Link.UP:
                self._note(bot, Item.CONNECT, replace(PASSED, seconds=self.clock.monotonic() - began))
                return True
            if health.link is Link.STOPPED:
                break
            await self.clock.sleep(LOOK_SECONDS)
        if not self.flow.stopped:
            self._lost(bot, served.health)
        return False

    def _lost(self, bot: AnyBot, health: Health) -> None:
        """Note that the bot does not connect: nothing else is known of it then."""
        click.echo(self.words(Key.RUN_STOPPED, bot=health.bot, error=reason(health, self.words)))
        missing = health.why is Stop.NOT_INSTALLED
        rest = not_done(Why.NOT_INSTALLED if missing else Why.NOT_CONNECTED)
        for item in (Item.CONNECT, *_doable(bot), Item.STRANGER, Item.ECHO):
            wrong = item is Item.CONNECT and not missing
            self._note(bot, item, failed(Why.NOT_CONNECTED, health.why) if wrong else rest)

    async def _steps(self, bot: AnyBot, walk: Walk, served: ServedBot, policies: Policies) -> None:
        steps: dict[Item, Callable[[], Awaitable[Result]]] = {
            **{item: partial(walk.step, STEPS[item]) for item in _doable(bot)},
            Item.STRANGER: partial(_stranger, walk, policies, served.health.bot),
            Item.ECHO: walk.echo,
            Item.DUPLICATE: walk.duplicates,
        }
        for item, step in steps.items():
            if self.flow.stopped:
                return
            result = await step()
            if result.why is Why.TIMED_OUT and served.health.link is not Link.UP:
                result = not_done(Why.NOT_CONNECTED)
            self._note(bot, item, result)

    def _note(self, bot: AnyBot, item: Item, result: Result) -> None:
        self.record.note(spot_of(bot, item), result, self.clock.time())
        self.publish()
        if result.verdict is Verdict.PASS and result.seconds is not None:
            click.echo(self.words(Key.SMOKE_TAKEN, mark=MARKS[result.verdict], seconds=f"{result.seconds:.2f}"))
        elif item is not Item.DUPLICATE:
            told = self.words(REASONS[result.why] if result.why else ITEMS[item])
            click.echo(f"{MARKS[result.verdict]} {told}")


def _doable(bot: AnyBot) -> list[Item]:
    """Return the steps that this channel has."""
    return [item for item in STEPS if not (item is Item.GROUP and bot.channel in NO_GROUPS)]


async def _stranger(walk: Walk, policies: Policies, key: BotKey) -> Result:
    """See to somebody without access, unless there is nobody such."""
    access = policies.of(key)
    if access is not None and access.direct == "open":
        return not_done(Why.OPEN)
    return await walk.stranger(pairs=access is not None and access.direct == "pairing")
