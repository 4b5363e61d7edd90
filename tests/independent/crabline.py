"""Another vendor's simulated platforms, each as a platform of the contract; of that, only what the cases here need."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from bridges.state import BotKey
from commands.model import ChatKind, SenderId
from tests.bridges.bench import eventually
from tests.independent.installs import NODE, node_in, node_modules, started

CRABLINE = "@openclaw/crabline@0.1.27"

Row = dict[str, Any]  # of somebody else's record, looked at here and there


class Crabline(ABC):
    """What its platforms share; ``where`` is what the program said when it was ready."""

    bot: BotKey
    member: SenderId
    stranger: SenderId

    def __init__(self, where: Row) -> None:
        self._inbound = where["endpoints"]["adminInboundUrl"]
        self._record = Path(where["recorderPath"])

    async def tell(self, body: dict[str, object]) -> Row:
        """Let a person speak; return what came of it."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(self._inbound, json=body, headers={"X-Crabline-Admin-Token": "adm"}) as answer,
        ):
            assert answer.status == 200, await answer.text()
            told: Row = await answer.json()
            return told

    def rows(self) -> list[Row]:
        """Return every call that was made, in order."""
        return [json.loads(line) for line in self._record.read_text().splitlines()]

    @abstractmethod
    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]: ...

    def glimpsed(self) -> list[str]:
        return self.heard()

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        raise NotImplementedError

    async def echo(self) -> None:
        raise NotImplementedError

    def refuse(self, nth: int) -> None:
        raise NotImplementedError


@asynccontextmanager
async def served(platform: str, folder: Path) -> AsyncIterator[Row]:
    """Serve one of its platforms; yields where everything is."""
    modules = node_modules(NODE, CRABLINE)
    program = modules / "@openclaw" / "crabline" / "dist" / "src" / "bin" / "crabline.js"
    ready = folder / "ready.json"
    command = (node_in(modules), str(program), "--json", "serve", platform, "--ready-file", str(ready))
    async with started(*command, folder=folder, HOME=str(folder), CRABLINE_ADMIN_TOKEN="adm"):
        await eventually(ready.is_file, 30)
        await eventually(lambda: bool(ready.read_text()))
        yield json.loads(ready.read_text())
