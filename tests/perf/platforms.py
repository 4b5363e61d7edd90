"""The simulated platforms, in a process of their own so that their work is not measured.

``python -m tests.perf.platforms telegram qq`` takes one order a line on standard input, answers each with one line of
JSON, and ends with standard input. Moments are on the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp

from tests.bridges.bench import eventually
from tests.fakes import dingtalk, discord, feishu, qq, slack, telegram, wecom, weixin, whatsapp

LOOK_SECONDS: Final = 0.001
"""Between two looks at what a platform has got."""

PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True)
class Stage:
    """One platform. ``table`` is the bot's lines of configuration; ``chats`` has the chat of each message it sent.

    ``links`` counts the connections the bot made so far: logins where it polls, none where the platform calls it.
    """

    table: str
    person: Callable[[int], str]
    says: Callable[[str, str], Awaitable[object]]
    chats: Callable[[], list[str]]
    chat: Callable[[str], str]
    connected: Callable[[], bool | Awaitable[bool]]
    links: Callable[[], int]

    async def ask(self, people: list[str], text: str) -> float:
        """Let all of them write at once; return the seconds until each has the beginning of a reply."""
        waiting, before = {self.chat(person) for person in people}, len(self.chats())
        began = time.monotonic()
        for person in people:
            await self.says(person, text)
        await eventually(lambda: waiting <= set(self.chats()[before:]), PATIENCE, pause=LOOK_SECONDS)
        return time.monotonic() - began


def _table(channel: str, endpoints: dict[str, str], **lines: str) -> str:
    told = ", ".join(f'{name} = "{url}"' for name, url in endpoints.items())
    return f'channel = "{channel}"\nendpoints = {{ {told} }}\n' + "".join(
        f'{name} = "{value}"\n' for name, value in lines.items()
    )


@asynccontextmanager
async def _telegram() -> AsyncIterator[Stage]:
    async with telegram.FakeTelegram() as fake:
        yield Stage(
            _table("telegram", {"api": fake.api}, token=fake.token),
            person=lambda number: str(10_000 + number),
            says=lambda who, text: fake.deliver(fake.write.update(fake.write.message(text, sender=int(who)))),
            chats=lambda: [str(said.chat) for said in fake.said],
            chat=str,
            connected=lambda: fake.count("getUpdates") > 0,
            links=lambda: fake.count("getMe"),
        )


@asynccontextmanager
async def _slack() -> AsyncIterator[Stage]:
    async with slack.FakeSlack() as fake:
        yield Stage(
            _table("slack", {"api": fake.api}, bot_token=fake.bot_token, app_token=fake.app_token),
            person=lambda number: f"U0PERSON{number}",
            says=lambda who, text: fake.deliver(fake.write.message(text, sender=who)),
            chats=lambda: [said.channel for said in fake.said],
            chat=slack.direct,
            connected=lambda: bool(fake.sockets.open),
            links=lambda: fake.count("apps.connections.open"),
        )


@asynccontextmanager
async def _discord() -> AsyncIterator[Stage]:
    async with discord.FakeDiscord() as fake:
        yield Stage(
            _table("discord", {"api": fake.api, "gateway": fake.gateway.url}, token=fake.token),
            person=lambda number: str(discord.TELLER + 1 + number),
            says=lambda who, text: fake.deliver(fake.write.message(text, sender=int(who))),
            chats=lambda: [str(said.channel) for said in fake.said],
            chat=lambda who: str(discord.dm(int(who))),
            connected=lambda: any(session.link is not None for session in fake.gateway.sessions.values()),
            links=lambda: fake.gateway.connects,
        )


@asynccontextmanager
async def _whatsapp() -> AsyncIterator[Stage]:
    with socket.create_server(("127.0.0.1", 0)) as found:  # the program cannot tell us which port it was given
        listen = f"127.0.0.1:{found.getsockname()[1]}"
    webhook = f"http://{listen}/webhook"
    async with whatsapp.FakeWhatsApp() as fake:

        async def connected() -> bool:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                return (await fake.verify(webhook))[0] == 200
            return False

        async def says(who: str, text: str) -> None:
            posted = whatsapp.post(whatsapp.change(whatsapp.value(whatsapp.message(text, sender=who))))
            assert await fake.deliver(webhook, posted) == 200

        yield Stage(
            _table(
                "whatsapp", {"api": fake.api}, phone_number_id=whatsapp.NUMBER, access_token=whatsapp.ACCESS_TOKEN,
                app_secret=whatsapp.APP_SECRET, verify_token=whatsapp.VERIFY_TOKEN, listen=listen, path="/webhook",
            ),
            person=lambda number: f"1650555{number:04}",
            says=says,
            chats=lambda: [sent.to for sent in fake.sent],
            chat=str,
            connected=connected,
            links=lambda: 0,
        )  # fmt: skip


@asynccontextmanager
async def _feishu() -> AsyncIterator[Stage]:
    async with feishu.FakeFeishu() as fake:
        yield Stage(
            _table("feishu", {"api": fake.url}, app_id=feishu.APP_ID, app_secret=feishu.SECRET),
            person=lambda number: f"ou_{number:032x}",
            says=lambda who, text: fake.says(text, sender=who),
            chats=lambda: [shown.chat for shown in fake.shown],
            chat=feishu.private,
            connected=lambda: bool(fake.gateway.sockets),
            links=lambda: fake.calls.count("discover"),
        )


@asynccontextmanager
async def _dingtalk() -> AsyncIterator[Stage]:
    async with dingtalk.FakeDingTalk() as fake:
        yield Stage(
            _table("dingtalk", {"api": fake.url}, client_id=dingtalk.CLIENT_ID, client_secret=dingtalk.SECRET),
            person=lambda number: f"person{number}",
            says=lambda who, text: fake.gateway.callback(fake.message(text, sender=who, now=time.time())),
            chats=lambda: [said.chat for said in fake.said],
            chat=lambda who: f"cid-{who}",
            connected=lambda: fake.gateway.connections > 0,
            links=lambda: fake.gateway.connections,
        )


@asynccontextmanager
async def _wecom() -> AsyncIterator[Stage]:
    async with wecom.FakeWeCom() as fake:
        yield Stage(
            _table("wecom", {"websocket": fake.url}, bot_id=wecom.BOT_ID, secret=wecom.SECRET),
            person=lambda number: f"person{number}",
            says=lambda who, text: fake.says(text, sender=who),
            chats=lambda: [said.chat for said in fake.said],
            chat=str,
            connected=lambda: fake.subscribed > 0,
            links=lambda: fake.connections,
        )


@asynccontextmanager
async def _qq() -> AsyncIterator[Stage]:
    async with qq.FakeQQ() as fake:
        yield Stage(
            _table("qq", {"api": fake.url, "token": fake.url}, app_id=qq.APP_ID, client_secret=qq.SECRET),
            person=lambda number: f"person{number}-openid",
            says=lambda who, text: fake.says(text, chat=who),
            chats=lambda: [sent.chat for sent in fake.sent],
            chat=str,
            connected=lambda: fake.gateway.ready,
            links=lambda: fake.gateway.connections,
        )


@asynccontextmanager
async def _weixin() -> AsyncIterator[Stage]:
    async with weixin.FakeWeixin() as fake:

        async def says(who: str, text: str) -> None:
            fake.says(who, text)

        yield Stage(
            _table("weixin", {"api": fake.url}, token=weixin.TOKEN, account=weixin.ACCOUNT),
            person=lambda number: f"person{number}@im.wechat",
            says=says,
            chats=lambda: [sent.user for sent in fake.sent],
            chat=str,
            connected=lambda: fake.count("getupdates") > 0,
            links=lambda: fake.count("msg/notifystart"),
        )


STAGES: Final[dict[str, Callable[[], AbstractAsyncContextManager[Stage]]]] = {
    "telegram": _telegram,
    "slack": _slack,
    "discord": _discord,
    "whatsapp": _whatsapp,
    "weixin": _weixin,
    "qq": _qq,
    "feishu": _feishu,
    "dingtalk": _dingtalk,
    "wecom": _wecom,
}


async def main(names: list[str]) -> None:
    """Serve the platforms of these names until standard input ends."""
    async with AsyncExitStack() as stack:
        stages = {name: await stack.enter_async_context(STAGES[name]()) for name in names}
        print(json.dumps({name: stage.table for name, stage in stages.items()}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await _obey(stages, json.loads(line))), flush=True)


async def _obey(stages: dict[str, Stage], order: list[object]) -> object:
    """Do ``["connected"]`` or ``["ask", platform, people, text]``."""
    match order:
        case ["connected"]:
            moments = [_connected(stage) for stage in stages.values()]
            return dict(zip(stages, await asyncio.gather(*moments), strict=True))
        case ["ask", str(name), list(people), str(text)]:
            stage = stages[name]
            return await stage.ask([stage.person(int(each)) for each in people], text)
    raise ValueError(order)


async def _connected(stage: Stage) -> float:
    await eventually(stage.connected, PATIENCE, pause=LOOK_SECONDS)
    return time.monotonic()


class Platforms:
    """The process, as whoever measures sees it. ``tables`` are the bots' lines of configuration."""

    def __init__(self, child: asyncio.subprocess.Process, tables: dict[str, str]) -> None:
        self._child = child
        self.tables = tables

    async def connected(self) -> dict[str, float]:
        """Wait until every bot is connected; return the moments."""
        moments = await self._order("connected")
        assert isinstance(moments, dict)
        return moments

    async def ask(self, name: str, text: str, *people: int) -> float:
        """Let people write at once; return the seconds until each has the beginning of a reply."""
        seconds = await self._order("ask", name, people, text)
        assert isinstance(seconds, float)
        return seconds

    async def _order(self, *order: object) -> object:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(order).encode() + b"\n")
        answer: object = json.loads(await self._child.stdout.readline())
        return answer


@asynccontextmanager
async def platforms(*names: str) -> AsyncIterator[Platforms]:
    """Run the platforms of these names as a child for as long as the body lasts."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, *names, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield Platforms(child, json.loads(await child.stdout.readline()))
    finally:
        child.stdin.close()
        await child.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
