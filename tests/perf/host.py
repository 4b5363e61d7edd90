"""The other side, in a process of its own so that its work is not measured: ``python -m tests.perf.host``.

Prints the addresses of two fake hosts as one JSON line, and ends with standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from harness_client.types import SessionId
from tests.fakes.harness import FakeHarness, Session
from tests.fakes.harness.records import plain

SHORT, LONG, FIFTY, BIG = (SessionId(f"session-{name}") for name in ("short", "long", "fifty", "big"))

FIFTY_BYTES: Final = 150_000
BIG_EVENTS: Final = 100_000
BIG_BYTES: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class Hosts:
    """The addresses as hosts print them: one with the dialogues, one with nothing but the big page."""

    dialogues: str
    big: str


def dialogues(host: FakeHarness) -> None:
    """Write 40 messages, 40,000 messages, and 50 messages of 3 kB each, half of them Chinese."""
    _talk(host.session(SHORT), ["short"] * 20)
    host.session(LONG).dialogue(20_000 - 25)  # made when read; the newest page lies ready, as in the short session
    _talk(host.session(LONG), ["short"] * 25)
    english, chinese = "a word or two " * (FIFTY_BYTES // 50 // 14), "一两句话。" * (FIFTY_BYTES // 50 // 15)
    _talk(host.session(FIFTY), [english, chinese] * 12 + [english])


def _talk(session: Session, texts: list[str]) -> None:
    """Append a completed turn for each text, the same in question and answer."""
    for text in texts:
        turn = session.start()
        session.user(text)
        session.assistant(text, turn=turn)
        session.end()


def big_page(session: Session) -> bytes:
    """Return a page of 25 long turns, as tools make them: 100,000 events in 20 MB."""
    steps = BIG_EVENTS // 25 // 2 - 2
    for _ in range(25):
        turn = session.start()
        session.user(f"question {turn}")
        for call in range(steps):
            at = {"turn": turn, "step": call, "callId": f"call-{turn}-{call}"}
            session.raw(type="tool/call", data={**at, "name": "bash", "arguments": '{"command":"ls"}'})
            session.raw(type="tool/progress", data={**at, "text": "x" * 75})
        session.assistant(f"answer {turn}", turn=turn)
        session.end()
    while len(session.log) < BIG_EVENTS:
        session.raw(type="agent/heartbeat", data={})
    events = list(session.log)[-BIG_EVENTS:]
    return json.dumps({"records": plain(events), "hasMore": True}, separators=(",", ":")).encode()


async def main() -> None:
    """Serve until standard input ends."""
    async with FakeHarness() as host, FakeHarness() as big:
        dialogues(host)
        page = big_page(big.session(BIG))
        big.gzips = False
        big.fail("session/page", value=page)
        print(json.dumps({"dialogues": host.url, "big": big.url, "bytes": len(page)}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def serve() -> AsyncIterator[Hosts]:
    """Run the hosts as a child for as long as the body lasts."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        answer = json.loads(await child.stdout.readline())
        yield Hosts(answer["dialogues"], answer["big"])
    finally:
        child.stdin.close()
        await child.wait()


if __name__ == "__main__":
    asyncio.run(main())
