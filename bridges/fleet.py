"""The bots of one program, and the configuration in force: a new one may add bots and change the language."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bridges.access import Policies
from bridges.app import Parts
from bridges.channels import Surroundings, build
from bridges.config import AnyBot, Config
from bridges.intake import Policy
from bridges.log import Redactor
from bridges.serve import ServedBot
from bridges.state import BotKey
from i18n import Language


class Fleet:
    """Every bot that was configured since the start. ``served`` grows, and is never anything but appended to."""

    def __init__(self, parts: Parts, policies: Policies, redact: Redactor) -> None:
        self.served: list[ServedBot] = []
        self.language: Language = parts.language
        self._parts = parts.speaking(lambda: self.language)
        self._policies = policies
        self._redact = redact
        self._tables: dict[BotKey, AnyBot] = {}

    async def take(self, config: Config) -> Sequence[ServedBot]:
        """Take a configuration over; return the bots that are new, to be served. Raises StateError.

        Access needs nothing: :class:`bridges.access.Policies` follows the file by itself. Bots that are gone from the
        file go on until the next start, denied to everybody; a changed table counts from the next start on.
        """
        tables = {BotKey(bot.channel, bot.name): bot for bot in config.bots}
        added = [key for key in tables if key not in self._tables]
        await self._parts.state.bots.settle([*self._tables, *added])
        self._redact.keep(config.secrets())
        self.language = config.language
        before = len(self.served)
        for key in added:
            self._tables[key] = tables[key]
            self._add(key, tables[key], config)
        return self.served[before:]

    def left_behind(self, config: Config) -> list[BotKey]:
        """Return the bots that are served otherwise than ``config`` says, until the next start."""
        tables = {BotKey(bot.channel, bot.name): bot for bot in config.bots}
        return [key for key, table in self._tables.items() if key not in tables or _changed(table, tables[key])]

    def _add(self, key: BotKey, bot: AnyBot, config: Config) -> None:
        parts = self._parts
        data = config.state.path.absolute().parent
        channel = build(bot, Surroundings(parts.state.cursors(key), parts.clock, self._redact.hide, data))
        policy = Policy(partial(self._policies.of, key), busy=bot.busy, group_approvals=bot.group_approvals)
        self.served.append(ServedBot(parts, key, channel, policy, redact=self._redact, workspace=bot.workspace))


def _changed(before: AnyBot, after: AnyBot) -> bool:
    fields = (field for field in before.__struct_fields__ if field != "access")
    return any(getattr(before, field) != getattr(after, field) for field in fields)
