"""The terminal's row: the channel of a script, over pipes of its own."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import BinaryIO

from bridges.access import OPERATOR
from bridges.channels import Surroundings
from bridges.message import Channel
from bridges.state import BotKey
from bridges.terminal.chat import CHAT
from bridges.terminal.script import ScriptChannel, as_json
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble

LACKS = frozenset({
    Trait.GROUPS, Trait.STRANGERS, Trait.ATTACHMENTS, Trait.REDELIVERY, Trait.ECHO, Trait.REFUSALS, Trait.STREAMING,
    Trait.SEGMENTS,
    Trait.PAGES,
})  # fmt: skip


class TerminalPlatform:
    """See :class:`tests.contract.platform.Simulated`. Whoever sits at the terminal is alone there."""

    bot = BotKey(CHAT.channel, CHAT.bot)
    member = OPERATOR
    stranger = SenderId("nobody")

    def __init__(self, out: BinaryIO) -> None:
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._out = out.fileno()

    def channel(self, around: Surroundings) -> Channel:
        del around
        return ScriptChannel(self._typed(), self._out, as_json, lambda: str(uuid.uuid4()))

    async def _typed(self) -> AsyncIterator[str]:
        while True:
            yield await self._lines.get()
            self._lines.task_done()

    async def says(
        self,
        text: str,
        *,
        sender: SenderId | None = None,
        chat: ChatKind = ChatKind.DIRECT,
        addressed: bool = True,
        attachment: AttachmentKind | None = None,
        id: str | None = None,  # noqa: A002 - the protocol's word
    ) -> None:
        assert (sender or OPERATOR, chat, attachment) == (OPERATOR, ChatKind.DIRECT, None)
        await self._lines.put(text)
        await self._lines.join()

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        raise AssertionError("nothing is delivered twice")

    async def echo(self) -> None:
        raise AssertionError("a terminal does not talk back")

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        printed = os.pread(self._out, os.fstat(self._out).st_size, 0)
        replies = [json.loads(line) for line in printed.splitlines()]
        return ["".join(segment["text"] for segment in reply["segments"]) for reply in replies]

    def glimpsed(self) -> list[str]:
        return self.heard()

    def refuse(self, nth: int) -> None:
        raise AssertionError("a pipe takes everything")

    async def meets(self, trouble: Trouble, note: str) -> bool:
        return False

    def heals(self) -> None:
        """Nothing was wrong."""

    def secrets(self) -> set[str]:
        return set()

    def forget(self) -> None:
        """What was printed stays."""


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    with tempfile.TemporaryFile() as out:
        yield TerminalPlatform(out)
