"""What lines a report has, and which of them may ever be called live.

Live is a bot that connects to the platform's own addresses and to nothing else. Whatever the operator says, one with an
address of its own in ``[bot.endpoints]`` is simulated, and its live lines stay not done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from bridges.cli.examination.addresses import addresses
from bridges.cli.smoking.lines import CHANNELS, Endpoint, Item, Side, Spot, Why, not_done
from bridges.cli.smoking.record import Record
from bridges.cli.smoking.steps import BY_NATURE, NO_GROUPS
from bridges.config import AnyBot

LARK: Final = "https://open.larksuite.com"
"""Feishu's own address outside China, which the configuration has to name."""


def endpoint(bot: AnyBot) -> Endpoint:
    """Return whether a bot connects to its platform, by its addresses alone."""
    own = set(addresses(msgspec.structs.replace(bot, endpoints=type(bot.endpoints)())))
    own |= {LARK} if bot.channel == "feishu" else set()
    given = (str(address) for address in msgspec.structs.astuple(bot.endpoints) if address is not None)
    bare = {address.rstrip("/") for address in own}
    return Endpoint.PLATFORM if all(address.rstrip("/") in bare for address in given) else Endpoint.OVERRIDDEN


def spot_of(bot: AnyBot, item: Item) -> Spot:
    """Return where the outcome of a configured bot stands."""
    where = endpoint(bot)
    side = Side.LIVE if where is Endpoint.PLATFORM else Side.SIMULATED
    return Spot(bot.channel, bot.name, side, where, item)


def plan_live(record: Record, bots: Sequence[AnyBot], chosen: Sequence[AnyBot]) -> None:
    """Enter every live line there is as not done, and those of ``chosen`` bots with other endpoints as simulated."""
    for channel in CHANNELS:
        own = [bot for bot in bots if bot.channel == channel]
        if not own:
            absent = Why.NO_BOT if record.side is Side.LIVE else Why.NOT_ASKED
            spots = [Spot(channel, None, Side.LIVE, Endpoint.PLATFORM, item) for item in Item]
            record.plan(spots, not_done(absent))
        for bot in own:
            _plan(record, bot, asked=bot in chosen)


def _plan(record: Record, bot: AnyBot, *, asked: bool) -> None:
    for item in Item:
        live = Spot(bot.channel, bot.name, Side.LIVE, Endpoint.PLATFORM, item)
        if not asked:
            record.plan([live], not_done(Why.NOT_ASKED))
            continue
        by_nature = Why.PLATFORM if item is Item.GROUP and bot.channel in NO_GROUPS else BY_NATURE.get(item)
        used = spot_of(bot, item)
        record.plan([live], not_done(by_nature or Why.OVERRIDDEN))
        record.plan([used], not_done(by_nature or Why.NOT_REACHED))


def plan_simulated(record: Record, channels: Sequence[str]) -> None:
    """Enter the lines of the simulated platforms; a simulated bot always connects, or nothing of it passes."""
    for channel in channels:
        items = (item for item in Item if item is not Item.CONNECT)
        record.plan(
            [Spot(channel, None, Side.SIMULATED, Endpoint.FAKE, item) for item in items], not_done(Why.NOT_REACHED)
        )
