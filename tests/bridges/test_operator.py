"""A day of the operator: ``doctor``, ``run``, ``bots``, ``sessions``, ``reload``, in a terminal, in both languages.

All nine channels at once, a bot whose token is refused, and one whose platform is not there.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from wcwidth import wcswidth

from bridges.cli.examination.report import _NAMES as CHECKS
from i18n import Key, Language, Words
from tests.bridges.chat_process import SECONDS, ScreenChat, on_terminal
from tests.bridges.test_monitoring import NAMES, get, labels
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import FakeTelegram
from tests.perf.platforms import STAGES, Stage

COLUMNS = 80
CTRL_C = "\x03"
REFUSED = "1:nobody-knows-this-token"
NOWHERE = "http://127.0.0.1:1"
STYLE = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True, slots=True)
class Place:
    """Everything there is around the operator."""

    home: Path
    words: Words
    host: FakeHarness
    stages: Mapping[str, Stage]

    @property
    def config(self) -> Path:
        return self.home / "config.toml"

    def write(self, *bots: str, language: Language) -> None:
        """Write the configuration: a bot on each platform, named after it, and ``bots``."""
        harness = f'[harness]\nurl = "{self.host.url}"\nworkspace = "{self.home}"\n'
        head = f'language = "{language}"\n{harness}[state]\npath = "state.db"\n'
        own = [table(name, stage.table, owner=stage.person(1)) for name, stage in self.stages.items()]
        self.config.write_text("".join([head, '[metrics]\nlisten = "127.0.0.1:0"\n', *own, *bots]))
        self.config.chmod(0o600)

    @asynccontextmanager
    async def terminal(self, *command: str) -> AsyncIterator[ScreenChat]:
        options = ("--config", str(self.config))
        async with on_terminal(self.home, *command, *options, variables={"NO_PROXY": "*"}) as screen:
            yield screen

    async def shown(self, *command: str, code: int = 0) -> list[str]:
        """Return what a command shows that ends with ``code``."""
        async with self.terminal(*command) as screen:
            assert await screen.end() == code, screen.shown
            return plain(screen)


def table(name: str, lines: str, *, owner: str = "nobody") -> str:
    return f'[[bot]]\nname = "{name}"\naccess = {{ direct = "open", owners = ["{owner}"] }}\n{lines}'


def telegram_table(api: str, token: str) -> str:
    return f'channel = "telegram"\ntoken = "{token}"\nendpoints = {{ api = "{api}" }}\n'


def plain(screen: ScreenChat) -> list[str]:
    return STYLE.sub("", screen.shown).replace("\r", "").splitlines()


def fits(lines: list[str]) -> bool:
    return max(map(wcswidth, lines)) <= COLUMNS


@asynccontextmanager
async def everything(home: Path, language: Language, *bots: str) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack, FakeHarness() as host:
        stages = {name: await stack.enter_async_context(stage()) for name, stage in STAGES.items()}
        place = Place(home, Words(language), host, stages)
        place.write(*bots, language=language)
        yield place


@pytest.mark.timeout(240)
@pytest.mark.parametrize("language", Language)
async def test_a_day_in_a_terminal(language: Language, tmp_path: Path) -> None:
    async with FakeTelegram() as other:
        broken = (
            table("lost", telegram_table(other.api, REFUSED)),
            table("down", f'channel = "qq"\napp_id = "1"\nclient_secret = "not-for-us"\n'
                          f'endpoints = {{ api = "{NOWHERE}", token = "{NOWHERE}" }}\n'),
        )  # fmt: skip
        async with everything(tmp_path, language, *broken) as place:
            await _examined(place)
            async with place.terminal("run") as screen:
                address = await _ready(place, screen)
                private = await _everybody_writes(place)
                await _watched(place, address, private)
                await _listed(place, private)
                await _reloaded(place, screen, table("new", telegram_table(other.api, other.token)), *broken)
                screen.type(CTRL_C)
                assert await screen.end() == 0
            assert "Traceback" not in screen.shown
            assert not any(secret in screen.shown for secret in _secrets(place))


def _secrets(place: Place) -> list[str]:
    text = place.config.read_text()
    named = re.findall(r'^\w*(?:token|secret) = "([^"]+)"', text, re.MULTILINE)
    return [REFUSED, place.host.login.token, *named]


async def _examined(place: Place) -> None:
    """All is well but for two bots; each check has its rows."""
    words = place.words
    lines = await place.shown("doctor", code=1)
    assert fits(lines)
    assert lines[-1] == words(Key.DOCTOR_WRONG, count=3)
    table = [line for line in lines if line[:1] in {"✓", "·", "✗"}]
    assert {line.split()[1] for line in table} == {words(key).split()[0] for key in CHECKS.values()}
    assert [line.split()[2] for line in table if line.startswith("✗")] == [NOWHERE, "lost", "down"]
    assert not any(secret in "\n".join(lines) for secret in _secrets(place))


async def _ready(place: Place, screen: ScreenChat) -> str:
    """Return where the figures are, once the ready line has said of every bot how it is and why."""
    words = place.words
    await screen.until("/readyz")
    lines = plain(screen)
    assert words(
        Key.RUN_READY, up=9, all=11, generation="modern", version="", address=place.host.base
    ).replace("  ", " ") in lines  # fmt: skip
    for name in STAGES:
        assert words(Key.RUN_UP, bot=f"{name}/{name}") in lines
    (lost,) = (line for line in lines if line.startswith(words(Key.RUN_STOPPED, bot="telegram/lost", error="").strip()))
    assert words(Key.BOTS_NEEDS_LOGIN) in lost
    assert "@BotFather" in lost
    (down,) = (line for line in lines if line.startswith(words(Key.RUN_WAITING, bot="qq/down", error="").strip()))
    assert "ClientConnectorError" in down
    found = re.search(r"http://127\.0\.0\.1:\d+", lines[lines.index(down) + 1])
    assert found is not None
    return found[0]


async def _everybody_writes(place: Place) -> set[str]:
    """Let an owner search the past and another ask the model on every channel; return the ids of all there is then."""
    found = set()
    for stage in place.stages.values():
        one, other = stage.person(1), stage.person(2)
        await stage.ask([other], "hello")
        await stage.ask([one], "/pbot history hello")
        found |= {one, other, stage.chat(one), stage.chat(other)}
    return found | set(map(str, place.host.world.sessions))


async def _watched(place: Place, address: str, private: set[str]) -> None:
    """Every figure has the labels of the dashboards, and none names a person, a chat, a session or a secret."""
    status, told = await get(f"{address}/readyz")
    bots = json.loads(told)["bots"]
    assert (status, bots.pop("telegram/lost"), bots.pop("qq/down")) == (200, "stopped", "waiting")
    assert bots == {f"{name}/{name}": "up" for name in STAGES}
    assert (await get(f"{address}/healthz"))[0] == 200
    _, figures = await get(f"{address}/metrics")
    assert labels(figures) == NAMES
    for counted in ("bridge_inbound_total", "bridge_send_seconds_count", "bridge_command_seconds_count"):
        channels = {re.findall(r'channel="(\w+)"', line)[0] for line in _lines(figures, counted)}
        assert channels == set(STAGES)
    kept = [*private, *_secrets(place)]
    values = set(re.findall(r'="([^"]*)"', figures))
    assert [value for value in values if any(each in value for each in kept)] == []


def _lines(figures: str, name: str) -> list[str]:
    return [line for line in figures.splitlines() if line.startswith(f"{name}{{")]


async def _listed(place: Place, private: set[str]) -> None:
    """Every bot has a row and its last error is told whole; who talks to which session is shown only when asked."""
    words, lines = place.words, list[str]()
    async with asyncio.timeout(SECONDS):
        while sum(words(Key.BOTS_UP) in line for line in lines) < len(STAGES):  # the program writes it down in a while
            lines = await place.shown("bots")
    heading = lines.index(words(Key.BOTS_ERROR))
    assert fits(lines[:heading])
    errors = "\n".join(lines[heading:])
    assert f"telegram/lost: {words(Key.BOTS_NEEDS_LOGIN)}" in errors
    assert "qq/down: " in errors
    rows = {line.split()[0]: line for line in lines[1 : heading - 1]}
    assert words(Key.BOTS_STOPPED) in rows["telegram/lost"]
    assert {bot.partition("/")[0] for bot in rows} == set(STAGES)
    hashed, full = await place.shown("sessions"), await place.shown("sessions", "--full")
    assert fits(hashed)
    assert fits(full)
    assert not any(each in "".join(hashed) for each in private)
    assert all(any(session in line for line in full) for session in place.host.world.sessions), "each in one line"


async def _reloaded(place: Place, screen: ScreenChat, new: str, *others: str) -> None:
    """A new bot and another language, and every connection is the one it was before."""
    links = {name: stage.links() for name, stage in place.stages.items()}
    assert all(count for name, count in links.items() if name != "whatsapp"), links
    language = next(each for each in Language if each is not place.words.language)
    place.write(new, *others, language=language)
    screen.shown = ""
    async with place.terminal("reload") as asked:
        assert await asked.end() == 0
    await screen.until("new=['telegram/new']")
    await screen.until("bot=telegram/new")
    for stage in place.stages.values():
        await stage.ask([stage.person(3)], "/version")
    assert {name: stage.links() for name, stage in place.stages.items()} == links
    assert [line for line in plain(screen) if "link lost" in line and "qq/down" not in line] == []
