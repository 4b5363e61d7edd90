"""Images and files that come in: judged by what they are, bounded, and never put outside the workspace."""

from __future__ import annotations

import asyncio
import base64
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridges import prompt as prompt_module
from bridges.inbound_files import LONGEST_NAME, discard, safe_name, store
from bridges.message import InboundAttachment
from bridges.prompt import AT_ONCE, IMAGE_BYTES, MESSAGE_BYTES, MOST, media_type
from commands.model import AttachmentKind, ChatKey, Outcome
from harness_client.types import Generation, SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import CHAT, Bench, PlainChannel, bench, eventually
from tests.fakes.harness import FakeHarness, say

WORDS = Words(Language.EN)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


class FetchingChannel(PlainChannel):
    """Can download what a person sent: ``files`` by handle."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.fetched: list[tuple[str, int]] = []
        self.hold: asyncio.Event | None = None
        self.fetching = 0
        self.most_at_once = 0

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        self.fetched.append((attachment.handle, limit))
        self.fetching += 1
        self.most_at_once = max(self.most_at_once, self.fetching)
        try:
            if self.hold is not None:
                await self.hold.wait()
            if attachment.handle not in self.files:
                raise ConnectionError("no such file")
            return self.files[attachment.handle]
        finally:
            self.fetching -= 1


@pytest.fixture
def channel() -> FetchingChannel:
    return FetchingChannel()


@pytest.fixture
async def desk(host: FakeHarness, tmp_path: Path, channel: FetchingChannel) -> AsyncIterator[Bench]:
    host.world.cwd = str(tmp_path / "code")
    Path(host.world.cwd).mkdir()
    if host.dialect.generation is Generation.LEGACY:
        host.world.image_models.add(host.dialect.model)
    async with bench(host, tmp_path, channel) as made:
        yield made


def attached(kind: AttachmentKind, handle: str, **more: object) -> InboundAttachment:
    return InboundAttachment(kind, handle, **more)  # type: ignore[arg-type]  # a table of keywords


def image(handle: str = "png", **more: object) -> InboundAttachment:
    return attached(AttachmentKind.IMAGE, handle, **more)


def file(handle: str = "plan", name: str = "plan.pdf", **more: object) -> InboundAttachment:
    return attached(AttachmentKind.FILE, handle, name=name, **more)


async def sent(desk: Bench, text: str, *attachments: InboundAttachment) -> str:
    before = len(desk.channel.sent)
    await desk.say(text, attachments=attachments)
    return (await desk.channel.until_sent(before + 1))[before]


def said(desk: Bench) -> list[object]:
    events = [event for session in desk.host.world.sessions.values() for event in session.log]
    data = [event["data"] for event in events if event["type"] == "user/message"]
    return [each["content"] for each in data if isinstance(each, dict) and each["source"]["kind"] == "user"]


def inbound(desk: Bench) -> list[Path]:
    return sorted(path for path in Path(desk.host.world.cwd).rglob("*") if path.is_file() and path.name[0] != ".")


async def test_an_image_goes_into_the_prompt(desk: Bench, channel: FetchingChannel) -> None:
    channel.files["png"] = PNG
    assert await sent(desk, "what is it?", image()) == "You said: what is it?"
    assert "image/png" in str(said(desk))
    assert channel.fetched == [("png", IMAGE_BYTES)]
    assert inbound(desk) == []
    assert "what is it?\n[image]" in await desk.ask("/history")


async def test_an_image_without_words_gets_some(desk: Bench, channel: FetchingChannel) -> None:
    channel.files["png"] = PNG
    assert await sent(desk, "", image()) == f"You said: {WORDS(Key.CHAT_LOOK)}"


async def test_a_file_goes_into_the_workspace_and_history_shows_the_words(
    desk: Bench, channel: FetchingChannel
) -> None:
    channel.files["plan"] = b"%PDF"
    desk.host.model.script("I have read it.")
    await sent(desk, "read this", file(name="../../etc/my plan.pdf"))
    (path,) = inbound(desk)
    assert path.read_bytes() == b"%PDF"
    assert path.name == "01-my plan.pdf"
    assert path.relative_to(desk.host.world.cwd).as_posix() in str(said(desk))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert (path.parent.parent / ".gitignore").read_text() == "*\n"
    history = await desk.ask("/history")
    assert "read this" in history
    assert "my plan" not in history


@pytest.mark.parametrize(
    ("words", "name", "title"),
    [
        ("read this\nplease", "plan.pdf", "read this"),
        ("", "../../etc/my plan.pdf", "my plan.pdf"),
        (" \u200b", "\u202etxt.exe", "_txt.exe"),
        ("x" * 200, "plan.pdf", "x" * 60),
    ],
)
async def test_a_session_begun_by_a_file_is_called_by_the_words_or_the_file(
    desk: Bench, channel: FetchingChannel, words: str, name: str, title: str
) -> None:
    channel.files["plan"] = b"%PDF"
    desk.host.model.title = ""
    await sent(desk, words, file(name=name))
    assert [session.title for session in desk.host.world.sessions.values()] == [title]


async def test_a_file_goes_where_the_bound_session_works(desk: Bench, channel: FetchingChannel, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    session = desk.host.session(cwd=str(elsewhere))
    await desk.state.chats.bind(CHAT, SessionId(session.id), expected=await desk.state.chats.get(CHAT))
    channel.files["plan"] = b"x"
    await sent(desk, "read", file())
    assert inbound(desk) == []
    assert [path.name for path in elsewhere.rglob("*.pdf")] == ["01-plan.pdf"]


@pytest.mark.parametrize(
    ("attachments", "key"),
    [
        ([image(size=IMAGE_BYTES + 1)], Key.CHAT_FILE_TOO_LARGE),
        ([file(size=MESSAGE_BYTES + 1)], Key.CHAT_FILE_TOO_LARGE),
        ([image(size=IMAGE_BYTES)] * 5, Key.CHAT_FILE_TOO_LARGE),
        ([image()] * (MOST + 1), Key.CHAT_TOO_MANY_FILES),
    ],
)
async def test_what_is_too_much_is_not_fetched(
    desk: Bench, channel: FetchingChannel, attachments: list[InboundAttachment], key: Key
) -> None:
    assert await sent(desk, "look", *attachments) == WORDS(key)
    assert channel.fetched == []
    assert desk.host.calls == []


@pytest.mark.parametrize("text", ["/history", "/new", "/stop", "/batch", "/steer now"])
async def test_a_command_fetches_nothing(desk: Bench, channel: FetchingChannel, text: str) -> None:
    assert await sent(desk, text, image()) == WORDS(Key.CHAT_TEXT_ONLY)
    assert channel.fetched == []


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b"BM not an image a host takes", Key.CHAT_IMAGE_KIND),
        (b"<svg>", Key.CHAT_IMAGE_KIND),
        (b"", Key.CHAT_IMAGE_KIND),
        (PNG + bytes(IMAGE_BYTES), Key.CHAT_FILE_TOO_LARGE),
    ],
)
async def test_an_image_is_what_its_bytes_say(desk: Bench, channel: FetchingChannel, data: bytes, key: Key) -> None:
    channel.files["png"] = data
    assert await sent(desk, "look", image(size=10)) == WORDS(key)
    assert desk.prompts == []
    await desk.channel.until(lambda: list(desk.outcomes.values()) == [Outcome.REFUSED])
    assert await sent(desk, "hello") == "You said: hello"


async def test_all_of_a_message_is_bounded_whatever_was_claimed(
    desk: Bench, channel: FetchingChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_module, "MESSAGE_BYTES", 100)
    channel.files |= {"one": bytes(60), "two": bytes(60)}
    assert await sent(desk, "read", file("one", "1"), file("two", "2")) == WORDS(Key.CHAT_FILE_TOO_LARGE)
    assert channel.fetched == [("one", 100), ("two", 40)]
    assert inbound(desk) == []


async def test_a_download_that_fails_is_told(desk: Bench) -> None:
    assert (await sent(desk, "look", image("gone"))).startswith("The image or file could not be fetched")
    assert desk.prompts == []


async def test_stop_during_a_download_takes_the_message_back(desk: Bench, channel: FetchingChannel) -> None:
    channel.hold = asyncio.Event()
    await desk.say("look", attachments=(image(),))
    await eventually(lambda: channel.fetching == 1)
    assert await desk.ask("/stop") == WORDS(Key.STOP_WITHDRAWN)
    assert (await desk.channel.until_sent(2))[1] == WORDS(Key.CHAT_WITHDRAWN)
    assert channel.fetching == 0
    assert desk.prompts == []


async def test_a_switch_during_a_download_leaves_no_file_behind(
    desk: Bench, channel: FetchingChannel, tmp_path: Path
) -> None:
    channel.files["plan"] = b"x"
    channel.hold = asyncio.Event()
    await desk.say("read", attachments=(file(),))
    await eventually(lambda: channel.fetching == 1)
    other = tmp_path / "other"
    other.mkdir()
    await desk.ask(f"/conv {other}")
    channel.hold.set()
    assert len(await desk.channel.until_sent(2)) == 2
    assert inbound(desk) == []
    assert [path.name for path in other.rglob("*.pdf")] == ["01-plan.pdf"]
    assert len(desk.prompts) == 1


async def test_few_messages_hold_their_files_in_memory_at_once(desk: Bench, channel: FetchingChannel) -> None:
    channel.files["png"] = PNG
    channel.hold = asyncio.Event()
    for number in range(AT_ONCE * 3):
        await desk.say("look", chat=ChatKey("test", "bot", str(number)), attachments=(image(),))
    await eventually(lambda: channel.fetching == AT_ONCE)
    channel.hold.set()
    await desk.channel.until_sent(AT_ONCE * 3)
    assert channel.most_at_once == AT_ONCE


async def test_a_model_that_sees_nothing_is_named_as_the_reason(desk: Bench, channel: FetchingChannel) -> None:
    channel.files["png"] = PNG
    error: dict[str, object] = {
        "code": "attachment-error",
        "message": "x",
        "details": {"reason": "MODEL_DOES_NOT_SUPPORT_IMAGES"},
    }
    desk.fail("prompt", error=error)
    assert (await sent(desk, "look", image())).startswith("The current model does not take this image")


async def test_a_workspace_that_is_not_here_takes_no_files(desk: Bench, channel: FetchingChannel) -> None:
    channel.files["plan"] = b"x"
    desk.host.world.cwd = "/nowhere/to/be/found"
    session = desk.host.session(cwd="/nowhere/to/be/found")
    await desk.state.chats.bind(CHAT, SessionId(session.id), expected=await desk.state.chats.get(CHAT))
    assert (await sent(desk, "read", file())).startswith("The file could not be saved")
    assert desk.prompts == []


async def test_a_message_with_a_file_waits_its_turn(desk: Bench, channel: FetchingChannel) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say("running", hold))
    await desk.say("go")
    await desk.host.until(lambda: any(session.running for session in desk.host.world.sessions.values()))
    channel.files["png"] = PNG
    await desk.say("next", attachments=(image(),))
    hold.set()
    assert await desk.channel.until_sent(2) == ["running", "You said: next"]


# -- where files go ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("plan.pdf", "plan.pdf"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("..", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("报告 (终稿).docx", "报告 (终稿).docx"),
        ("a\x00b\nc\u202egnp.exe", "a_b_c_gnp.exe"),
        ("x" * 300 + ".txt", "x" * (LONGEST_NAME - 4) + ".txt"),
        ("中" * 300 + ".txt", "中" * ((LONGEST_NAME - 4) // 3) + ".txt"),
        ("$(rm -rf ~);'\"`.sh", "__rm -rf _)____.sh".replace("__rm", "_(rm")),
    ],
)
def test_names_are_made_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe
    assert len(safe_name(name).encode()) <= LONGEST_NAME


@pytest.mark.parametrize("link", [".harness-im", ".harness-im/inbound"])
def test_a_link_leads_no_file_out_of_the_workspace(tmp_path: Path, link: str) -> None:
    workspace, outside = tmp_path / "code", tmp_path / "outside"
    for folder in (workspace, outside):
        folder.mkdir()
    (workspace / link).parent.mkdir(exist_ok=True)
    (workspace / link).symlink_to(outside)
    with pytest.raises(OSError, match=r"symbolic|directory"):
        store(str(workspace), "turn", [("x", b"x")])
    assert list(outside.iterdir()) == []


def test_files_are_written_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr("bridges.inbound_files._write", full)
    with pytest.raises(OSError, match="no space"):
        store(str(tmp_path), "turn", [("x", b"x")])
    assert list((tmp_path / ".harness-im" / "inbound").iterdir()) == []


def test_what_was_stored_can_be_discarded_and_again(tmp_path: Path) -> None:
    paths = store(str(tmp_path), "turn", [("a", b"1"), ("a", b"2")])
    assert [(tmp_path / path).read_bytes() for path in paths] == [b"1", b"2"]
    for _ in range(2):
        discard(str(tmp_path), "turn")
    assert not (tmp_path / ".harness-im" / "inbound" / "turn").exists()
    discard(str(tmp_path / "gone"), "turn")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"\x89PNG", None),
        (b"", None),
    ],
)
def test_an_image_is_told_by_its_first_bytes(data: bytes, kind: str | None) -> None:
    assert media_type(data) == kind
