"""``/history`` over a scripted host: every page goes through the real parser, window and transcript."""

from __future__ import annotations

import pytest

from commands.history import label
from commands.model import AttachmentKind, Binding, ChatKind, CommandResult, Outcome
from harness_client.errors import (
    Code,
    Forbidden,
    HarnessError,
    Malformed,
    Refused,
    SessionBusy,
    SessionNotFound,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unreachable,
    Unsupported,
    WrongHost,
)
from harness_client.streams import Page
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.commands.history_cases import BROKEN, CASES, DIALOGUE, HARMLESS, RUNNING, Case, one
from tests.commands.reading import bodies, check_form
from tests.commands.rig import SECRET, SESSION, Rig, ScriptedHost
from tests.fakes.clock import FakeClock
from tests.wire_events import answer, assistant, dialogue, end, other, page_body, start, user

ZH = Words(Language.ZH)


def reply(result: CommandResult) -> str:
    return "".join(result.segments)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_what_is_shown(case: Case) -> None:
    host = ScriptedHost.of(*case.pages)
    result = await Rig(host).ask(case.typed)
    check_form(result)
    assert [read.before for read in host.reads] == case.cursors
    assert all(read.limit == 50 for read in host.reads)
    assert SECRET not in reply(result)
    if isinstance(case.shown, Key):
        assert reply(result) == ZH(case.shown)
    else:
        assert bodies(reply(result)) == case.shown


@pytest.mark.parametrize("name", BROKEN)
async def test_broken_pages_end_in_a_safe_phrase(name: str) -> None:
    rig = Rig(ScriptedHost.of(*BROKEN[name]))
    result = await rig.ask("/history 5")
    assert result.segments == (ZH(Key.HISTORY_UNAVAILABLE, reference="H-000001"),)
    assert (result.outcome, result.reference) == (Outcome.FAILED, "H-000001")
    ((error, actor, session),) = rig.references.recorded
    assert isinstance(error, Malformed)
    assert SECRET not in str(error)
    assert (actor, session) == ("alice", SESSION)


@pytest.mark.parametrize("name", HARMLESS)
async def test_damage_that_concerns_nobody_is_no_failure(name: str) -> None:
    result = await Rig(ScriptedHost.of(*HARMLESS[name])).ask("/history")
    assert result.outcome is Outcome.OK
    assert bodies(reply(result))[-1] in {"u1", "a1"}
    assert SECRET not in reply(result)


SHAPES: list[object] = [
    None,
    {},
    [],
    "text",
    {"hasMore": False},
    {"events": []},
    {"events": [], "hasMore": 1},
    {"events": {}, "hasMore": False},
    {"events": [None], "hasMore": False},
    {"events": [{"event": None}], "hasMore": False},
]


@pytest.mark.parametrize("value", SHAPES)
async def test_a_page_of_another_shape(value: object) -> None:
    result = await Rig(ScriptedHost([answer(value)])).ask("/history")
    assert reply(result) == ZH(Key.HISTORY_UNAVAILABLE, reference="H-000001")


SAMPLE = """\
会话历史｜会话 hist42-and-t｜最近 3 条

1. 助手
上一次已经完成登录接口，下一步是补充测试。

2. 用户
先补充登录失败场景的测试。

3. 助手
已补充三个失败场景，测试全部通过。

以上为历史记录，不是本次新回复。"""


async def test_the_reply_is_laid_out_as_agreed() -> None:
    events = [
        assistant(1, 1, "上一次已经完成登录接口，下一步是补充测试。"),
        end(2, 1),
        user(3, "先补充登录失败场景的测试。"),
        assistant(4, 2, "已补充三个失败场景，测试全部通过。"),
        end(5, 2),
    ]
    assert await Rig(ScriptedHost.of((events, False))).ask("/history") == CommandResult((SAMPLE,))


async def test_english_has_the_same_layout_and_leaves_text_alone() -> None:
    host = ScriptedHost.of(*one(user(1, "已保存 Saved user text.")))
    assert reply(await Rig(host, language=Language.EN).ask("/history")) == (
        "History | Session hist42-and-t | Latest 1\n\n"
        "1. User\n已保存 Saved user text.\n\n"
        "This session has only 1 to preview\nThis is history, not a new reply."
    )


@pytest.mark.parametrize("kind", [ChatKind.GROUP])
@pytest.mark.parametrize("typed", ["/history", "/history 0", "/history。"])
async def test_in_a_group_the_notice_wins_and_nothing_is_read(kind: ChatKind, typed: str) -> None:
    host = ScriptedHost([])
    result = await Rig(host).ask(typed, kind=kind, attachments=frozenset({AttachmentKind.IMAGE}))
    assert reply(result) == "请在与机器人的私聊中使用 /history"
    assert host.reads == []


@pytest.mark.parametrize("attachment", AttachmentKind)
async def test_a_message_with_an_attachment_is_refused(attachment: AttachmentKind) -> None:
    host = ScriptedHost([])
    rig = Rig(host)
    assert reply(await rig.ask("/history", attachments=frozenset({attachment}))) == ZH(Key.CHAT_TEXT_ONLY)
    assert reply(await rig.ask("/history 0", attachments=frozenset({attachment}))) == ZH(Key.HISTORY_USAGE)
    assert host.reads == []


async def test_without_a_session_nothing_is_read_or_made() -> None:
    host = ScriptedHost([])
    result = await Rig(host, session=None).ask("/history")
    assert (reply(result), result.outcome, host.reads) == (ZH(Key.HISTORY_UNBOUND), Outcome.REFUSED, [])


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (SessionNotFound(SECRET, reason="session-not-found"), Key.HISTORY_GONE),
        (Unsupported(SECRET), Key.HISTORY_UNSUPPORTED),
        (TimedOut(SECRET), Key.HISTORY_TIMED_OUT),
        *(
            (error, Key.HISTORY_UNAVAILABLE)
            for error in (
                Unauthorized(SECRET), Forbidden(SECRET), Unreachable(SECRET), Malformed(SECRET), TooLarge(SECRET),
                WrongHost(SECRET), Refused(SECRET, reason="internal"), SessionBusy(SECRET, reason="agent-busy"),
            )
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("after", [0, 1])
async def test_a_failure_on_any_page_drops_everything(error: HarnessError, key: Key, after: int) -> None:
    pages: list[bytes | HarnessError] = [page_body([user(50, SECRET)], True)] * after + [error]
    rig = Rig(ScriptedHost(pages))
    result = await rig.ask("/history 5")
    assert reply(result) == ZH(key, reference="H-000001")
    assert [recorded[0] for recorded in rig.references.recorded] == [error]
    assert result.outcome is (Outcome.REFUSED if error.code is Code.SESSION_NOT_FOUND else Outcome.FAILED)


MOVES = [
    Binding(SessionId("another"), 2, 1, 1),
    Binding(None, 2, 1, 1),
    Binding(SESSION, 3, 1, 1),
    Binding(SESSION, 1, 2, 1),
    Binding(SESSION, 1, 1, 2),
]


@pytest.mark.parametrize("moved", MOVES)
@pytest.mark.parametrize("when", ["while reading", "during the running check"])
async def test_a_binding_that_moved_drops_everything(moved: Binding, when: str) -> None:
    class Moving(ScriptedHost):
        async def page(
            self, session: SessionId, *, before: int | None = None, through: int | None = None, limit: int = 50
        ) -> Page:
            if when == "while reading":
                rig.bindings.binding = moved
            return await super().page(session, before=before, through=through, limit=limit)

        async def running(self, session: SessionId) -> bool:
            rig.bindings.binding = moved
            return True

    rig = Rig(Moving([page_body([user(1, SECRET), assistant(2, 1, SECRET)])]))
    assert reply(await rig.ask("/history")) == ZH(Key.HISTORY_CHANGED)


async def test_a_deadline_that_passes_while_a_page_is_read() -> None:
    clock = FakeClock()

    class Slow(ScriptedHost):
        async def page(
            self, session: SessionId, *, before: int | None = None, through: int | None = None, limit: int = 50
        ) -> Page:
            page = await super().page(session, before=before, through=through, limit=limit)
            await clock.advance(10.001)
            return page

    host = Slow.of(([user(50, SECRET)], True))
    assert reply(await Rig(host, clock=clock).ask("/history 5")) == ZH(Key.HISTORY_TIMED_OUT)
    assert len(host.reads) == 1


@pytest.mark.parametrize(
    ("runs", "noted"),
    [(True, True), (False, False), (Unreachable("x"), False), (SessionNotFound("x", reason="r"), False)],
)
async def test_the_running_note_needs_the_hosts_word(runs: bool | HarnessError, noted: bool) -> None:
    host = ScriptedHost([page_body(RUNNING[0][0])], runs=runs)
    text = reply(await Rig(host).ask("/history 1"))
    assert text.endswith(("当前任务仍在进行中\n" if noted else "\n\n") + "以上为历史记录，不是本次新回复。")
    assert (host.asked_running, "当前任务仍在进行中" in text) == (1, noted)


async def test_a_finished_log_asks_for_no_confirmation() -> None:
    host = ScriptedHost([page_body(dialogue(2))], runs=True)
    await Rig(host).ask("/history")
    assert host.asked_running == 0


OPEN = [start(8, 1), user(9, "u1")]


@pytest.mark.parametrize(
    ("pages", "shortage"),
    [
        ([page_body(OPEN)], "本会话只有 1 条可预览的消息"),
        ([page_body(OPEN, True), page_body([other(0)])], "本会话只有 1 条可预览的消息"),
        (
            [page_body(OPEN, True), page_body([other(7)], True), page_body([other(6)], True)],
            "在有限的读取范围内只找到 1 条",
        ),
    ],
)
async def test_footer_lines_come_in_order(pages: list[bytes | HarnessError], shortage: str) -> None:
    text = reply(await Rig(ScriptedHost(pages, runs=True)).ask("/history 2"))
    assert text.endswith(f"\n\n当前任务仍在进行中\n{shortage}\n以上为历史记录，不是本次新回复。")


@pytest.mark.parametrize(
    ("session", "shown"),
    [("session-abc123", "abc123"), ("abc", "abc"), ("session-session-x", "session-x"), ("session-", "-"), ("", "-"),
     ("session-\u202e\u2028\u0000a\u200bb", "ab"), ("session-" + "字" * 20, "字" * 12), ("\ud83d!", "\ufffd!")],
)  # fmt: skip
def test_the_label(session: str, shown: str) -> None:
    assert label(SessionId(session)) == shown


async def test_long_bodies_are_cut_within_every_limit() -> None:
    fence = "".join("```\n" if n == 0 else "中文😀\n" for n in range(601))
    host = ScriptedHost.of(*one(*(user(n, f"marker-{n}\n{fence}") for n in range(1, 7))))
    result = await Rig(host).ask("/history 100")
    check_form(result)
    text = reply(result)
    assert [f"marker-{n}" in text for n in range(1, 7)] == [False, True, True, True, True, True]
    assert text.count("（已截断）\n```") == 5
    assert text.count("中文") <= 500


async def test_of_an_endless_message_the_beginning_is_shown() -> None:
    host = ScriptedHost.of(*one(user(1, "\n" * 300_000 + "unseen"), user(2, "seen" + " " * 300_000 + "x")))
    text = reply(await Rig(host).ask("/history 2"))
    assert bodies(text) == ["本条没有可预览的文字", "seen（已截断）"]


async def test_nothing_is_read_twice_when_enough_was_found() -> None:
    host = ScriptedHost.of(DIALOGUE[0])
    await Rig(host).ask("/history 5")
    assert len(host.reads) == 1
