"""``/pbot history`` over archives in memory: what it says, how much of it, and how to go on."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest

from archive.answers import ReadAnswer, SearchAnswer
from archive.library import Library
from archive.model import Code, EndReason, Host, Notice, SessionArchive
from archive.read import read
from archive.request import Read, Search
from archive.search import search
from commands.budget import LIMITS, split, utf16_length
from commands.model import ChatKind, CommandResult, Outcome
from i18n import Key, Language
from tests.archive.libraries import library, pair, session, summarised
from tests.commands.rig import Rig, ScriptedHost
from tests.fakes.clock import FakeClock


class InMemory:
    """The archive's service without files."""

    def __init__(self, shelves: Library) -> None:
        self._shelves = shelves

    async def search(self, asked: Search) -> SearchAnswer:
        return search(self._shelves, asked)

    async def read(self, asked: Read) -> ReadAnswer:
        return read(self._shelves, asked)


class Silent(InMemory):
    """A service that never answers."""

    async def search(self, asked: Search) -> SearchAnswer:
        await asyncio.Event().wait()
        raise AssertionError


def rig(*archives: SessionArchive, language: Language = Language.EN) -> Rig:
    made = Rig(ScriptedHost.of(), language=language)
    made.services = replace(made.services, past=InMemory(library(*archives)))
    return made


def text(result: CommandResult) -> str:
    assert len(result.segments) <= LIMITS.segments
    assert all(utf16_length(segment) <= LIMITS.segment for segment in result.segments)
    whole = "".join(result.segments)
    assert utf16_length(whole) <= LIMITS.reply
    return whole


def onward(reply: str, label: str) -> str:
    """Return the command that a reply names behind ``label``."""
    (line,) = (line for line in reply.splitlines() if line.startswith(label))
    return line.removeprefix(label).strip()


async def test_a_keyword_is_searched_for() -> None:
    made = rig(session("s", [pair(0, "why the database?"), pair(1, "other", at=1)]))
    result = await made.ask("/pbot history DATABASE")
    reply = text(result)
    assert result.outcome is Outcome.OK
    assert reply.startswith("History search | DATABASE | 1–1\n\n1. Question and answer · pi · 2026-01-01")
    assert "why the database?\nid: s-0" in reply
    opened = text(await made.ask(onward(reply, "Open one:")))
    assert opened.startswith("Question and answer · pi · 2026-01-01")
    assert "\n\nwhy the database?\n\nAbove:\n- why the database? (s)" in opened


async def test_everything_can_be_reached_by_what_replies_say() -> None:
    many = [pair(number, f"needle 数据 {number} " + "长" * 150, at=number) for number in range(60)]
    made = rig(session("s", many))
    seen: list[str] = []
    reply = text(await made.ask("/pbot history needle"))
    while True:
        seen += re.findall(r"^id: (.*)$", reply, re.MULTILINE)
        if "More results:" not in reply:
            break
        reply = text(await made.ask(onward(reply, "More results:")))
    assert seen == [f"s-{number}" for number in range(59, -1, -1)]


async def test_a_long_text_is_read_to_its_end() -> None:
    question, answer = "问😀" * 900, "answer " * 900
    made = rig(session("s", [pair(0, question, answer=answer)]))
    bodies: list[str] = []
    command = '/pbot history {"action":"read","id":"s-0"}'
    while command:
        reply = text(await made.ask(command))
        bodies.append(reply.split("\n\n", 1)[1].split("\n\nAbove:")[0])
        command = onward(reply, "Read on:") if "Read on:" in reply else ""
    assert "".join("".join(bodies).split()) == "".join((question + answer).split())


async def test_a_directory_is_walked_page_by_page() -> None:
    made = session("s", [pair(number, f"q{number} " + "x" * 200, at=number) for number in range(45)])
    made = replace(made, branches=tuple((name,) for name in made.nodes))
    desk = rig(made)
    seen: list[str] = []
    reply = text(await desk.ask("/pbot history"))
    assert reply.startswith("Past sessions | 1–1\n\n1. Past session · pi")
    reply = text(await desk.ask(onward(reply, "Open one:")))
    while True:
        seen += re.findall(r"^- q\d+ x+ \((s-\d+)\)$", reply, re.MULTILINE)
        if "More entries below:" not in reply:
            break
        reply = text(await desk.ask(onward(reply, "More entries below:")))
    assert seen == list(made.nodes)


async def test_what_is_particular_is_said() -> None:
    pairs = [pair(number, f"q{number}", at=number) for number in range(4)]
    pairs[3] = pair(3, "q3", end=EndReason.ABORTED, at=3)
    reply = text(await rig(session("s", pairs)).ask("/pbot history"))
    assert "· unfinished · digest not written yet" in reply
    reply = text(await rig(summarised(session("s", pairs), "in short")).ask("/pbot history in short"))
    assert "1. Digest · pi" in reply


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/pbot history {", "request: not valid JSON"),
        ('/pbot history {"action":"search","query":"\\ud83d"}', "request: not valid JSON"),
        ('/pbot history {"action":"forget"}', "action: must be search or read"),
        ('/pbot history {"query":"x"}', "action: this parameter is missing"),
        ('/pbot history {"action":"search","limit":0}', "limit: must be between 1 and 50"),
        ('/pbot history {"action":"search","limit":"3"}', "limit: must be of type integer"),
        ('/pbot history {"action":"search","from":"soon"}', "from: must be an ISO date or time"),
        ('/pbot history {"action":"search","host":"x"}', "host: must be one of the sources pi, dsh"),
        ('/pbot history {"action":"search","colour":1}', "colour: there is no such parameter"),
        ('/pbot history {"action":"read"}', "id: this parameter is missing"),
        ('/pbot history {"action":"read","id":"no"}', "id: no entry of the archive has this id"),
        ('/pbot history {"action":"read","id":"both"}', "host: several sources have this id; name one of dsh, pi"),
        ("/pbot", "Usage: /pbot history"),
        ("/pbot future", "Usage: /pbot history"),
        ("/pbot historyx", "Usage: /pbot history"),
    ],
)
async def test_bad_requests_name_what_is_wrong(command: str, said: str) -> None:
    made = rig(session("both", [pair(0, "x")]), session("both", [pair(0, "x")], host=Host.DSH))
    result = await made.ask(command)
    assert result.outcome is Outcome.REFUSED
    assert text(result).startswith(said)


async def test_nothing_found_says_why() -> None:
    made = rig(session("s", [pair(0, "x")]))
    assert text(await made.ask("/pbot history absent")).startswith("Nothing holds this text (1 sessions")
    said = text(await made.ask('/pbot history {"action":"search","host":"dsh"}'))
    assert said == "There are no past sessions of dsh"
    assert text(await rig().ask("/pbot history")).startswith("This workspace has no history archive yet")


async def test_warnings_are_few_and_say_how_many_more() -> None:
    notices = tuple(Notice(Code.ARCHIVE_DAMAGED, f"file{number}\n") for number in range(5))
    made = rig()
    damaged = replace(library(session("s", [pair(0, "x")])), notices=notices)
    made.services = replace(made.services, past=InMemory(damaged))
    reply = text(await made.ask("/pbot history x"))
    assert "Note: file0: the archive file is damaged; the others are used\nNote: file1" in reply
    assert reply.endswith("2 more notes")
    assert "file3" not in reply


async def test_only_in_private() -> None:
    result = await rig(session("s", [pair(0, "x")])).ask("/pbot history x", kind=ChatKind.GROUP)
    assert text(result) == "Use /pbot history in a private chat with the bot"


async def test_without_an_archive_and_without_an_answer() -> None:
    made = Rig(ScriptedHost.of(), language=Language.EN)
    assert (await made.ask("/pbot history")).segments == (made.words(Key.PBOT_NONE_HERE),)
    async with FakeClock(autojump=True) as clock:
        made.services = replace(made.services, past=Silent(library()), clock=clock)
        result = await made.ask("/pbot history x")
    assert result.outcome is Outcome.FAILED
    assert result.segments == (made.words(Key.PBOT_TIMED_OUT, reference="H-000001"),)


async def test_every_reply_keeps_the_budget_in_chinese_too() -> None:
    long = [pair(number, "词" * 4000, answer="答" * 4000, at=number) for number in range(50)]
    made = rig(session("s" * 120, long, title="题" * 400), language=Language.ZH)
    for command in ("/pbot history", "/pbot history 词", '/pbot history {"action":"read","id":"%s-1"}' % ("s" * 120)):
        reply = text(await made.ask(command))
        assert len(split(reply)) <= LIMITS.segments
        assert json.dumps(reply)
