"""A real Pi: its sessions are found, its users and its model ask through our extension, its own model summarises."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from archive.answers import SearchAnswer
from archive.files import ArchiveFolder
from archive.model import EndReason, Host, Summary
from archive.request import Search
from archive.service import HistoryService, LocalPi
from archive.sources.pi_locate import PiHome
from archive.writers import WriterFailed
from archive.writers.pi import PiWriter
from bridges.demo_model import DemoModel, Step, Tool
from tests.archive.native import tree
from tests.live.pi import PiPlace, command
from tests.live.talk import until

pytestmark = [pytest.mark.pi_live, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]


@pytest.fixture
def place(tmp_path: Path, model: DemoModel) -> PiPlace:
    return PiPlace(tmp_path, model)


def service(place: PiPlace) -> HistoryService:
    return HistoryService(place.workspace, {Host.PI: LocalPi(PiHome(place.agent))})


def summaries(place: PiPlace) -> list[Summary]:
    archives = ArchiveFolder(place.workspace, Host.PI).load().archives.values()
    return [node for each in archives for node in each.nodes.values() if isinstance(node, Summary) and node.ready]


async def eventually(condition: Callable[[], bool]) -> None:
    async def holds() -> bool:
        return condition()

    await until(holds)


async def test_what_pi_did_is_found(place: PiPlace, model: DemoModel) -> None:
    async with place.started() as pi:
        model.queue.append(Step(text="It is 数据库."))
        await pi.ask("What is the storage?")
        model.queue += [Step(text="I look.", tools=(Tool("ls", {}),)), Step(text="Nothing there.")]
        await pi.ask("Look around")
        model.queue.append(Step(status=400))
        await pi.ask("Fail, please")
    sessions = place.agent / "sessions"
    before = tree(sessions)
    answer = await service(place).search(Search("数据"))
    assert tree(sessions) == before
    assert [result.preview for result in answer.results] == ["What is the storage? It is 数据库."]
    (archive,) = ArchiveFolder(place.workspace, Host.PI).load().archives.values()
    assert [(pair.answer, pair.end_reason) for pair in archive.pairs.values()] == [
        ("It is 数据库.", EndReason.STOP),
        ("Nothing there.", EndReason.STOP),
        ("", EndReason.ERROR),
    ]


async def test_people_and_the_model_ask_through_the_extension(place: PiPlace, model: DemoModel) -> None:
    async with place.started() as pi:
        model.queue.append(Step(text="The answer is 42."))
        await pi.ask("What is the answer?")
        shown, how = await pi.command("/pbot history THE ANSWER IS")
        assert how == "info"
        assert "What is the answer?" in shown
        shown, how = await pi.command("/pbot history")
        assert (how, "Past session" in shown) == ("info", True)
        shown, _ = await pi.command("/pbot history absent --limit")
        assert shown.startswith("Nothing holds this text")

        search = Tool("pbot_history", {"action": "search", "query": "the answer is", "limit": 1})
        bad = Tool("pbot_history", {"action": "search", "limit": 99})
        model.queue += [Step(tools=(search, bad)), Step(text="I searched.")]
        since = len(pi.events)
        await pi.ask("Search for it")
        results = [event["result"] for event in pi.events[since:] if event["type"] == "tool_execution_end"]
        # Both ran at once, so either may have ended first.
        texts = sorted(map(_text, results), key=lambda text: "error" in json.loads(text))
        found = msgspec.json.decode(texts[0], type=SearchAnswer)
        assert [result.preview for result in found.results] == ["What is the answer? The answer is 42."]
        assert json.loads(texts[1])["error"]["parameter"] == "limit"


class _Content(msgspec.Struct):
    text: str


class _ToolResult(msgspec.Struct):
    content: tuple[_Content]


def _text(result: object) -> str:
    return msgspec.convert(result, _ToolResult).content[0].text


async def test_four_normal_ends_make_a_summary_by_pi_s_own_model(place: PiPlace, model: DemoModel) -> None:
    async with place.started() as pi:
        for number in range(4):
            model.queue.append(Step(text=f"answer {number}"))
            await pi.ask(f"question {number}")
        await eventually(lambda: bool(summaries(place)))
    (summary,) = summaries(place)
    assert summary.text is not None
    assert '"question 0"' in summary.text, "the demo model repeats its material"
    (native,) = (place.agent / "sessions").rglob("*.jsonl")
    assert native.read_text().count('"role":"assistant"') == 4, "summaries leave no session"


async def test_new_input_takes_the_pen_away(place: PiPlace, model: DemoModel) -> None:
    async with place.started() as pi:
        for number in range(4):
            model.queue.append(Step(text=f"answer {number}"))
            if number == 3:
                model.queue.append(Step(text="half a summ", end="hang"))
            asked = sum(model.asked.values())
            await pi.ask(f"question {number}")
        await eventually(lambda: sum(model.asked.values()) == asked + 2)
        model.queue.append(Step(text="fine"))
        await pi.ask("Something new")
        await eventually(lambda: bool(summaries(place)))
    (summary,) = summaries(place)
    assert "half a summ" not in (summary.text or "")


async def test_the_writer_gives_the_model_nothing_but_the_prompt_and_the_material(
    place: PiPlace, model: DemoModel
) -> None:
    (place.workspace / "AGENTS.md").write_text("SECRET CONTEXT")
    writer = PiWriter((command(),), place.environ)
    assert "the material" in await writer.write("Repeat.", "the material")
    model.queue.append(Step(status=400))
    with pytest.raises(WriterFailed):
        await writer.write("Repeat.", "the material")
    assert not (place.agent / "sessions").exists()
