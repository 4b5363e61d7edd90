"""``harness-im history`` over native sessions in a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec
import pytest
from click.testing import CliRunner, Result

from archive.answers import ReadAnswer, RefreshAnswer, SearchAnswer, SummarizeAnswer
from archive.files import ArchiveFolder
from archive.model import Host, NodeId, Summary
from archive.sources.pi_locate import default_directory
from bridges.cli import main, past
from bridges.cli.past_text import highlighted
from tests.archive.native import DshLines, pi_session, tree, write

SCRIBE = """\
import sys, time
material = sys.stdin.read()
assert "--no-session" in sys.argv
{body}
print("in short")
"""


class Home:
    """A workspace with sessions of both hosts, and a home around them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "ws"
        self.workspace.mkdir()
        self.native = root / "native"
        self.pi = default_directory(self.native / "agent", str(self.workspace))
        write(self.pi / "1.jsonl", pi_session("one", self.workspace, pairs=5))
        DshLines("session-x", self.workspace).pair("数据库 question", "the DATABASE").save(self.native / "dsh")
        self.config = root / "config.toml"
        self.config.write_text('language = "en"\n')

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PI_CODING_AGENT_DIR": str(self.native / "agent"),
            "DSH_HOME": str(self.native / "dsh"),
            "HARNESS_IM_CONFIG": str(self.config),
            "PATH": os.environ["PATH"],
        }

    def run(self, *arguments: str, **environ: str) -> Result:
        before = tree(self.native)
        workspace = () if "--workspace" in arguments else ("--workspace", str(self.workspace))
        command = ["history", *arguments, *workspace]
        result = CliRunner().invoke(main, command, env=self.environ | environ, catch_exceptions=False)
        assert tree(self.native) == before, "native sessions are read only"
        return result

    def scribe(self, body: str = "") -> None:
        """Put a program in the place of Pi."""
        program = self.root / "pi"
        program.write_text(f"#!{sys.executable}\n" + SCRIBE.format(body=body))
        program.chmod(0o700)
        self.config.write_text(f'language = "en"\n[summaries]\npi = "{program}"\n')


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_search_tells_in_json(home: Home) -> None:
    result = home.run("search", "QUESTION", "--json", "--limit", "4")
    assert result.exit_code == 0
    answer = msgspec.json.decode(result.stdout, type=SearchAnswer)
    assert len(answer.results) == 4
    assert answer.next_offset == 4
    raw = json.loads(result.stdout)
    assert set(raw) == {"results", "nextOffset", "reason", "warnings"}
    assert set(raw["results"][0]) == {
        "host", "id", "kind", "level", "sessionId", "title", "preview", "matches", "start", "end", "completed",
        "ready", "source", "parents",
    }  # fmt: skip
    assert set(raw["results"][0]["matches"][0]) == {"in", "start", "end"}
    assert set(raw["results"][0]["source"]) == {"host", "sessionId", "entryIds"}
    assert str(home.root) not in result.stdout


def test_search_tells_in_a_table(home: Home) -> None:
    result = home.run("search", "database")
    assert result.exit_code == 0
    assert result.stdout.split("\n")[0].split() == ["When", "Source", "What", "Preview", "Id"]
    assert "DATABASE" in result.stdout
    result = home.run("search", "--limit", "1")
    assert "Past session" in result.stdout
    assert result.stdout.endswith("Next page: --offset 1\n")
    result = home.run("search", "absent")
    said = "Nothing holds this text (2 sessions looked through); try another word"
    assert (result.exit_code, result.stdout.strip()) == (0, said)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("columns", [20, 80, 120])
def test_a_narrow_terminal_leaves_room_for_previews_and_ids(home: Home, columns: int, language: str) -> None:
    result = home.run("search", "--language", language, FORCE_COLOR="1", COLUMNS=str(columns))
    lines = result.stdout.splitlines()
    assert any("question 1" in line for line in lines)
    assert any("dsh-session-x" in line for line in lines)
    assert len(lines) < 20


def test_hits_are_highlighted() -> None:
    shown = highlighted("😀 the DATAbase, data", "Data")
    assert [(span.start, span.end) for span in shown.spans] == [(6, 10), (16, 20)]
    assert highlighted("x", " ").spans == []


def test_filters_reach_the_service(home: Home) -> None:
    def ids(*arguments: str) -> list[str]:
        answer = msgspec.json.decode(home.run("search", *arguments, "--json").stdout, type=SearchAnswer)
        return [result.id for result in answer.results]

    assert ids() == ["dsh-session-x", "one"]
    assert ids("--host", "pi") == ["one"]
    assert ids("--session", "session-x") == ["dsh-session-x"]
    assert ids("--from", "2026-03-02") == []
    assert ids("--to", "2026-03-02", "--offset", "1") == ["one"]


def test_only_what_is_current_is_refreshed(home: Home) -> None:
    home.run("search", "--no-refresh")
    assert not (home.workspace / ".pi").exists()
    home.run("search", "--current", "dsh")
    assert not (home.workspace / ".pi").exists()
    assert (home.workspace / ".dsh").exists()


def test_read_tells_everything(home: Home) -> None:
    home.run("refresh")
    answer = msgspec.json.decode(home.run("read", "one", "--json").stdout, type=ReadAnswer)
    assert [child.kind for child in answer.children] == ["summary", "pair"]
    pair = answer.children[1].id
    raw = json.loads(home.run("read", pair, "--json").stdout)
    assert set(raw) == {
        "host", "id", "kind", "text", "offset", "nextOffset", "children", "nextChildrenOffset", "parents", "source",
        "ready", "completed", "start", "end", "warnings", "inputs", "answer", "later", "endReason",
    }  # fmt: skip
    assert raw["text"] == "question 5\n\nanswer 5"
    shown = home.run("read", pair).stdout
    assert "Question and answer · pi" in shown
    assert "question 5\n\nanswer 5" in shown
    assert "Above:" in shown
    shown = home.run("read", pair, "--limit", "4").stdout
    assert "To read on: --offset 4" in shown


def test_refresh_tells_one_line_a_source(home: Home) -> None:
    lines = home.run("refresh", "--json").stdout.splitlines()
    pi, dsh = (msgspec.json.decode(line, type=RefreshAnswer) for line in lines)
    assert (pi.host, pi.sessions, pi.pairs, pi.added) == (Host.PI, 1, 5, 1)
    assert (dsh.host, dsh.sessions, dsh.pairs, dsh.added) == (Host.DSH, 1, 1, 1)
    assert home.run("refresh", "--host", "pi").stdout == (
        "pi: 1 sessions with 5 pairs; 0 added, 0 updated, 1 unchanged\n"
    )


def test_a_damaged_archive_is_a_warning(home: Home) -> None:
    home.run("refresh")
    (home.workspace / ".pi" / "pbot" / "history" / "bad.json").write_text("{")
    result = home.run("search", "database")
    assert result.exit_code == 0
    assert "DATABASE" in result.stdout
    assert "bad: the archive file is damaged" in result.stderr


def test_a_folder_that_cannot_be_written_is_told(home: Home) -> None:
    (home.workspace / ".pi").write_text("a file where a folder should be")
    result = home.run("refresh", "--host", "pi")
    assert result.exit_code == 1
    assert "one: the archive could not be written" in result.stderr
    assert home.run("search", "database").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", "--limit", "51"], "limit: must be between 1 and 50"),
        (["search", "--limit", "many"], "limit: must be of type integer"),
        (["search", "--offset", "-1"], "offset: must be between 0"),
        (["search", "--offset", "9" * 30], "offset: must be between 0"),
        (["search", "--from", "soon"], "from: must be an ISO date"),
        (["search", "--from", "2026-03-02", "--to", "2026-03-01"], "to: the end lies before the beginning"),
        (["search", "--host", "codex"], "host: must be one of"),
        (["search", "--current", "codex"], "host: must be one of"),
        (["search", "x" * 4001], "query: at most 4000 characters"),
        (["search", "--workspace", "/no/such/folder"], "workspace: there is no such folder"),
        (["read", "absent"], "id: no entry of the archive has this id"),
        (["read", ""], "id: this parameter is missing"),
        (["read", "x", "--limit", "24001"], "limit: must be between 1 and 24000"),
        (["read", "x", "--children-offset", "?"], "childrenOffset: must be of type integer"),
        (["refresh", "--host", "x"], "host: must be one of"),
        (["summarize", "--host", "dsh"], "host: no model to write summaries with"),
    ],
)
def test_a_bad_request_names_the_parameter_and_writes_nothing(home: Home, arguments: list[str], said: str) -> None:
    before = tree(home.workspace)
    result = home.run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(said)
    result = home.run(*arguments, "--json")
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert set(error) == {"code", "parameter", "message"}
    assert error["message"].startswith(said)
    assert error["parameter"] == said.split(":", maxsplit=1)[0]
    assert tree(home.workspace) == before


def test_no_archive_at_all(home: Home) -> None:
    empty = home.root / "empty"
    empty.mkdir()
    result = home.run("search", "x", "--workspace", str(empty))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("workspace: this workspace has no history archive yet")
    told = json.loads(home.run("search", "--json", "--workspace", str(empty)).stdout)
    assert (told["results"], told["reason"]["code"], told["error"]["parameter"]) == ([], "no-archive", "workspace")
    assert not list(empty.iterdir())


def test_a_bad_configuration_is_told(home: Home) -> None:
    home.config.write_text("colour = 1")
    result = home.run("search")
    assert result.exit_code == 2
    assert "colour" in result.stderr


def test_an_ambiguous_id_names_the_hosts(home: Home) -> None:
    write(home.pi / "2.jsonl", pi_session("dsh-session-x", home.workspace))
    home.run("refresh")
    result = home.run("read", "dsh-session-x")
    assert (result.exit_code, result.stderr) == (2, "host: several sources have this id; name one of dsh, pi\n")
    assert home.run("read", "dsh-session-x", "--host", "dsh").exit_code == 0


def test_summaries_are_written_by_each_host_s_own_model(home: Home) -> None:
    home.scribe()
    result = home.run("summarize", "--json")
    assert result.exit_code == 0, result.stderr
    answer = msgspec.json.decode(result.stdout, type=SummarizeAnswer)
    assert (answer.host, answer.written, answer.failed, answer.pending) == (Host.PI, 1, 0, 0)
    result = home.run("summarize", "--no-refresh")
    assert result.stdout == "pi: 0 summaries written, 0 failed, 0 pending\n"
    assert "Digest" in home.run("search", "in short").stdout


def test_a_model_that_fails_is_told(home: Home) -> None:
    home.scribe("sys.exit(1)")
    result = home.run("summarize", "--host", "pi")
    assert result.exit_code == 1
    assert result.stdout == "pi: 0 summaries written, 1 failed, 1 pending\n"
    assert "one: the model failed to write a summary" in result.stderr
    assert "one: the model failed to write a summary" in home.run("refresh").stderr


def test_stopped_by_a_signal_it_says_where_it_is(home: Home) -> None:
    asked = home.root / "asked"
    home.scribe(f"open({str(asked)!r}, 'w').close(); time.sleep(600)")
    command = [sys.executable, "-m", "bridges.cli", "history", "summarize", "--host", "pi"]
    with subprocess.Popen(  # noqa: S603 - our own program
        [*command, "--workspace", str(home.workspace)], env=home.environ, stdout=subprocess.PIPE, text=True
    ) as child:
        _wait_for(asked)
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=20)
    assert (child.returncode, out) == (0, "pi: stopped with 0 summaries written, 1 pending\n")
    nodes = ArchiveFolder(home.workspace, Host.PI).load().archives[NodeId("one")].nodes.values()
    assert not any(isinstance(node, Summary) and node.ready for node in nodes)


def _wait_for(path: Path) -> None:
    until = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_install_pi_writes_an_extension_that_calls_this_program(home: Home) -> None:
    environ: Mapping[str, str] = home.environ
    result = CliRunner().invoke(main, ["history", "install-pi", "--language", "en"], env=environ)
    path = home.native / "agent" / "extensions" / "pbot-history.ts"
    assert (result.exit_code, result.stdout) == (
        0, f"The Pi extension is installed: {path}. It takes effect when Pi starts again\n",
    )  # fmt: skip
    assert f'const COMMAND = ["{sys.executable}", "-m", "bridges.cli"];' in path.read_text()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    (home.native / "file").touch()
    environ = {**environ, "PI_CODING_AGENT_DIR": str(home.native / "file")}
    result = CliRunner().invoke(main, ["history", "install-pi", "--language", "en"], env=environ)
    assert result.exit_code == 1
    assert "cannot be written (NotADirectoryError)" in result.stderr


def test_progress_is_shown_to_people_only(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home.run("refresh").stderr == ""
    shown: list[Sequence[int]] = []

    class Bar:
        pos = 0
        length = 0

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *exc: object) -> None:
            pass

        def update(self, steps: int) -> None:
            self.pos += steps
            shown.append((self.pos, self.length))

    monkeypatch.setattr(past, "_looked_at", lambda: True)
    monkeypatch.setattr("click.progressbar", lambda **_: Bar())
    home.run("refresh")
    assert shown == [(1, 1), (1, 1)]
