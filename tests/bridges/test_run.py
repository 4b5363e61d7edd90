"""``harness-im run`` as an operator uses it: the real program, a fake host and a fake Telegram on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridges.cli.running import QUIET_SECONDS, READY_SECONDS
from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.bridges.chat_process import PROGRAM, SECONDS, environment
from tests.fakes.feishu import APP_ID, SECRET, FakeFeishu
from tests.fakes.harness import FakeHarness, say
from tests.fakes.telegram import TELLER, FakeTelegram, Obj

EN = Words(Language.EN)


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


def bot(fake: FakeTelegram, name: str = "ops", *, token: str | None = None, access: str = 'direct = "open"') -> str:
    return f"""
[[bot]]
name = "{name}"
channel = "telegram"
token = "{token or fake.token}"
[bot.access]
{access}
[bot.endpoints]
api = "{fake.api}"
"""


def configure(folder: Path, host: FakeHarness, *bots: str) -> Path:
    file = folder / "config.toml"
    head = f'language = "en"\n[harness]\nurl = "{host.url}"\n[state]\npath = "{folder / "state.db"}"\n'
    file.write_text(head + "".join(bots))
    return file


class Service:
    """One running program; ``out`` and ``errors`` are what it said so far."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child
        self.out: list[str] = []
        self.errors: list[str] = []

    async def ready(self) -> list[str]:
        """Wait for the ready line and one line for each bot."""
        await eventually(lambda: bool(self.out) and len(self.out) > self._bots, SECONDS)
        return self.out

    @property
    def _bots(self) -> int:
        """The number of bots the ready line speaks of: "1 of 2 bots connected"."""
        return int(self.out[0].split(" of ")[1].split()[0])

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.child.send_signal(number)
        async with asyncio.timeout(SECONDS):
            return await self.child.wait()


async def _collect(stream: asyncio.StreamReader | None, into: list[str]) -> None:
    assert stream is not None
    while line := await stream.readline():
        into.append(line.decode().rstrip("\n"))


@asynccontextmanager
async def service(home: Path, config: Path, **variables: str) -> AsyncIterator[Service]:
    """Start the program, with more in its environment; it is killed at the end if it still runs."""
    child = await asyncio.create_subprocess_exec(
        PROGRAM,
        "run",
        "--config",
        str(config),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home) | {"NO_PROXY": "*"} | variables,
    )
    made = Service(child)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_collect(child.stdout, made.out))
        tasks.create_task(_collect(child.stderr, made.errors))
        try:
            yield made
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()


def message(fake: FakeTelegram, text: str) -> Obj:
    return fake.write.update(fake.write.message(text))


async def test_the_ready_line_names_the_host_and_every_bot(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    config = configure(tmp_path, host, bot(telegram), bot(telegram, "lost", token="1:nobody-knows-this-token"))
    async with service(tmp_path, config) as running:
        first, *bots = await running.ready()
        assert host.base in first
        assert "1 of 2" in first
        assert bots[0] == EN(Key.RUN_UP, bot="telegram/ops")
        assert bots[1].startswith(EN(Key.RUN_STOPPED, bot="telegram/lost", error="").rstrip())
        assert "@BotFather" in bots[1]
        assert await running.stop() == 0
    said = "\n".join(running.out + running.errors)
    for secret in ("nobody-knows-this-token", telegram.token, host.login.token):
        assert secret not in said
    assert "Traceback" not in said


async def test_an_sdk_that_takes_long_to_load_holds_neither_the_ready_line_nor_another_bot_back(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    slow = tmp_path / "packages" / "lark_oapi" / "ws"
    slow.mkdir(parents=True)
    (slow.parent / "__init__.py").touch()
    (slow / "__init__.py").touch()
    (slow / "client.py").write_text(f"import time\ntime.sleep({2 * READY_SECONDS})\n")
    async with FakeFeishu() as platform:
        loading = f"""
[[bot]]
name = "slow"
channel = "feishu"
app_id = "{APP_ID}"
app_secret = "{SECRET}"
[bot.endpoints]
api = "{platform.url}"
"""
        config = configure(tmp_path, host, loading, bot(telegram))
        async with service(tmp_path, config, PYTHONPATH=str(slow.parents[1])) as running:
            await telegram.until(lambda: telegram.count("getUpdates") > 0)
            async with asyncio.timeout(QUIET_SECONDS + READY_SECONDS / 2):
                first, *bots = await running.ready()
            assert "1 of 2" in first
            assert set(bots) == {
                EN(Key.RUN_WAITING, bot="feishu/slow", error="").rstrip(), EN(Key.RUN_UP, bot="telegram/ops"),
            }  # fmt: skip
            await telegram.deliver(message(telegram, "hello"))
            await telegram.until(lambda: telegram.texts(TELLER) == ["You said: hello"])
            assert await running.stop() == 0


async def test_a_bot_answers_and_its_menu_is_published(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with service(tmp_path, configure(tmp_path, host, bot(telegram))) as running:
        await running.ready()
        await telegram.deliver(message(telegram, "hello"))
        await telegram.until(lambda: telegram.texts(TELLER) == ["You said: hello"])
        await telegram.until(lambda: set(telegram.menus) == {None, "en", "zh"})
        assert telegram.menus[None] == telegram.menus["en"]
        assert "history" in [row["command"] for row in telegram.menus[None]]
        assert await running.stop(signal.SIGINT) == 0


async def test_a_stopped_bot_leaves_the_other_at_work(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with FakeTelegram() as other:
        config = configure(tmp_path, host, bot(other, "first"), bot(telegram, "second"))
        async with service(tmp_path, config) as running:
            await running.ready()
            other.fail("getUpdates", status=401, description="Unauthorized", times=None)
            await other.deliver(message(other, "to the one that ends"))
            await eventually(lambda: any("stopped" in line for line in running.errors), SECONDS)
            await telegram.deliver(message(telegram, "hello"))
            await telegram.until(lambda: telegram.texts(TELLER) == ["You said: hello"])
            assert await running.stop() == 0


async def test_sigterm_lets_a_reply_under_way_arrive(host: FakeHarness, telegram: FakeTelegram, tmp_path: Path) -> None:
    hold = asyncio.Event()
    async with service(tmp_path, configure(tmp_path, host, bot(telegram))) as running:
        await running.ready()
        telegram.fail("sendMessage", hold=hold)
        await telegram.deliver(message(telegram, "/help"))
        await telegram.until(lambda: telegram.count("sendMessage") == 1)
        polls = telegram.count("getUpdates")
        stopping = asyncio.create_task(running.stop())
        await eventually(lambda: any("left to" in line for line in running.errors) or not stopping.done())
        await telegram.deliver(message(telegram, "too late"))
        hold.set()
        assert await stopping == 0
        assert len(telegram.texts(TELLER)) == 1
        assert telegram.count("getUpdates") <= polls + 1, "nothing new is taken"


async def test_sigterm_waits_for_nobody_longer_than_it_says_and_the_next_start_answers(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    hold = asyncio.Event()
    host.model.script(say("part", hold, " and whole"))
    config = configure(tmp_path, host, bot(telegram))
    async with service(tmp_path, config) as running:
        await running.ready()
        await telegram.deliver(message(telegram, "work"))
        await telegram.until(lambda: bool(telegram.drafts))
        began = time.monotonic()
        assert await running.stop() == 0
        assert time.monotonic() - began < 12  # five seconds, and a machine that has other work
    hold.set()
    async with service(tmp_path, config) as running:
        await running.ready()
        await telegram.until(lambda: telegram.texts(TELLER) == [EN(Key.CHAT_LATE, text="part and whole")])
        assert await running.stop() == 0


async def test_a_message_taken_before_a_kill_is_not_run_twice(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    config = configure(tmp_path, host, bot(telegram))
    async with service(tmp_path, config) as running:
        await running.ready()
        update = message(telegram, "hello")
        await telegram.deliver(update)
        await telegram.until(lambda: telegram.texts(TELLER) == ["You said: hello"])
        running.child.kill()
        await running.child.wait()
    telegram.pending = [dict(update)]  # the confirmation was lost with the process
    async with service(tmp_path, config) as running:
        await running.ready()
        await telegram.deliver(again := message(telegram, "again"))
        await telegram.taken(again)
        await telegram.until(lambda: telegram.texts(TELLER)[-1] == "You said: again")
        assert telegram.texts(TELLER).count("You said: hello") == 1


async def test_a_change_of_access_counts_from_the_next_message_on(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with service(tmp_path, configure(tmp_path, host, bot(telegram))) as running:
        await running.ready()
        configure(tmp_path, host, bot(telegram, access='direct = ["somebody-else"]'))
        await telegram.deliver(denied := message(telegram, "hello"))
        await telegram.taken(denied)
        configure(tmp_path, host, bot(telegram))
        await telegram.deliver(message(telegram, "/help"))
        await telegram.until(lambda: len(telegram.said) == 1)
        assert "You said" not in telegram.said[0].texts[-1]


async def test_without_a_bot_there_is_nothing_to_run(host: FakeHarness, tmp_path: Path) -> None:
    config = configure(tmp_path, host)
    async with service(tmp_path, config) as running:
        assert await running.child.wait() == 2
    assert running.errors == [EN(Key.RUN_NO_BOTS, path=config)]


async def test_a_wrong_configuration_is_told_before_anything_connects(host: FakeHarness, tmp_path: Path) -> None:
    config = configure(tmp_path, host, '[[bot]]\nname = "ops"\nchannel = "telegram"\n')
    async with service(tmp_path, config) as running:
        assert await running.child.wait() == 2
    assert "bot[0].token" in running.errors[0]
    assert host.calls == []


async def test_a_host_that_is_away_is_told(host: FakeHarness, telegram: FakeTelegram, tmp_path: Path) -> None:
    config = configure(tmp_path, host, bot(telegram))
    await host.stop()
    async with service(tmp_path, config) as running:
        assert await running.child.wait() == 1
    assert EN(Key.START_UNREACHABLE, address=host.base) in running.errors
    assert telegram.calls == []


async def test_a_log_in_json_is_one_object_a_line(host: FakeHarness, telegram: FakeTelegram, tmp_path: Path) -> None:
    config = configure(tmp_path, host, bot(telegram), bot(telegram, "lost", token="1:nobody-knows-this-token"))
    config.write_text(f'{config.read_text()}\n[log]\nformat = "json"\n')
    async with service(tmp_path, config) as running:
        await running.ready()
        running.child.send_signal(signal.SIGHUP)
        await eventually(lambda: any("reloaded" in line for line in running.errors), SECONDS)
        assert await running.stop() == 0
    entries = [json.loads(line) for line in running.errors]
    assert all({"timestamp", "level", "logger", "event"} <= entry.keys() for entry in entries)
    by_event = {entry["event"]: entry for entry in entries}
    assert by_event["stopped"]["bot"] == "telegram/lost"
    assert by_event["reloaded"]["new"] == []
