from __future__ import annotations

import os
from pathlib import Path

import pytest
import zstandard

from archive.model import Code, EndReason, Lineage, Origin, Pair, Parentage, Scan
from archive.sources.dsh import DshSource
from archive.sources.native import Discovery
from harness_client.types import SessionId
from tests.archive import native
from tests.archive.native import DshLines, Line, jsonl


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "ws"
    path.mkdir()
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "dsh"


def discover(home: Path, workspace: Path) -> Discovery:
    return DshSource(home).discover(workspace)


def ids(discovery: Discovery) -> list[str]:
    return sorted(each.session for each in discovery.sessions)


def read(home: Path, workspace: Path) -> Scan:
    (session,) = discover(home, workspace).sessions
    return session.read()


def only(home: Path, workspace: Path) -> Pair:
    (pair,) = read(home, workspace).pairs.values()
    return pair


def codes(discovery: Discovery) -> list[tuple[Code, str]]:
    return [(notice.code, notice.subject) for notice in discovery.notices]


def test_no_home_is_nothing_wrong(home: Path, workspace: Path) -> None:
    assert discover(home, workspace) == Discovery([], ())


def test_the_newest_generation_we_know_counts(home: Path, workspace: Path) -> None:
    for version, name in enumerate(["session.jsonl.zstd", "session.v3.jsonl.zstd", "session.v4.jsonl"]):
        DshLines("s", workspace).pair(f"question of {version}", "a").save(home, name=name)
    directory = DshLines("s", workspace).save(home, name="session.v5.jsonl.zstd").parent
    (directory / "session.lock").touch()
    assert only(home, workspace).inputs[0].text == "question of 2"


def test_only_newer_generations_are_told_of(home: Path, workspace: Path) -> None:
    DshLines("s", workspace).save(home, name="session.v5.jsonl.zstd")
    DshLines("t", workspace, version=9).save(home)
    (home / "sessions" / "--ws--" / "empty").mkdir()
    discovery = discover(home, workspace)
    assert ids(discovery) == []
    assert codes(discovery) == [(Code.UNKNOWN_FORMAT, "s"), (Code.UNKNOWN_FORMAT, "t")]


def test_a_generation_that_was_only_begun_leaves_the_one_before(home: Path, workspace: Path) -> None:
    DshLines("s", workspace, version=3).pair("kept", "yes").save(home, name="session.v3.jsonl.zstd")
    begun = DshLines("s", workspace).pair("kept", "yes").save(home)
    begun.write_bytes(begun.read_bytes()[:9])
    discovery = discover(home, workspace)
    (session,) = discovery.sessions
    assert [pair.answer for pair in session.read().pairs.values()] == ["yes"]
    assert codes(discovery) == [(Code.NO_HEADER, "s")]


def test_a_session_in_two_folders_counts_once(home: Path, workspace: Path) -> None:
    DshLines("s", workspace).pair("a", "b").pair("c", "d").save(home, folder="--one--")
    DshLines("s", workspace).pair("a", "b").save(home, folder="--two--")
    assert len(read(home, workspace).pairs) == 2


@pytest.mark.parametrize(
    "content", [b"", b"rubbish", zstandard.compress(b"{}\n"), zstandard.compress(b'["session"]\n')]
)
def test_a_file_without_a_header_hurts_itself_only(home: Path, workspace: Path, content: bytes) -> None:
    DshLines("good", workspace).save(home)
    DshLines("bad", workspace).save(home).write_bytes(content)
    discovery = discover(home, workspace)
    assert ids(discovery) == ["good"]
    assert codes(discovery) == [(Code.NO_HEADER, "bad")]


def test_what_cannot_be_opened_is_told_of(home: Path, workspace: Path) -> None:
    path = DshLines("s", workspace).save(home)
    path.unlink()
    path.mkdir()
    assert codes(discover(home, workspace)) == [(Code.UNREADABLE, "s")]
    path.rmdir()
    os.mkfifo(path)
    assert codes(discover(home, workspace)) == [(Code.UNREADABLE, "s")]


def test_roots_and_forks_belong_where_they_ran_and_experts_to_their_root(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    expert = {"origin": "subagent", "delegationDepth": 1}
    DshLines("root", workspace).save(home)
    DshLines("fork", workspace, parentSession="gone").save(home)
    DshLines("expert", tmp_path, parentSession="root", **expert).save(home)
    DshLines("experts-expert", tmp_path, parentSession="expert", **expert).save(home)
    DshLines("elsewhere", tmp_path).save(home)
    DshLines("guest", workspace, parentSession="elsewhere", **expert).save(home)
    DshLines("orphan", workspace, parentSession="gone", **expert).save(home)
    DshLines("far-orphan", tmp_path, parentSession="gone", **expert).save(home)
    DshLines("circle-1", workspace, parentSession="circle-2", **expert).save(home)
    DshLines("circle-2", workspace, parentSession="circle-1", **expert).save(home)
    discovery = discover(home, workspace)
    assert ids(discovery) == ["expert", "experts-expert", "fork", "root"]
    assert sorted(codes(discovery)) == [
        (Code.LINEAGE_BROKEN, "circle-1"),
        (Code.LINEAGE_BROKEN, "circle-2"),
        (Code.LINEAGE_BROKEN, "orphan"),
    ]
    lineages = {str(each.session): each.read().lineage for each in discovery.sessions}
    assert lineages["expert"] == Lineage(SessionId("root"), Parentage.SUBAGENT)
    assert lineages["fork"] == Lineage(SessionId("gone"), Parentage.FORK)
    assert lineages["root"] == Lineage()


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("completed", EndReason.STOP),
        ("aborted", EndReason.ABORTED),
        ("blocked", EndReason.ABORTED),
        ("error", EndReason.ERROR),
        ("max-tokens", EndReason.LENGTH),
        ("interrupted", EndReason.INTERRUPTED),
        ("forked", EndReason.INTERRUPTED),
    ],
)
def test_the_turns_end_decides(home: Path, workspace: Path, reason: str, end: EndReason) -> None:
    DshLines("s", workspace).start().human("q").answer("a").end(reason).save(home)
    pair = only(home, workspace)
    assert (pair.answer, pair.end_reason) == ("a", end)


@pytest.mark.parametrize(
    ("text", "finish", "end"),
    [
        ("a", None, EndReason.INTERRUPTED),
        ("a", "max-tokens", EndReason.LENGTH),
        ("a", "error", EndReason.ERROR),
        (" ", "stop", EndReason.EMPTY),
    ],
)
def test_completed_is_not_enough(home: Path, workspace: Path, text: str, finish: str | None, end: EndReason) -> None:
    DshLines("s", workspace).start().human("q").answer(text, finish).end().save(home)
    assert only(home, workspace).end_reason is end


def test_a_turn_that_a_tool_ended_has_no_answer(home: Path, workspace: Path) -> None:
    DshLines("s", workspace).start().human("q").answer("calling", calls=1).end().save(home)
    pair = only(home, workspace)
    assert (pair.answer, pair.end_reason) == ("", EndReason.EMPTY)


def test_text_that_was_cut_off_stays(home: Path, workspace: Path) -> None:
    DshLines("s", workspace).start().human("q").answer("half", None, calls=1, interrupted=True).end("aborted").save(
        home
    )
    pair = only(home, workspace)
    assert (pair.answer, pair.end_reason) == ("half", EndReason.ABORTED)


def test_a_running_turn_is_open_until_another_begins(home: Path, workspace: Path) -> None:
    lines = DshLines("s", workspace).start().human("q").answer("a")
    lines.save(home)
    assert only(home, workspace).end_reason is EndReason.OPEN
    lines.pair("next", "b").save(home)
    first, second = read(home, workspace).pairs.values()
    assert (first.end_reason, second.end_reason) == (EndReason.INTERRUPTED, EndReason.STOP)


def test_a_late_steer_leaves_a_complete_answer_behind(home: Path, workspace: Path) -> None:
    lines = DshLines("s", workspace).start().human("q").answer("a")
    lines.human("and?").answer("b").end("aborted").save(home)
    first, second = read(home, workspace).pairs.values()
    assert (first.answer, first.completed) == ("a", True)
    assert (second.answer, second.end_reason) == ("b", EndReason.ABORTED)


def test_a_steer_between_steps_joins(home: Path, workspace: Path) -> None:
    lines = DshLines("s", workspace).start().human("q").answer("w", "tool-calls", calls=1)
    lines.user("answer to your question", kind="user-question-reply", callId="c0").human("more").answer("a").end().save(
        home
    )
    pair = only(home, workspace)
    assert [(given.origin, given.text) for given in pair.inputs] == [
        (Origin.USER, "q"),
        (Origin.USER_REPLY, "answer to your question"),
        (Origin.USER, "more"),
    ]
    assert pair.completed


@pytest.mark.parametrize(
    "kind", ["subagent-settled", "team-message", "goal", "plugin", "agent-message", "news-of-tomorrow"]
)
def test_notifications_ask_nothing_and_their_answers_come_later(home: Path, workspace: Path, kind: str) -> None:
    lines = DshLines("s", workspace, parentSession="p").start().user("nobody asked", kind=kind).answer("lost").end()
    lines.pair("q", "a").start().user("note", kind=kind, senderSessionId="p").answer("tool", calls=1)
    lines.answer("later").end().start().user("again", kind=kind).answer("cut").end("aborted").save(home)
    pair = only(home, workspace)
    assert (pair.answer, pair.later, pair.completed) == ("a", ("later",), True)


def test_only_what_is_part_of_the_conversation_counts(home: Path, workspace: Path) -> None:
    lines = DshLines("s", workspace).start().human("q").answer("a")
    copy: Line = {"id": "copy", "role": "user", "content": [{"type": "text", "text": "x"}], "source": {"kind": "user"}}
    lines.add("user/message", copy, surfaceOp={"op": "replace", "startSeq": 0, "endSeq": 3})
    lines.add("user/message", {**copy, "source": None}, surfaceOp="append")
    lines.add("user/message", {**copy, "content": 7}, surfaceOp="append")
    lines.end().add("session/title", {"title": "  Given \ud83d title "}).save(home)
    scan = read(home, workspace)
    assert len(scan.pairs) == 1
    assert scan.title == "Given \ufffd title"


def test_attachments_are_placeholders(home: Path, workspace: Path) -> None:
    blocks: list[Line] = [
        {"type": "image", "attachment": {}},
        {"type": "file", "attachment": {}},
        {"type": "reasoning"},
    ]
    DshLines("s", workspace).start().human("what is it?", *blocks).save(home)
    assert only(home, workspace).inputs[0].text == "[image]\n[file]\nwhat is it?"


def test_a_coordinators_words_keep_their_origin_without_the_hosts_frame(home: Path, workspace: Path) -> None:
    DshLines("root", workspace).save(home)
    frame = 'Your parent agent id is "root". Before you finish, …'
    lines = DshLines("expert", workspace, parentSession="root", origin="subagent")
    lines.start().user("task", {"type": "text", "text": frame}, kind="user").answer("done").end()
    relay: Line = {"type": "text", "text": "Agent root sent a message: "}
    lines.start().user("more", relay, kind="agent-message", senderSessionId="root").answer("done too").end()
    lines.start().user("old way", kind="coordinator").answer("fine").end()
    lines.start().user("chatter", relay, kind="agent-message", senderSessionId="sibling").answer("ok").end()
    lines.pair("a person's own", "yes").save(home)
    (session,) = [each for each in discover(home, workspace).sessions if each.session == "expert"]
    pairs = list(session.read().pairs.values())
    assert [(pair.inputs[0].origin, pair.inputs[0].text) for pair in pairs] == [
        (Origin.DELEGATION, "task"),
        (Origin.DELEGATION, "more"),
        (Origin.DELEGATION, "old way"),
        (Origin.USER, "a person's own"),
    ]
    assert pairs[2].later == ("ok",)


def test_a_broken_last_reply_is_no_answer(home: Path, workspace: Path) -> None:
    lines = DshLines("s", workspace).start().human("q").answer("not the last")
    lines.add("assistant/message", {"turn": 1, "step": 2, "message": {"content": 7}}, surfaceOp="append").end().save(
        home
    )
    pair = only(home, workspace)
    assert (pair.answer, pair.end_reason) == ("", EndReason.INTERRUPTED)


def test_repeated_events_and_repeated_ids_do_no_harm(home: Path, workspace: Path) -> None:
    lines = DshLines("s", workspace).pair("q", "a")
    lines.lines += lines.lines[1:]
    lines.pair("r", "b")
    for line in lines.lines[-3:-1]:
        line["data"] = {**_data(line), "id": "u2"} if line["type"] == "user/message" else line["data"]
    lines.save(home)
    scan = read(home, workspace)
    assert [pair.inputs[0].text for pair in scan.pairs.values()] == ["q", "r"]
    assert len({*scan.pairs}) == 2


def _data(line: Line) -> Line:
    data = line["data"]
    assert isinstance(data, dict)
    return data


def test_a_torn_tail_costs_what_it_holds(home: Path, workspace: Path) -> None:
    path = DshLines("s", workspace).pair("q", "a").save(home, name="session.v4.jsonl")
    with path.open("ab") as file:
        file.write(b'{"type":"turn/start"}\n{"type":"unfinished\n' + b"[" * 100_000 + b"\n" + b'{"type":"cut')
    scan = read(home, workspace)
    assert len(scan.pairs) == 1
    assert [(notice.code, notice.line) for notice in scan.warnings] == [
        (Code.ENTRY_INVALID, 6),
        (Code.LINE_TORN, 7),
        (Code.LINE_TORN, 8),
        (Code.LINE_TORN, 9),
    ]


def test_a_frame_that_cannot_be_decoded_ends_the_reading(home: Path, workspace: Path) -> None:
    path = DshLines("s", workspace).pair("q", "a").save(home)
    path.write_bytes(path.read_bytes() + b"no frame at all")
    scan = read(home, workspace)
    assert len(scan.pairs) == 1
    assert [notice.code for notice in scan.warnings] == [Code.INCOMPLETE]


def test_a_file_replaced_since_it_was_found_is_left_to_the_next_scan(home: Path, workspace: Path) -> None:
    path = DshLines("s", workspace).save(home)
    (found,) = discover(home, workspace).sessions
    for content in (b"", jsonl([native.dsh_header("another", workspace)])):
        path.write_bytes(zstandard.compress(content))
        with pytest.raises(FileNotFoundError):
            found.read()


class TestFormatZero:
    """Logs of the first hosts: streamed chunks in the log, packed or single, and no stream inside messages."""

    @pytest.fixture
    def lines(self, workspace: Path) -> DshLines:
        return DshLines("s", workspace, version=0)

    def test_the_finish_is_taken_from_the_chunks(self, lines: DshLines, home: Path, workspace: Path) -> None:
        lines.start().human("q")
        _chunk(lines, {"type": "finish", "reason": {"kind": "stop"}})
        lines.answer("a", None).end().save(home, name="session.jsonl.zstd")
        assert only(home, workspace).completed

    def test_text_without_a_message_is_kept(self, lines: DshLines, home: Path, workspace: Path) -> None:
        lines.start().human("q")
        _pack(lines, "failed attempt")
        _chunk(lines, {"type": "finish", "reason": {"kind": "error"}})
        _pack(lines, "half ")
        _pack(lines, "thought", kind="reasoning-chunks")
        _chunk(lines, {"type": "text-delta", "index": 0, "text": "an answer"})
        lines.save(home, name="session.jsonl.zstd")
        assert (only(home, workspace).answer, only(home, workspace).end_reason) == ("half an answer", EndReason.OPEN)
        lines.end("interrupted").save(home, name="session.jsonl.zstd")
        scan = read(home, workspace)
        (pair,) = scan.pairs.values()
        assert (pair.answer, pair.end_reason) == ("half an answer", EndReason.INTERRUPTED)
        assert pair.entry_ids == ("u2",)
        assert scan.warnings == ()

    def test_a_broken_run_of_chunks_is_told_of(self, lines: DshLines, home: Path, workspace: Path) -> None:
        lines.start().human("q")
        lines.lines.append({"type": "text-chunks", "seq0": 3, "data": {"turn": 1}})
        lines.save(home, name="session.jsonl.zstd")
        assert [notice.code for notice in read(home, workspace).warnings] == [Code.ENTRY_INVALID]


def _chunk(lines: DshLines, chunk: Line) -> None:
    lines.add("assistant/chunk", {"turn": lines.turn, "step": 1, "chunk": chunk})


def _pack(lines: DshLines, text: str, kind: str = "text-chunks") -> None:
    data: Line = {"turn": lines.turn, "step": 1, "index": 0, "dt": [1], "texts": [text[:3], text[3:]]}
    lines.lines.append({"type": kind, "seq0": len(lines.lines) - 1, "time0": native.DSH_TIME, "data": data})


def test_a_directory_that_may_not_be_read_is_told_of(
    home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DshLines("s", workspace).save(home)

    def refuse(_: Path) -> None:
        raise PermissionError

    for name in ("iterdir", "stat"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, name, refuse)
            if name == "stat":
                patch.setattr(Path, "is_dir", lambda _: True)
            assert [code for code, _ in codes(discover(home, workspace))] == [Code.UNREADABLE]


def test_a_session_that_goes_while_it_is_looked_at_is_no_fault(
    home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DshLines("s", workspace).save(home)

    def gone(_: Path) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("archive.sources.dsh.log_files", gone)
    assert discover(home, workspace) == Discovery([], ())


def test_a_home_that_is_no_directory_is_an_empty_one(home: Path, workspace: Path) -> None:
    home.write_text("")
    assert discover(home, workspace) == Discovery([], ())
