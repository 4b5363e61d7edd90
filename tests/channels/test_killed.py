"""``harness-im run`` killed and started again: the real program with Weixin, QQ and WeCom on their fakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bridges.wecom.outbox import LEFT_OVER
from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.bridges.test_run import configure, service
from tests.fakes import qq, wecom, weixin
from tests.fakes.harness import FakeHarness, say
from tests.perf.platforms import STAGES

EN = Words(Language.EN)
SECONDS = 30.0
ROUNDS = 4


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


def bot(table: str) -> str:
    return f'[[bot]]\nname = "ops"\naccess = {{ direct = "open" }}\n{table}'


async def until(condition: Callable[[], bool]) -> None:
    await eventually(condition, SECONDS)


@pytest.mark.parametrize("name", ["weixin", "qq"])
async def test_nobody_is_forgotten_and_nothing_runs_twice(name: str, host: FakeHarness, tmp_path: Path) -> None:
    """Killed while people write, again and again: all of them hear in the end what became of their message."""
    async with STAGES[name]() as stage:
        config = configure(tmp_path, host, bot(stage.table))
        people = [stage.person(number) for number in range(ROUNDS)]
        async with service(tmp_path, config) as running:
            await running.ready()
            await stage.says(stage.person(ROUNDS), "hello")
            await until(lambda: bool(stage.chats()))
        for person in people:
            async with service(tmp_path, config) as running:
                await running.ready()
                await stage.says(person, "hello")
                running.child.kill()
                await running.child.wait()
        async with service(tmp_path, config) as running:
            await running.ready()
            await until(lambda: {stage.chat(person) for person in people} <= set(stage.chats()))
        prompts = [call for call in host.calls if call.name in {"session.prompt", "session/prompt"}]
        assert len(prompts) <= 1 + ROUNDS, "one each"


async def test_weixin_goes_on_behind_the_last_message(host: FakeHarness, tmp_path: Path) -> None:
    async with weixin.FakeWeixin() as fake:
        table = f'channel = "weixin"\ntoken = "{weixin.TOKEN}"\naccount = "{weixin.ACCOUNT}"\n'
        config = configure(tmp_path, host, bot(f'{table}endpoints = {{ api = "{fake.url}" }}\n'))
        async with service(tmp_path, config) as running:
            await running.ready()
            fake.says("a@im.wechat", "hello")
            await until(lambda: len(fake.sent) == 1 and fake.through)
            running.child.kill()
            await running.child.wait()
        polls = len(fake.answered_cursors)
        async with service(tmp_path, config) as running:
            await running.ready()
            fake.says("a@im.wechat", "again")
            await until(lambda: len(fake.sent) == 2)
        assert fake.answered_cursors[polls] == "cursor-1"
        assert [sent.text for sent in fake.sent] == ["You said: hello", "You said: again"]
        assert not fake.violations


async def test_qq_resumes_and_numbers_its_replies_on(host: FakeHarness, tmp_path: Path) -> None:
    hold = asyncio.Event()
    host.model.script(say("slow", hold, " answer"))
    async with qq.FakeQQ() as fake:
        table = f'channel = "qq"\napp_id = "{qq.APP_ID}"\nclient_secret = "{qq.SECRET}"\n'
        config = configure(tmp_path, host, bot(f'{table}endpoints = {{ api = "{fake.url}", token = "{fake.url}" }}\n'))
        async with service(tmp_path, config) as running:
            await running.ready()
            await fake.says("hello")
            await until(lambda: any(call.name.endswith("prompt") for call in host.calls))
            running.child.kill()
            await running.child.wait()
        async with service(tmp_path, config) as running:
            await running.ready()
            hold.set()
            await until(lambda: len(fake.sent) == 1)
        assert fake.texts() == [EN(Key.CHAT_LATE, text="slow answer")]
        assert (len(fake.gateway.identified), len(fake.gateway.resumed)) == (1, 1)
        assert not fake.violations


@pytest.mark.parametrize("killed", [True, False])
async def test_no_bubble_of_wecom_is_left_hanging(host: FakeHarness, tmp_path: Path, *, killed: bool) -> None:
    hold = asyncio.Event()
    host.model.script(say("slow", hold, " answer"))
    async with wecom.FakeWeCom() as fake:
        table = f'channel = "wecom"\nbot_id = "{wecom.BOT_ID}"\nsecret = "{wecom.SECRET}"\n'
        config = configure(tmp_path, host, bot(f'{table}endpoints = {{ websocket = "{fake.url}" }}\n'))
        async with service(tmp_path, config) as running:
            await running.ready()
            await fake.says("hello")
            await until(lambda: fake.texts() == ["slow"])
            if killed:
                running.child.kill()
                await running.child.wait()
            else:
                assert await running.stop() == 0
        assert bool(fake.hanging) is killed
        async with service(tmp_path, config) as running:
            await running.ready()
            hold.set()
            await until(lambda: len(fake.said) == 2 and not fake.hanging)
        assert fake.texts() == [LEFT_OVER if killed else "slow", EN(Key.CHAT_LATE, text="slow answer")]
        assert not fake.violations
