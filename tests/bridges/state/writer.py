"""A process that writes until it is killed, and says on standard output what was promised to be durable.

Lines: ``opening``; ``claimed N`` once claim N and its turn are kept; ``bound N`` once the chat has binding version N.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from bridges.message import EventId, ReplyTarget
from bridges.state import BotKey, State, Turn, open_state
from commands.model import ChatKey, SenderId
from harness_client.types import SessionId

BOT = BotKey("telegram", "ops")
CHAT = ChatKey("telegram", "ops", "1")
AT_ONCE = 4


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def claim(state: State, numbers: itertools.count[int]) -> None:
    while True:
        event = EventId(str(next(numbers)))
        turn = Turn(event, ReplyTarget(CHAT, "route"), SenderId("ann"), 1.0)
        assert await state.claims.claim(BOT, event, turn=turn)
        say(f"claimed {event}")


async def bind(state: State) -> None:
    while True:
        seen = await state.chats.get(CHAT)
        bound = await state.chats.bind(CHAT, SessionId(f"session-{seen.version + 1}"), expected=seen)
        say(f"bound {bound.version}")


async def main(path: Path) -> None:
    say("opening")
    async with open_state(path) as state, asyncio.TaskGroup() as tasks:
        numbers = itertools.count(int(sys.argv[2]))
        for _ in range(AT_ONCE):
            tasks.create_task(claim(state, numbers))
        tasks.create_task(bind(state))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
