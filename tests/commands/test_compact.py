"""``/compact``: through the whole path, on both host generations."""

from __future__ import annotations

import asyncio
import re

import pytest

from commands.model import Outcome
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import CHAT, Bench
from tests.fakes.harness import say

WORDS = Words(Language.EN)


def commands_run(desk: Bench) -> int:
    return sum(call.name == "commands/execute" for call in desk.host.calls)


async def test_a_session_is_compacted_and_its_history_stays(desk: Bench) -> None:
    await desk.ask("hello")
    (session,) = desk.host.world.sessions.values()
    reply = await desk.ask("/compact")
    items = re.findall(r"[0-9]+", reply)[0]
    assert reply == WORDS(Key.COMPACT_DONE, items=items, tokens=3712)
    assert any(event["type"] == "compaction/summary" for event in session.log)
    assert "hello" in await desk.ask("/history")
    assert len(desk.prompts) == 1


async def test_without_a_session_there_is_nothing_to_compact(desk: Bench) -> None:
    assert await desk.ask("/compact") == WORDS(Key.CHAT_UNBOUND)
    assert desk.host.calls == []


async def test_an_empty_session_has_nothing_to_compact(desk: Bench) -> None:
    session = desk.host.session()
    await desk.state.chats.bind(CHAT, SessionId(session.id), expected=await desk.state.chats.get(CHAT))
    assert await desk.ask("/compact") == WORDS(Key.COMPACT_NOTHING)


async def test_a_running_session_is_not_compacted(desk: Bench) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say(hold, "done"))
    await desk.say("hello")
    await desk.host.until(lambda: any(session.running for session in desk.host.world.sessions.values()))
    assert await desk.ask("/compact") == WORDS(Key.COMPACT_BUSY)
    assert commands_run(desk) == 0
    hold.set()
    await desk.channel.until_sent(2)


async def test_a_session_that_is_gone_is_told(desk: Bench) -> None:
    await desk.state.chats.bind(CHAT, SessionId("session-gone"), expected=await desk.state.chats.get(CHAT))
    assert await desk.ask("/compact") == WORDS(Key.CHAT_SESSION_GONE)


BUSY = {"legacy": "agent-busy", "modern": "session/agent-busy"}


async def test_a_session_that_another_program_holds_is_busy(desk: Bench) -> None:
    await desk.ask("hello")
    code = BUSY[desk.host.dialect.generation]
    desk.host.fail("commands/execute", error={"code": code, "message": "", "details": {}})
    assert await desk.ask("/compact") == WORDS(Key.COMPACT_BUSY)


@pytest.mark.parametrize(
    ("result", "reply"),
    [
        ({"kind": "error", "text": "SECRET"}, Key.COMPACT_REFUSED),
        ({"kind": "success", "text": "as new hosts may say it"}, Key.COMPACT_OK),
        (None, Key.COMPACT_UNSUPPORTED),
    ],
)
async def test_what_the_host_says_is_put_in_our_words(desk: Bench, result: object, reply: Key) -> None:
    await desk.ask("hello")
    value = None if result is None else {"commandId": "c", "result": result}
    desk.host.fail("commands/execute", value=value)
    assert await desk.ask("/compact") == WORDS(reply)


async def test_a_lost_answer_is_not_called_done_and_nothing_is_run_twice(desk: Bench) -> None:
    await desk.ask("hello")
    desk.host.fail("commands/execute", drop="before", effect=True)
    assert "not certain" in await desk.ask("/compact")
    assert commands_run(desk) == 1
    await desk.channel.until(lambda: Outcome.FAILED in desk.outcomes.values())


async def test_other_commands_answer_while_the_host_compacts(desk: Bench) -> None:
    await desk.ask("hello")
    hold = asyncio.Event()
    desk.host.fail("commands/execute", delay=hold)
    await desk.say("/compact")
    await desk.host.until_called("commands/execute")
    assert WORDS(Key.STATUS_IDLE) in await desk.ask("/status")
    hold.set()
    assert "3712" in (await desk.channel.until_sent(3))[2]
