"""The terminal's chat as people and scripts use it: the real program, a fake host on a real socket."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from commands.budget import utf16_length
from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.bridges.chat_process import SECONDS, environment, on_screen, piped, run
from tests.fakes.harness import Failure, FakeHarness, How, Step, say


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[FakeHarness]:
    """A host for what has nothing to do with its generation."""
    async with FakeHarness() as host:
        yield host


ZH, EN = Words(Language.ZH), Words(Language.EN)
ENGLISH = ("--language", "en")


def prompts(host: FakeHarness) -> int:
    return sum(call.name in ("session.prompt", "session/prompt") for call in host.calls)


# -- one message -------------------------------------------------------------------------------------------------------


async def test_once_prints_the_reply_and_the_first_line_names_host_and_session(
    host: FakeHarness, tmp_path: Path
) -> None:
    code, out, err = await run(tmp_path, "--harness", host.url, "--once", "/history")
    assert (code, out) == (0, ZH(Key.HISTORY_UNBOUND) + "\n")
    first = err.splitlines()[0]
    assert host.base in first
    assert host.dialect.generation in first
    assert ZH(Key.TERMINAL_UNBOUND) in first
    assert host.login.token not in err + out
    assert host.writes == []


async def test_a_later_start_finds_the_same_chat(host: FakeHarness, tmp_path: Path) -> None:
    await run(tmp_path, "--harness", host.url, "--once", "你好 👋")
    code, out, err = await run(tmp_path, "--harness", host.url, "--once", "/history 5", "--json", *ENGLISH)
    assert code == 0
    reply = json.loads(out)
    assert list(reply) == ["segments"]
    (segment,) = reply["segments"]
    assert segment["length"] == utf16_length(segment["text"])
    assert "你好 👋" in segment["text"]
    (session,) = host.world.sessions
    assert session in err.splitlines()[0]


async def test_session_binds_and_an_unknown_one_is_told_by_the_first_message(host: FakeHarness, tmp_path: Path) -> None:
    session = host.session("session-known", cwd="/elsewhere")
    code, out, _ = await run(tmp_path, "--harness", host.url, "--session", session.id, "--once", "hi", *ENGLISH)
    assert (code, out) == (0, "You said: hi\n")
    for text, reply in [("/history", Key.HISTORY_GONE), ("hi", Key.CHAT_SESSION_GONE)]:
        code, out, _ = await run(tmp_path, "--harness", host.url, "--session", "gone", "--once", text, *ENGLISH)
        assert (code, out) == (0, EN(reply) + "\n")
    assert list(host.world.sessions) == ["session-known"]


async def test_a_failure_that_was_told_is_exit_code_1(one: FakeHarness, tmp_path: Path) -> None:
    session = one.session("session-known").id
    one.fail("session/page", status=500, times=1)
    code, out, _ = await run(tmp_path, "--harness", one.url, "--session", session, "--once", "/history", *ENGLISH)
    assert code == 1
    assert "cannot be read right now" in out
    one.model.script(Step(["half"], failure=Failure()))
    code, out, _ = await run(tmp_path, "--harness", one.url, "--once", "hi", *ENGLISH)
    assert code == 1
    assert EN(Key.CHAT_TURN_FAILED) in out


# -- a script over pipes -----------------------------------------------------------------------------------------------


async def test_every_line_is_a_message_and_none_is_held_back_by_a_turn(host: FakeHarness, tmp_path: Path) -> None:
    hold = asyncio.Event()
    host.model.script(say("slow", hold, " answer"))
    async with piped(tmp_path, "--harness", host.url, *ENGLISH) as chat:
        chat.say("work")
        await host.until(lambda: any(session.partial for session in host.world.sessions.values()))
        assert "work" in await chat.ask("/history")
        assert "running for" in await chat.ask("/status")
        chat.say("next")
        hold.set()
        assert await chat.reply() == "slow answer"
        assert await chat.reply() == "You said: next"
        assert await chat.end() == (0, "")


async def test_what_is_outstanding_at_the_end_of_the_input_is_still_printed(one: FakeHarness, tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(5)).encode() + b"last without end"
    code, out, _ = await run(tmp_path, "--harness", one.url, *ENGLISH, stdin=lines)
    said = [json.loads(line)["segments"][0]["text"] for line in out.splitlines()]
    assert code == 0
    assert said == [*(f"You said: line {number}" for number in range(5)), "You said: last without end"]


async def test_commands_in_order_on_one_process(host: FakeHarness, tmp_path: Path) -> None:
    old = host.session("session-old")
    async with piped(tmp_path, "--harness", host.url, *ENGLISH) as chat:
        assert "/history" in await chat.ask("/help")
        assert await chat.ask("/session 1") == EN(Key.LIST_NONE, number="1", command="/sessions")
        assert "1. " in await chat.ask("/sessions")
        assert EN(Key.SESSION_TRY_HISTORY) in await chat.ask("/session 1")
        assert await chat.ask("/session 2") == EN(Key.LIST_NO_NUMBER, number="2", command="/sessions")
        assert await chat.ask("/session nowhere") == EN(Key.SESSION_NOT_FOUND)
        assert await chat.ask("hello") == "You said: hello"
        assert list(host.world.sessions) == [old.id]
        assert await chat.ask("/new") == EN(Key.NEW_DONE)
        assert await chat.ask("/history") == EN(Key.HISTORY_UNBOUND)
        assert await chat.ask("fresh") == "You said: fresh"
        assert len(host.world.sessions) == 2


async def test_a_stray_byte_and_an_empty_line_are_messages_too(one: FakeHarness, tmp_path: Path) -> None:
    code, out, _ = await run(tmp_path, "--harness", one.url, *ENGLISH, stdin=b"\n\xff\xfe\r\n")
    first, second = (json.loads(line)["segments"][0]["text"] for line in out.splitlines())
    assert code == 0
    assert first == EN(Key.CHAT_EMPTY)
    assert second == "You said: ��"


# -- killed ------------------------------------------------------------------------------------------------------------


async def test_killed_in_the_middle_of_a_turn_nothing_runs_twice_and_the_answer_follows(
    host: FakeHarness, tmp_path: Path
) -> None:
    hold = asyncio.Event()
    host.model.script(say("slow", hold, " answer"))
    async with piped(tmp_path, "--harness", host.url, *ENGLISH) as chat:
        chat.say("work")
        await host.until(lambda: any(session.partial for session in host.world.sessions.values()))
        await chat.kill()
    async with piped(tmp_path, "--harness", host.url, *ENGLISH) as chat:
        assert "work" in await chat.ask("/history")
        hold.set()
        assert await chat.reply() == EN(Key.CHAT_LATE, text="slow answer")
        assert await chat.end() == (0, "")
    assert prompts(host) == 1
    async with piped(tmp_path, "--harness", host.url, *ENGLISH) as chat:
        assert await chat.end() == (0, "")


@pytest.mark.parametrize("call", ["create", "prompt"])
async def test_killed_while_a_call_is_on_its_way(host: FakeHarness, tmp_path: Path, call: str) -> None:
    never = asyncio.Event()
    for name in (f"session.{call}", f"session/{call}"):
        host.fail(name, delay=never, times=1)
    async with piped(tmp_path, "--harness", host.url, *ENGLISH) as chat:
        chat.say("work")
        await eventually(lambda: any(made.name.endswith(call) for made in host.calls))
        await chat.kill()
    never.set()
    async with piped(tmp_path, "--harness", host.url, *ENGLISH) as chat:
        if call == "create":
            assert await chat.reply() == EN(Key.CHAT_SEND_AGAIN)
        assert await chat.ask("again") == "You said: again"
        assert await chat.end() == (0, "")
    (session,) = host.world.sessions.values()
    asked = [event for event in session.log if event["type"] == "user/message" and "work" in json.dumps(event)]
    assert len(asked) <= 1
    assert prompts(host) == (1 if call == "create" else 2)


async def test_killed_at_any_moment_every_message_runs_at_most_once_and_the_binding_stays(
    host: FakeHarness, tmp_path: Path
) -> None:
    for number in range(6):
        async with piped(tmp_path, "--harness", host.url, *ENGLISH) as chat:
            await chat.ask("/help")
            chat.say(f"message {number}.")
            await asyncio.sleep(random.random() * 0.06)  # any moment of the few that a turn takes
            await chat.kill()
    await host.settle()
    async with piped(tmp_path, "--harness", host.url, *ENGLISH) as chat:
        while (reply := await chat.ask("last")) != "You said: last":
            assert reply in {EN(Key.CHAT_SEND_AGAIN), EN(Key.CHAT_CUT_OFF)} or "An earlier task is done" in reply
    (session,) = host.world.sessions.values()
    asked = [json.dumps(event) for event in session.log if event["type"] == "user/message"]
    assert all(sum(f"message {number}." in text for text in asked) <= 1 for number in range(6))


# -- what is wrong at the start ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--harness", "nonsense"), "--harness"),
        (("--harness", "http://127.0.0.1:1/some/path"), "--harness"),
        (("--harness", "http://127.0.0.1:1", "--demo-model"), EN(Key.START_TWO_HOSTS)),
        (("--harness", "http://127.0.0.1:1", "--session", "a b"), EN(Key.START_BAD_SESSION)),
        (("--language", "fr"), "fr"),
        (("--unknown",), "--unknown"),
        (("--config", "/nowhere.toml"), "/nowhere.toml"),
    ],
)
async def test_wrong_options_are_exit_code_2(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    languages = () if "fr" in options else ENGLISH
    code, out, err = await run(tmp_path, *options, *languages, "--once", "hi")
    assert code == 2
    assert says in err
    assert out == ""


async def test_an_unknown_key_is_named_and_nothing_connects(one: FakeHarness, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[harness]\nurl = "{one.url}"\nurll = "SECRET"\n')
    code, _, err = await run(tmp_path, "--config", str(config), "--once", "hi", *ENGLISH)
    assert code == 2
    assert "harness.urll" in err
    assert "SECRET" not in err
    assert one.calls == []


async def test_the_language_of_the_configuration_and_the_word_above_it(one: FakeHarness, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'language = "en"\n[harness]\nurl = "{one.url}"\n')
    _, out, _ = await run(tmp_path, "--config", str(config), "--once", "/new x")
    assert out == EN(Key.NEW_USAGE) + "\n"
    _, out, _ = await run(tmp_path, "--config", str(config), "--once", "/new x", "--language", "zh")
    assert out == ZH(Key.NEW_USAGE) + "\n"


async def test_a_host_that_is_away_is_exit_code_1_with_the_way_out(host: FakeHarness, tmp_path: Path) -> None:
    await host.stop()
    code, out, err = await run(tmp_path, "--harness", host.url, "--once", "hi", *ENGLISH)
    assert (code, out) == (1, "")
    assert EN(Key.START_UNREACHABLE, address=host.base) in err
    assert host.login.token not in err


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"status": 401}, Key.START_UNAUTHORIZED),
        ({"status": 403}, Key.START_FORBIDDEN),
        ({"status": 404}, Key.START_WRONG_HOST),
        ({"status": 200, "body": b"<html>", "content_type": "text/html"}, Key.START_WRONG_HOST),
    ],
)
async def test_a_host_that_will_not_have_us(one: FakeHarness, tmp_path: Path, fault: How, says: Key) -> None:
    one.fail("*", **fault)
    code, out, err = await run(tmp_path, "--harness", one.url, "--once", "hi", *ENGLISH)
    assert (code, out) == (1, "")
    assert EN(says, address=one.base) in err


async def test_what_a_host_answered_wrongly_is_named(one: FakeHarness, tmp_path: Path) -> None:
    one.fail("login", status=500)
    code, out, err = await run(tmp_path, "--harness", one.url, "--once", "hi", *ENGLISH)
    assert (code, out) == (1, "")
    assert EN(Key.START_HOST_FAILED, address=one.base, reason="login: HTTP 500") in err


async def test_an_address_without_its_token(one: FakeHarness, tmp_path: Path) -> None:
    code, out, err = await run(tmp_path, "--harness", one.base, "--once", "hi", *ENGLISH)
    assert (code, out) == (1, "")
    assert EN(Key.START_UNAUTHORIZED, address=one.base) in err


async def test_a_broken_state_file_is_kept_aside_and_the_chat_goes_on(one: FakeHarness, tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    config = tmp_path / "config.toml"
    config.write_text(f'language = "en"\n[harness]\nurl = "{one.url}"\n[state]\npath = "{state}"\n')
    await run(tmp_path, "--config", str(config), "--once", "hi")
    whole = state.read_bytes()
    state.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
    code, out, err = await run(tmp_path, "--config", str(config), "--once", "/history")
    assert (code, out) == (0, EN(Key.HISTORY_UNBOUND) + "\n")
    kept = [path for path in tmp_path.glob("state.db*") if b"\xff" * 100 in path.read_bytes()]
    assert [str(path) in err for path in kept] == [True]


async def test_a_full_disk_is_told_and_nothing_is_lost(one: FakeHarness, tmp_path: Path) -> None:
    await run(tmp_path, "--harness", one.url, "--once", "hi")
    code, out, err = await run(tmp_path, "--harness", one.url, "--once", "lost?", *ENGLISH, after="ulimit -f 8")
    assert (code, out) == (1, "")
    assert EN(Key.STATE_FULL, path="").split(":")[0] in err
    code, out, _ = await run(tmp_path, "--harness", one.url, "--once", "/history", *ENGLISH)
    assert code == 0
    assert "You said: hi" in out
    assert prompts(one) == 1


async def test_two_programs_do_not_share_a_state(one: FakeHarness, tmp_path: Path) -> None:
    async with piped(tmp_path, "--harness", one.url) as chat:
        await chat.ask("/help")
        code, out, err = await run(tmp_path, "--harness", one.url, "--once", "hi", *ENGLISH)
    assert (code, out) == (1, "")
    assert "state" in err


# -- a person at a screen ----------------------------------------------------------------------------------------------


async def test_the_prompt_stays_usable_while_an_answer_grows(one: FakeHarness, tmp_path: Path) -> None:
    hold = asyncio.Event()
    one.model.script(say("first line\nsecond", hold, " line\n"))
    async with on_screen(tmp_path, "--harness", one.url, *ENGLISH) as screen:
        await screen.until(EN(Key.TERMINAL_HINT))
        await screen.until("› ")
        screen.type("你好\r")
        await screen.until("● first line")
        await screen.until("second")
        screen.type("/history\r")
        await screen.until(EN(Key.HISTORY_FOOTER))
        hold.set()
        await screen.until("second line")
    assert prompts(one) == 1


async def test_text_of_the_host_cannot_act_on_the_screen(one: FakeHarness, tmp_path: Path) -> None:
    one.model.script(say("\x1b]0;title\x07\x1b[2Jclean\u202e\x9b31m text"))
    async with on_screen(tmp_path, "--harness", one.url, *ENGLISH) as screen:
        await screen.until("› ")
        screen.type("hi\r")
        shown = await screen.until("clean text")
    for sequence in ("\x1b]0;", "\x1b[2J", "\u202e", "\x9b"):
        assert sequence not in shown


@pytest.mark.parametrize("way", ["\x03", "\x04", signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_leaving_ends_everything_within_a_second(
    one: FakeHarness, tmp_path: Path, way: str | signal.Signals
) -> None:
    one.model.script(say("part", asyncio.Event()))
    async with on_screen(tmp_path, "--harness", one.url, *ENGLISH) as screen:
        await screen.until("› ")
        screen.type("hi\r")
        await screen.until("part")
        began = time.monotonic()
        if isinstance(way, str):
            screen.type(way)
        else:
            screen.signal(way)
        async with asyncio.timeout(10):
            code = await screen.child.wait()
        assert time.monotonic() - began < 5  # one second is the aim; the machine may have other work
    assert code == 0
    assert "Traceback" not in screen.shown


async def test_sigterm_ends_a_chat_that_a_script_started_in_the_background(one: FakeHarness, tmp_path: Path) -> None:
    async with piped(tmp_path, "--harness", one.url, after='trap "" INT') as chat:
        await chat.ask("/help")
        chat.child.terminate()
        async with asyncio.timeout(SECONDS):
            assert await chat.child.wait() == 130


def test_help_needs_no_configuration_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from bridges.cli import main; main(['--help'], standalone_mode=False); print(sorted(sys.modules))"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment(tmp_path)
    )
    for heavy in ("aiohttp", "prompt_toolkit", "msgspec", "structlog", "sqlite3", "asyncio"):
        assert f"'{heavy}'" not in done.stdout


def test_a_chat_does_without_rich(tmp_path: Path) -> None:
    """It is there for tables only, and structlog would load it."""
    code = (
        "import sys; from bridges.cli import main\n"
        "try: main(['chat', '--harness', 'nonsense'])\n"
        "except SystemExit: print(sorted(sys.modules))"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment(tmp_path)
    )
    assert "'structlog'" in done.stdout
    assert "'rich'" not in done.stdout
