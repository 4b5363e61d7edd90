from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from archive.model import MAX_NOTICES, Code, EndReason, Lineage, Parentage, Scan
from archive.sources.native import Discovery
from archive.sources.pi import PiSource, peek
from archive.sources.pi_locate import PiHome, default_directory
from harness_client.types import SessionId
from tests.archive import native
from tests.archive.native import Line, jsonl, pi_assistant, pi_header, pi_session, pi_user, write

MESSAGE = {"type": "message", "id": "x", "parentId": None, "timestamp": native.PI_TIME}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "ws"
    path.mkdir()
    return path


@pytest.fixture
def home(tmp_path: Path) -> PiHome:
    return PiHome(tmp_path / "agent")


@pytest.fixture
def sessions(home: PiHome, workspace: Path) -> Path:
    return default_directory(home.agent_dir, str(workspace))


def discover(home: PiHome, workspace: Path) -> Discovery:
    return PiSource(home).discover(workspace)


def ids(discovery: Discovery) -> list[str]:
    return sorted(each.session for each in discovery.sessions)


def read(home: PiHome, workspace: Path) -> Scan:
    (session,) = discover(home, workspace).sessions
    return session.read()


def test_the_default_directory_is_named_as_pi_does() -> None:
    assert default_directory(Path("agent"), "/srv/a:b\\c") == Path("agent/sessions/--srv-a-b-c--")


def test_the_header_decides_and_not_the_directory(home: PiHome, workspace: Path, sessions: Path) -> None:
    write(sessions / "mine.jsonl", pi_session("mine", workspace))
    write(sessions / "other.jsonl", pi_session("other", f"{workspace}-b"))
    write(sessions / "notes.txt", pi_session("no-session", workspace))
    assert ids(discover(home, workspace)) == ["mine"]


def test_a_workspace_behind_a_link_is_the_same(home: PiHome, workspace: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(workspace)
    write(default_directory(home.agent_dir, str(link)) / "a.jsonl", pi_session("a", link))
    write(default_directory(home.agent_dir, str(workspace)) / "b.jsonl", pi_session("b", workspace))
    assert ids(discover(home, link)) == ["a", "b"]


def test_nothing_there_is_nothing_wrong(home: PiHome, workspace: Path) -> None:
    away = PiHome(home.agent_dir, session_dir=workspace / "none", current=workspace / "gone" / "new.jsonl")
    assert discover(away, workspace) == Discovery([], ())


def test_overrides_are_found_wherever_they_are_named(tmp_path: Path, workspace: Path) -> None:
    agent = tmp_path / "agent"
    for name in ("option", "current"):
        write(tmp_path / name / "s.jsonl", pi_session(name, workspace))
        write(tmp_path / name / "t.jsonl", pi_session("stranger", tmp_path))
    write(workspace / "relative" / "s.jsonl", pi_session("project", workspace))
    write(tmp_path / "global" / "s.jsonl", pi_session("global", workspace))
    write(workspace / ".pi" / "settings.json", [{"sessionDir": "relative"}])
    write(agent / "settings.json", [{"sessionDir": str(tmp_path / "global"), "theme": "dark"}])
    current = tmp_path / "current" / "s.jsonl"
    home = PiHome(agent, session_dir=tmp_path / "option", current=current)
    assert ids(discover(home, workspace)) == ["current", "global", "option", "project"]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"sessionDir": 7}', '{"sessionDir": "\\u0000"}', '{"sessionDir": "~nobody-here/x"}']
)
def test_broken_settings_are_told_of(home: PiHome, workspace: Path, text: str) -> None:
    write(workspace / ".pi" / "settings.json", []).write_text(text)
    (notice,) = discover(home, workspace).notices
    assert (notice.code, notice.subject) == (Code.SETTINGS_INVALID, "settings.json")


def test_experts_count_by_their_id_wherever_they_ran(tmp_path: Path, home: PiHome, workspace: Path) -> None:
    expert = write(tmp_path / "elsewhere" / "e.jsonl", pi_session("expert", tmp_path))
    imposter = write(tmp_path / "elsewhere" / "i.jsonl", pi_session("another", tmp_path))
    experts = ((SessionId("expert"), expert), (SessionId("imposter"), imposter))
    assert ids(discover(PiHome(home.agent_dir, experts=experts), workspace)) == ["expert"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", Code.NO_HEADER),
        (b"not json\n", Code.NO_HEADER),
        (b"[1]\n", Code.NO_HEADER),
        (jsonl([{"type": "message", "id": "x"}]), Code.NO_HEADER),
        (jsonl([{"type": "session"}]), Code.NO_HEADER),
        (jsonl([{"type": "session", "id": "s", "version": 4}]), Code.UNKNOWN_FORMAT),
    ],
)
def test_a_file_without_a_usable_header_hurts_itself_only(
    home: PiHome, workspace: Path, sessions: Path, content: bytes, code: Code
) -> None:
    write(sessions / "good.jsonl", pi_session("good", workspace))
    (sessions / "bad.jsonl").write_bytes(content)
    discovery = discover(home, workspace)
    assert ids(discovery) == ["good"]
    assert [(notice.code, notice.subject) for notice in discovery.notices] == [(code, "bad.jsonl")]


def test_a_name_that_is_no_text_is_told_as_text(home: PiHome, workspace: Path, sessions: Path) -> None:
    sessions.mkdir(parents=True)
    (sessions / os.fsdecode(b"\xff.jsonl")).touch()
    (notice,) = discover(home, workspace).notices
    assert notice.subject == "\ufffd.jsonl"


def test_what_cannot_be_opened_is_told_of(home: PiHome, workspace: Path, sessions: Path) -> None:
    (sessions / "folder.jsonl").mkdir(parents=True)
    loop = sessions / "loop.jsonl"
    loop.symlink_to(loop)
    (sessions / "endless.jsonl").symlink_to("/dev/zero")
    os.mkfifo(sessions / "pipe.jsonl")
    assert len(discover(home, workspace).notices) == 4
    assert {notice.code for notice in discover(home, workspace).notices} == {Code.UNREADABLE}
    assert peek(sessions / "none.jsonl") is Code.UNREADABLE


def test_paths_that_cannot_be_paths_name_nothing(home: PiHome, workspace: Path, sessions: Path) -> None:
    write(sessions / "1.jsonl", pi_session("s", f"{workspace}\0"))
    lines = pi_session("child", workspace)
    write(sessions / "2.jsonl", [pi_header("child", workspace, parentSession="\0"), *lines[1:]])
    assert read(home, workspace).lineage == Lineage(None, Parentage.FORK)


def test_one_session_in_two_files_is_one_tree(home: PiHome, workspace: Path, sessions: Path, tmp_path: Path) -> None:
    lines = pi_session("s", workspace)
    write(sessions / "1.jsonl", [*lines, pi_user("left", "a1", "left?")])
    write(tmp_path / "import" / "2.jsonl", [*lines, pi_user("right", "a1", "right?")])
    both = PiHome(home.agent_dir, session_dir=tmp_path / "import")
    scan = read(both, workspace)
    assert [pair.inputs[0].text for pair in scan.pairs.values()] == ["question 1", "left?", "right?"]
    assert scan.warnings == ()
    assert scan.stamp.entries == 4


def test_a_copy_from_before_the_migration_adds_nothing(home: PiHome, workspace: Path, sessions: Path) -> None:
    old: Line = {"type": "session", "id": "s", "timestamp": native.PI_TIME, "cwd": str(workspace)}
    question: Line = {"type": "message", "message": {"role": "user", "content": "question 1"}}
    write(sessions / "1.jsonl", [old, question])
    write(sessions / "2.jsonl", pi_session("s", workspace))
    assert len(read(home, workspace).pairs) == 1


def test_a_file_replaced_by_another_session_is_left_to_the_next_scan(
    home: PiHome, workspace: Path, sessions: Path
) -> None:
    path = write(sessions / "1.jsonl", pi_session("s", workspace))
    (found,) = discover(home, workspace).sessions
    write(path, pi_session("another", workspace))
    with pytest.raises(FileNotFoundError):
        found.read()


def test_the_parent_is_named_by_its_own_header(home: PiHome, workspace: Path, sessions: Path, tmp_path: Path) -> None:
    parent = write(tmp_path / "p.jsonl", pi_session("the-parent", tmp_path))
    lines = pi_session("child", workspace)
    write(sessions / "c.jsonl", [pi_header("child", workspace, parentSession=str(parent)), *lines[1:]])
    assert read(home, workspace).lineage == Lineage(SessionId("the-parent"), Parentage.FORK)
    parent.unlink()
    assert read(home, workspace).lineage == Lineage(None, Parentage.FORK)


def test_duplicates_count_once_and_the_last_writing_wins(home: PiHome, workspace: Path, sessions: Path) -> None:
    lines = pi_session("s", workspace)
    rewritten: list[Line] = [pi_user("q1", None, "question 1, edited"), {"type": "label", "id": "a1", "parentId": "q1"}]
    write(sessions / "1.jsonl", [*lines, *lines, *rewritten])
    scan = read(home, workspace)
    (pair,) = scan.pairs.values()
    assert (pair.inputs[0].text, pair.answer) == ("question 1, edited", "answer 1")
    assert [(notice.code, notice.line) for notice in scan.warnings] == [
        (Code.DUPLICATE_HEADER, 4),
        (Code.ENTRY_CONFLICT, 7),
        (Code.ENTRY_CONFLICT, 8),
    ]


def test_odd_content_is_taken_for_what_it_is(home: PiHome, workspace: Path, sessions: Path) -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    lines: list[Line] = [
        pi_header("s", workspace),
        pi_user("q1", None, [image, {"type": "text", "text": "\ud83d and \ud83d\ude00"}]),
        {"type": "bash", "id": "b1", "parentId": "q1", "name": 7},
        {**MESSAGE, "id": "b2", "parentId": "b1", "message": {"role": "bashExecution", "command": "ls"}},
        {**MESSAGE, "id": "b3", "parentId": "b2", "message": {"role": "assistant", "content": [7]}},
        pi_assistant("a1", "b3", "", stop="deferred"),
        {"type": "session_info", "id": "n1", "parentId": "a1", "name": "  A title "},
        {"type": "session_info", "id": "n2", "parentId": "n1", "name": 3},
        {"type": "custom", "data": {}},
        pi_user("q2", "lost", "orphan"),
    ]
    write(sessions / "1.jsonl", lines)
    scan = read(home, workspace)
    first, second = scan.pairs.values()
    assert first.inputs[0].text == "[image]\n\ufffd and 😀"
    assert first.end_reason is EndReason.INTERRUPTED
    assert second.inputs[0].text == "orphan"
    assert scan.title == "A title"
    assert scan.branches == tuple((node,) for node in scan.pairs)
    assert {notice.code for notice in scan.warnings} == {Code.ENTRY_INVALID, Code.PARENT_MISSING}


def test_times_fall_back_to_what_is_known(home: PiHome, workspace: Path, sessions: Path) -> None:
    question, answer = pi_user("q1", None, "q"), pi_assistant("a1", "q1", "a")
    question["timestamp"] = "yesterday"
    question["message"] = {"role": "user", "content": "q", "timestamp": native.DSH_TIME + 5}
    answer["timestamp"] = None
    write(sessions / "1.jsonl", [pi_header("s", workspace), question, answer])
    (pair,) = read(home, workspace).pairs.values()
    assert (pair.start, pair.end) == ("2026-03-01T10:00:00.005Z", "2026-03-01T10:00:00.005Z")


def test_torn_and_glued_lines_give_what_is_whole_in_them(home: PiHome, workspace: Path, sessions: Path) -> None:
    header, *lines = [json.dumps(line).encode() for line in pi_session("s", workspace, pairs=3)]
    torn = json.dumps(pi_user("t", "a3", "torn, with \\ and { inside")).encode()[:-20]
    (sessions).mkdir(parents=True)
    file = sessions / "1.jsonl"
    file.write_bytes(
        header + b"\n" + lines[0] + lines[1] + b"\n" + torn + lines[2] + b"\n\n" + b"\n".join(lines[3:]) + b"\n" + torn
    )
    scan = read(home, workspace)
    assert [pair.inputs[0].text for pair in scan.pairs.values()] == ["question 1", "question 2", "question 3"]
    assert all(pair.completed for pair in scan.pairs.values())
    assert [(notice.code, notice.line) for notice in scan.warnings] == [
        (Code.LINE_SALVAGED, 2),
        (Code.LINE_SALVAGED, 3),
        (Code.LINE_TORN, 8),
    ]


def test_hostile_lines_cost_a_notice_each_and_no_more_than_some(home: PiHome, workspace: Path, sessions: Path) -> None:
    write(sessions / "1.jsonl", pi_session("s", workspace))
    with (sessions / "1.jsonl").open("ab") as file:
        file.write(b'{"type":"message","x":' + b"[" * 200_000 + b"\n")
        file.write(b'{"type":"message","x":' * 50_000 + b"\n")
        file.write(b"[1]\n7\n\xff\xfe\n" * 30)
    scan = read(home, workspace)
    assert len(scan.pairs) == 1
    assert len(scan.warnings) == MAX_NOTICES


def test_glued_lines_of_format_1_are_entries_of_their_own(home: PiHome, workspace: Path, sessions: Path) -> None:
    header: Line = {"type": "session", "id": "s", "timestamp": native.PI_TIME, "cwd": str(workspace)}
    question, answer = pi_user("", None, "q"), pi_assistant("", None, "a")
    path = write(sessions / "1.jsonl", [header])
    with path.open("ab") as file:
        file.write(jsonl([question]).rstrip() + jsonl([answer, question]))
    first, second = read(home, workspace).pairs.values()
    assert (first.entry_ids, first.completed) == (("v1-000000", "v1-000000+"), True)
    assert second.entry_ids == ("v1-000001",)


def test_only_what_pi_took_back_is_tried_again(home: PiHome, workspace: Path, sessions: Path) -> None:
    edit: Line = {"type": "context_edit", "id": "x", "parentId": "a1", "targetId": "a1", "replacement": None}
    lines = [pi_header("s", workspace), pi_user("q1", None, "q"), pi_assistant("a1", "q1", "half", stop="length")]
    write(sessions / "1.jsonl", [*lines, edit, pi_assistant("a2", "x", "whole")])
    (pair,) = read(home, workspace).pairs.values()
    assert (pair.answer, pair.later, pair.completed) == ("whole", (), True)
    write(sessions / "1.jsonl", [*lines, pi_assistant("a2", "a1", "another matter")])
    (pair,) = read(home, workspace).pairs.values()
    assert (pair.answer, pair.later, pair.end_reason) == ("half", ("another matter",), EndReason.LENGTH)
    write(sessions / "1.jsonl", [*pi_session("s", workspace), {**edit, "id": "y"}, {**edit, "targetId": "q1"}])
    (pair,) = read(home, workspace).pairs.values()
    assert pair.completed
