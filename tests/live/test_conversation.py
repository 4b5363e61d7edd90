"""A whole conversation through the bot on the real host: stop, steer, questions, approvals, batches, files, crashes."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zstandard

from bridges.demo_model import DemoModel, Step, Tool
from bridges.message import InboundAttachment
from bridges.state import State
from commands.model import AttachmentKind, ChatKey
from harness_client.address import Address
from harness_client.client import HarnessClient
from harness_client.embedded import EmbeddedHost, EmbeddedSpec
from harness_client.errors import HarnessError
from harness_client.types import Generation, SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import CHAT, Desk, EditingChannel, PlainChannel, seated
from tests.bridges.test_attachments import FetchingChannel
from tests.live.conftest import live_fixture
from tests.live.talk import BOUND, until
from tests.live.test_lifecycle import child_of, logs

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = Words(Language.EN)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
QUESTIONS = [
    {"id": "colour", "question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]},
    {"id": "words", "question": "Any words?"},
]


class LiveDesk(Desk):
    """A desk before a host that takes its time."""

    async def texts(self, count: int) -> list[str]:
        await self.channel.until(lambda: len(self.channel.sent) >= count, BOUND)
        return self.channel.texts

    async def until_said(self, text: str) -> None:
        await self.channel.until(lambda: any(text in said for said in self.channel.texts), BOUND)

    async def ask(self, text: str) -> str:
        before = len(self.channel.sent)
        await self.say(text)
        return (await self.texts(before + 1))[before]

    async def log(self) -> str:
        """Return the raw tail of the chat's session."""
        session = (await self.state.chats.get(CHAT)).session
        assert session is not None
        return "\n".join((await self.harness.page(session)).sources.values())

    async def until_logged(self, text: str) -> None:
        async def logged() -> bool:
            binding = await self.state.chats.get(CHAT)
            try:
                return binding.session is not None and text in await self.log()
            except HarnessError:
                return False

        await until(logged)

    async def until_shown(self) -> None:
        """Wait until what is asked counts as shown."""
        interactions = self.intake.conversations.interactions

        async def shown() -> bool:
            return any(each._asked and each._asked[0].shown for each in interactions._by_chat.get(CHAT, ()))

        await until(shown)


@asynccontextmanager
async def opened(
    address: Address, workspace: Path, folder: Path, channel: PlainChannel | None = None
) -> AsyncIterator[LiveDesk]:
    def make(harness: HarnessClient, state: State, tasks: asyncio.TaskGroup) -> LiveDesk:
        return LiveDesk(harness, state, channel or PlainChannel(), tasks, str(workspace))

    async with seated(make, address, folder) as made:
        yield made


@live_fixture()
async def desk(client: HarnessClient, model: DemoModel, workspace: Path, tmp_path: Path) -> AsyncIterator[LiveDesk]:
    del model  # emptied for this test
    async with opened(client.address, workspace, tmp_path) as made:
        yield made


async def allow_tools(desk: LiveDesk, preset: str = "danger-full-access") -> None:
    await desk.ask("hello")
    session = (await desk.state.chats.get(CHAT)).session
    assert session is not None
    await desk.harness.run_command(session, f"/permission {preset}")


def bash(command: str, **more: object) -> Tool:
    return Tool("bash", {"command": command, "description": "a test", **more})


def on_disk(spec: EmbeddedSpec, session: SessionId) -> list[str]:
    """Return the lines of a session's log that its host has flushed."""
    for name, data in logs(spec, session).items():
        if name.endswith(".zstd"):
            with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
                return reader.read().decode(errors="replace").splitlines()
    return []


async def test_an_answer_streams_into_one_message(
    client: HarnessClient, model: DemoModel, workspace: Path, tmp_path: Path
) -> None:
    channel = EditingChannel()
    async with opened(client.address, workspace, tmp_path, channel) as desk:
        model.queue.append(Step(text="one two three four five six", piece=4, delay=0.03))
        await desk.say("stream")
        await desk.channel.until(lambda: channel.texts == ["one two three four five six"], BOUND)
        assert len(channel.edits) > 1


async def test_stop_in_the_text(client: HarnessClient, model: DemoModel, workspace: Path, tmp_path: Path) -> None:
    async with opened(client.address, workspace, tmp_path, EditingChannel()) as desk:
        model.queue.append(Step(text="half an answer " * 50, delay=0.02))
        await desk.say("long")
        await desk.until_said("half an answer")  # before its first word, the host would keep the prompt only
        await desk.say("/stop")
        await desk.channel.until(lambda: len(desk.outcomes) == 2, BOUND)
        assert WORDS(Key.STOP_DONE) in desk.channel.texts
        assert any(text.endswith(WORDS(Key.CHAT_ABORTED)) for text in desk.channel.texts)
        await desk.say("again")
        await desk.until_said("You said: again")


async def test_stop_in_a_tool(desk: LiveDesk, model: DemoModel) -> None:
    await allow_tools(desk)
    model.queue.extend([Step(text="I wait.", tools=(bash("sleep 60"),)), Step(text="never")])
    await desk.say("wait")
    await desk.until_logged("sleep 60")
    await desk.say("/stop")
    await desk.until_said(WORDS(Key.STOP_DONE))
    await desk.until_said(f"I wait.\n\n{WORDS(Key.CHAT_ABORTED)}")
    assert "never" not in str(desk.channel.texts)
    model.queue.clear()
    assert "You said: again" in await desk.ask("again")


async def test_what_was_steered_joins_the_task(desk: LiveDesk, model: DemoModel, workspace: Path) -> None:
    await allow_tools(desk)
    flag = workspace / "go-on"
    model.queue.extend(
        [Step(text="One.", tools=(bash(f"until [ -e {flag} ]; do sleep 0.05; done"),)), Step(text="Two.")]
    )
    await desk.say("work")
    await desk.until_logged("until [")
    assert await desk.ask("/steer and be brief") == WORDS(Key.STEER_DONE)
    flag.touch()
    await desk.until_said("One.\n\nTwo.")
    assert "and be brief" in await desk.log()


async def test_stop_leaves_nothing_parked_that_runs_later(desk: LiveDesk, model: DemoModel) -> None:
    await allow_tools(desk)
    model.queue.append(Step(tools=(bash("sleep 60"),)))
    await desk.say("wait")
    await desk.until_logged("sleep 60")
    assert await desk.ask("/steer never mind") == WORDS(Key.STEER_DONE)
    await desk.say("/stop")
    await desk.channel.until(lambda: len(desk.outcomes) == 4, BOUND)
    assert WORDS(Key.STOP_DONE) in desk.channel.texts
    assert "You said: next" in await desk.ask("next")
    told = [line for line in (await desk.log()).splitlines() if '"user/message"' in line]
    assert sum('"text":"next"' in line for line in told) == 1
    assert not any("never mind" in line for line in told)


async def test_messages_wait_their_turn(desk: LiveDesk, model: DemoModel) -> None:
    model.queue.append(Step(text="first answer " * 10, delay=0.01))
    for text in ("first", "second", "third"):
        await desk.say(text)
    texts = await desk.texts(3)
    assert texts[0] == ("first answer " * 10).strip() or texts[0].startswith("first answer")
    assert ["You said: second" in texts[1], "You said: third" in texts[2]] == [True, True]


async def test_a_message_parked_by_another_chats_stop_is_run(desk: LiveDesk, model: DemoModel) -> None:
    await allow_tools(desk)
    other = ChatKey(CHAT.channel, CHAT.bot, "2")
    binding = await desk.state.chats.get(CHAT)
    assert binding.session is not None
    await desk.state.chats.bind(other, binding.session, expected=await desk.state.chats.get(other))
    model.queue.append(Step(tools=(bash("sleep 60"),)))
    await desk.say("wait")
    await desk.until_logged("sleep 60")
    await desk.say("second", chat=other)

    async def queued() -> bool:
        assert binding.session is not None
        return bool((await desk.harness.projections(binding.session)).queue)

    await until(queued)
    await desk.say("/stop")
    await desk.until_said(WORDS(Key.STOP_DONE))
    await desk.until_said("You said: second")
    assert (await desk.log()).count('"text":"second"') >= 1


async def test_questions_are_answered_in_the_chat(desk: LiveDesk, model: DemoModel) -> None:
    model.queue.extend([Step(tools=(Tool("ask_user_question", {"questions": QUESTIONS}),)), Step(text="Thanks.")])
    assert "1. Red\n2. Blue" in await desk.ask("ask me")
    await desk.until_shown()
    assert "(2/2)" in await desk.ask("2")
    await desk.until_shown()
    await desk.say("just words")
    await desk.until_said(WORDS(Key.QUESTION_DONE, answers="Blue; just words"))
    await desk.until_said("Thanks.")
    log = await desk.log()
    assert "Blue" in log
    assert "just words" in log


async def test_stop_closes_a_question(desk: LiveDesk, model: DemoModel) -> None:
    model.queue.append(Step(tools=(Tool("ask_user_question", {"questions": QUESTIONS}),)))
    await desk.ask("ask me")
    assert WORDS(Key.STATUS_ASKED) in await desk.ask("/status")
    await desk.say("/stop")
    await desk.channel.until(lambda: len(desk.outcomes) == 3, BOUND)
    assert WORDS(Key.STOP_DONE) in desk.channel.texts
    assert "You said: Blue" in await desk.ask("Blue")


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap, the host's sandbox, is not installed")
@pytest.mark.parametrize("word", ["yes", "no"])
async def test_an_approval_is_given_in_the_chat(desk: LiveDesk, model: DemoModel, workspace: Path, word: str) -> None:
    await allow_tools(desk, "read-only")
    target = workspace / f"approved-{word}"
    wider = {"sandbox_permissions": "workspace-write", "justification": "It must be written."}
    command = f"echo x > {target}"
    model.queue.extend([Step(tools=(bash(command),)), Step(tools=(bash(command, **wider),)), Step(text="Tried.")])
    text = await desk.ask("write")
    assert command in text
    assert "It must be written." in text
    await desk.until_shown()
    assert await desk.ask("maybe") == WORDS(Key.APPROVAL_HINT)
    assert not target.exists()
    await desk.say(word)
    await desk.until_said(WORDS(Key.APPROVAL_ALLOWED if word == "yes" else Key.APPROVAL_REJECTED))
    await desk.until_said("Tried.")
    assert target.exists() is (word == "yes")


async def test_a_batch_is_one_prompt_and_history_shows_the_words(desk: LiveDesk, model: DemoModel) -> None:
    await desk.ask("/batch")
    for text in ("one", "two"):
        await desk.say(text)
    model.queue.append(Step(text="Both read."))
    await desk.say("/send")
    await desk.until_said("Both read.")
    assert (await desk.log()).count("[message 2 of 2]") >= 1
    session = (await desk.state.chats.get(CHAT)).session
    assert [row.title for row in await desk.harness.sessions() if row.id == session] == ["one"]
    history = await desk.ask("/history")
    assert "one\ntwo" in history
    assert "[message" not in history


async def test_images_and_files_reach_the_session(
    client: HarnessClient, model: DemoModel, workspace: Path, tmp_path: Path
) -> None:
    channel = FetchingChannel()
    channel.files |= {"image": PIXEL, "file": b"contents"}
    async with opened(client.address, workspace, tmp_path, channel) as desk:
        model.queue.append(Step(text="A pixel and a file."))
        attachments = (
            InboundAttachment(AttachmentKind.IMAGE, "image", "pixel.png"),
            InboundAttachment(AttachmentKind.FILE, "file", "notes.txt"),
        )
        await desk.say("what are these?", attachments=attachments)
        await desk.until_said("A pixel and a file.")
        log = await desk.log()
        assert "image/png" in log
        (path,) = workspace.glob(".harness-im/inbound/*/01-notes.txt")
        assert path.read_bytes() == b"contents"
        assert str(path.relative_to(workspace)) in log
        history = await desk.ask("/history")
        assert "what are these?\n[image]" in history
        assert "notes.txt" not in history


async def test_a_restart_in_the_middle_of_a_turn_delivers_the_answer_once(
    client: HarnessClient, model: DemoModel, workspace: Path, tmp_path: Path
) -> None:
    model.queue.append(Step(text="a slow answer", piece=1, delay=0.1))
    async with opened(client.address, workspace, tmp_path) as desk:
        await desk.say("slow")
        await desk.until_logged("slow")
    async with opened(client.address, workspace, tmp_path) as desk:
        await desk.intake.inherit()
        desk.intake.connected()
        await desk.until_said(WORDS(Key.CHAT_LATE, text="a slow answer"))
        await until(desk.nothing_outstanding)
    async with opened(client.address, workspace, tmp_path) as desk:
        await desk.intake.inherit()
        desk.intake.connected()
        await desk.say("/history", event="later")
        assert "a slow answer" in (await desk.texts(1))[0]
        assert len(desk.channel.texts) == 1, "nothing was delivered again"
        assert sum('"user/message"' in line and '"slow"' in line for line in (await desk.log()).splitlines()) == 1


async def test_a_host_killed_in_the_middle_of_a_turn_is_told(
    new_spec: Callable[[], EmbeddedSpec], model: DemoModel, tmp_path: Path, generation: Generation
) -> None:
    if generation is Generation.LEGACY:
        pytest.skip("only the current host is ever embedded; on the oldest the notice may take over a minute")
    spec = new_spec()
    async with EmbeddedHost(spec) as host, opened(await host.address(), spec.workspace, tmp_path) as desk:
        host.on_restart(desk.harness.move)
        group = host.pid
        assert group is not None
        await desk.ask("before the crash")
        model.queue.append(Step(text="I was about to", piece=100, end="hang"))
        await desk.say("never answered")
        await desk.until_logged("never answered")
        session = (await desk.state.chats.get(CHAT)).session
        assert session is not None

        async def recorded() -> bool:
            return any('"user/message"' in line and "never answered" in line for line in on_disk(spec, session))

        # Killed before this, the host may have lost the message, and the bot could only say that it is not sure.
        await until(recorded)
        os.kill(child_of(group), signal.SIGKILL)
        await desk.channel.until(lambda: len(desk.channel.texts) == 2, 2 * BOUND)
        assert desk.channel.texts[1].endswith(WORDS(Key.CHAT_INTERRUPTED))
        model.queue.clear()
        model.queue.append(Step(text="I am back."))
        assert await desk.ask("again") == "I am back."
