"""Host and platforms: who answers, and what time they think it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp

from bridges import http
from bridges.cli.examination.addresses import addresses
from bridges.cli.examination.finding import Check, Finding, Level
from bridges.cli.problems import worded
from bridges.config import Config
from harness_client.client import HarnessClient
from harness_client.clock import Clock
from harness_client.embedded import RuntimeMissing, bundled_command
from harness_client.errors import HarnessError, TimedOut
from i18n import Key, Words

SECONDS: Final = 10.0
"""What one answer may take."""
SKEW_SECONDS: Final = 60.0
"""Beyond it platforms begin to refuse signatures, and the time in a message misleads people."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An address that answered over HTTP. ``skew``: seconds that our clock is ahead, where the answer had a date."""

    address: str
    status: int
    skew: float | None


async def host(config: Config, environ: Mapping[str, str], clock: Clock, words: Words) -> Finding:
    """Ask the Harness who it is; of one that we would start ourselves, whether it is installed and gets a key.

    The key is only a note: a service may have an environment of its own, and the Harness other models.
    """
    address = config.harness.address
    if address is None:
        try:
            bundled_command()
        except RuntimeMissing as error:
            return Finding(Check.HARNESS, "embedded", Level.WRONG, worded(error, words))
        if not environ.get("DEEPSEEK_API_KEY"):
            return Finding(Check.HARNESS, "embedded", Level.NOTE, words(Key.DOCTOR_NO_KEY))
        return Finding(Check.HARNESS, "embedded", Level.OK, words(Key.DOCTOR_EMBEDDED))
    try:
        async with HarnessClient(address, clock=clock) as harness, clock.timeout(SECONDS):
            health = await harness.health()
    except (HarnessError, TimeoutError) as error:
        problem = error if isinstance(error, HarnessError) else TimedOut(f"no answer within {SECONDS:g} s")
        return Finding(Check.HARNESS, address.base, Level.WRONG, worded(problem, words, address=address.base))
    told = words(Key.DOCTOR_HARNESS, generation=health.generation, version=health.version or "")
    return Finding(Check.HARNESS, address.base, Level.OK, told.rstrip())


async def endpoints(config: Config, clock: Clock, words: Words, *, platforms: bool = True) -> Sequence[Finding]:
    """Knock at every address the bots use, without a login, and compare the time there with ours.

    Without ``platforms`` only the host's clock is compared.
    """
    bots = config.bots if platforms else ()
    knocked = list(dict.fromkeys(address for bot in bots for address in addresses(bot)))
    hosts = [config.harness.address.base] if config.harness.address else []
    async with http.new_session() as session:
        answers = await asyncio.gather(*(_knock(session, clock, address) for address in [*knocked, *hosts]))
    reached = [_reached(address, answer, words) for address, answer in zip(knocked, answers, strict=False)]
    return [*reached, _clock([each for each in answers if isinstance(each, Answered)], words)]


def _reached(address: str, answer: Answered | http.CallFailed, words: Words) -> Finding:
    if isinstance(answer, Answered):
        return Finding(Check.ENDPOINT, address, Level.OK, words(Key.DOCTOR_ANSWERS, status=answer.status))
    return Finding(Check.ENDPOINT, address, Level.WRONG, words(Key.DOCTOR_UNREACHED, reason=type(answer).__name__))


def _clock(answers: Sequence[Answered], words: Words) -> Finding:
    skews = {each.address: each.skew for each in answers if each.skew is not None}
    if not skews:
        return Finding(Check.CLOCK, "", Level.NOTE, words(Key.DOCTOR_NO_CLOCK))
    address = max(skews, key=lambda each: abs(skews[each]))
    level, key = Level.OK, Key.DOCTOR_CLOCK
    if abs(skews[address]) > SKEW_SECONDS:
        level, key = Level.WRONG, Key.DOCTOR_SKEWED
    return Finding(Check.CLOCK, address, level, words(key, seconds=f"{round(skews[address]):+d}"))


async def _knock(session: aiohttp.ClientSession, clock: Clock, address: str) -> Answered | http.CallFailed:
    url = address.replace("ws", "http", 1) if address.startswith("ws") else address
    began = clock.time()
    try:
        reply = await http.exchange(session, clock, "knock", {"method": "GET", "url": url}, seconds=SECONDS)
    except http.CallFailed as failed:
        return failed
    return Answered(address, reply.status, _skew(reply.headers.get("Date"), (began + clock.time()) / 2))


def _skew(date: str | None, ours: float) -> float | None:
    try:
        return ours - parsedate_to_datetime(date).timestamp() if date else None
    except (ValueError, OverflowError):
        return None
