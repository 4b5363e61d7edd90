"""``/models``, ``/model``, ``/reasonings``, ``/reasoning``: through the whole path, on both host generations."""

from __future__ import annotations

import asyncio

import pytest

from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import CHAT, Bench
from tests.fakes.harness import Session, say

WORDS = Words(Language.EN)
PRO = "deepseek-official/deepseek-v4-pro"


async def bound(desk: Bench) -> Session:
    session = desk.host.session()
    await desk.state.chats.bind(CHAT, SessionId(session.id), expected=await desk.state.chats.get(CHAT))
    return session


def selections(desk: Bench) -> int:
    return sum(call.name in ("session.selectModel", "session/selectModel") for call in desk.host.calls)


async def test_the_list_is_numbered_and_marks_the_current_model(desk: Bench) -> None:
    flash = f"deepseek-official/{desk.host.world.default_model}"
    for _ in range(2):
        lines = (await desk.ask("/models")).splitlines()
        assert lines[0] == WORDS(Key.MODELS_HEADER, total=2)
        assert lines[1] == f"1. {flash} · Flash · {WORDS(Key.MODELS_CURRENT)}"
        assert lines[2] == f"2. {PRO} · DeepSeek-V4-Pro"
        assert lines[-1] == WORDS(Key.MODELS_FOOTER)
        assert desk.host.writes == []
        await bound(desk)


async def test_a_provider_that_cannot_be_listed_is_named(desk: Bench) -> None:
    catalog = {"groups": [], "failures": [{"id": "x", "name": "Broken\u202e Inc."}]}
    for name in ("llm.models", "session/modelCatalog"):
        desk.host.fail(name, value=catalog)
    assert WORDS(Key.MODELS_MISSING, providers="Broken Inc.") in await desk.ask("/models")


@pytest.mark.parametrize(
    ("argument", "effort"),
    [("2", "high"), (PRO, "high"), ("deepseek-v4-pro", "high"), ("2 low", "low"), (f"{PRO} MAX", "max")],
)
async def test_a_model_is_chosen_and_the_new_default_is_told(desk: Bench, argument: str, effort: str) -> None:
    session = await bound(desk)
    await desk.ask("/models")
    reply = await desk.ask(f"/model {argument}")
    assert reply == WORDS(Key.MODEL_DONE, model=PRO, effort=effort)
    assert "default model of all new sessions" in reply
    assert (session.model, session.effort) == ("deepseek-v4-pro", effort)
    assert await desk.ask("/model") == WORDS(Key.MODEL_CURRENT, model=PRO, effort=effort)
    assert await desk.ask("/reasoning") == WORDS(Key.MODEL_CURRENT, model=PRO, effort=effort)


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("/model 1", WORDS(Key.LIST_NONE, number="1", command="/models")),
        ("/model nothing", WORDS(Key.MODEL_UNKNOWN)),
        ("/model other/deepseek-v4-pro", WORDS(Key.MODEL_UNKNOWN)),
        ("/model deepseek-v4-pro huge", WORDS(Key.REASONING_UNKNOWN, efforts="off, low, high, max")),
        ("/model a b c", WORDS(Key.MODEL_USAGE)),
        ("/models all", WORDS(Key.MODELS_USAGE)),
        ("/reasoning 1", WORDS(Key.LIST_NONE, number="1", command="/reasonings")),
        ("/reasoning huge", WORDS(Key.REASONING_UNKNOWN, efforts="off, low, high, max")),
        ("/reasoning a b", WORDS(Key.REASONING_USAGE)),
        ("/reasonings x", WORDS(Key.REASONINGS_USAGE)),
    ],
)
async def test_what_cannot_be_chosen(desk: Bench, text: str, reply: str) -> None:
    await bound(desk)
    assert await desk.ask(text) == reply
    assert desk.host.writes == []


async def test_a_model_that_two_providers_have_wants_its_full_name(desk: Bench) -> None:
    await bound(desk)
    models = [{"id": "same", "name": "Same"}]
    catalog = {"groups": [{"id": name, "name": name, "models": models} for name in ("a", "b")], "failures": []}
    for name in ("session.models", "session/modelCatalog"):
        desk.host.fail(name, value=catalog)
    assert await desk.ask("/model same") == WORDS(Key.MODEL_AMBIGUOUS, model="same")


async def test_a_model_that_left_the_list_is_told(desk: Bench) -> None:
    await bound(desk)
    await desk.ask("/models")
    del desk.host.world.models["deepseek-v4-pro"]
    assert await desk.ask("/model 2") == WORDS(Key.LIST_CHANGED, command="/models")
    assert selections(desk) == 0


@pytest.mark.parametrize("text", ["/model deepseek-v4-pro", "/reasoning low", "/reasoning --default"])
async def test_without_a_session_there_is_nothing_to_choose_for(desk: Bench, text: str) -> None:
    assert await desk.ask(text) == WORDS(Key.CHAT_UNBOUND)
    assert desk.host.writes == []
    assert WORDS(Key.MODELS_CURRENT) in await desk.ask("/models")


@pytest.mark.parametrize("text", ["/model deepseek-v4-pro", "/reasoning low"])
async def test_a_running_turn_keeps_its_model(desk: Bench, text: str) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say(hold, "done"))
    await desk.say("hello")
    await desk.host.until(lambda: any(session.running for session in desk.host.world.sessions.values()))
    assert await desk.ask(text) == WORDS(Key.MODEL_BUSY)
    assert selections(desk) == 0
    hold.set()
    await desk.channel.until_sent(2)


async def test_a_session_that_is_gone_is_told(desk: Bench) -> None:
    await desk.state.chats.bind(CHAT, SessionId("session-gone"), expected=await desk.state.chats.get(CHAT))
    assert await desk.ask("/model deepseek-v4-pro") == WORDS(Key.CHAT_SESSION_GONE)


async def test_efforts_are_listed_and_chosen(desk: Bench) -> None:
    session = await bound(desk)
    lines = (await desk.ask("/reasonings")).splitlines()
    flash = f"deepseek-official/{desk.host.world.default_model}"
    assert lines[0] == WORDS(Key.REASONINGS_HEADER, model=flash)
    assert [line.split(" · ")[0] for line in lines[1:5]] == ["1. off", "2. low", "3. high", "4. max"]
    assert WORDS(Key.REASONINGS_DEFAULT) in lines[3]
    assert await desk.ask("/reasoning 2") == WORDS(Key.MODEL_DONE, model=flash, effort="low")
    assert WORDS(Key.REASONINGS_CURRENT) in (await desk.ask("/reasoninglist")).splitlines()[2]
    assert await desk.ask("/reasoning MAX") == WORDS(Key.MODEL_DONE, model=flash, effort="max")
    assert await desk.ask("/reasoning --default") == WORDS(Key.MODEL_DONE, model=flash, effort="high")
    assert session.effort == "high"


async def test_a_model_without_a_choice_of_efforts_says_so(desk: Bench) -> None:
    await bound(desk)
    group = {"id": "p", "name": "P", "models": [{"id": "plain", "name": "Plain"}]}
    choice = {"provider": "p", "model": "plain"}
    catalog = {"groups": [group], "failures": [], "default": choice, "current": choice}
    for name in ("session/modelCatalog", "session.models"):
        desk.host.fail(name, value=catalog)
    assert await desk.ask("/reasonings") == WORDS(Key.REASONINGS_NONE, model="p/plain")
    assert await desk.ask("/reasoning") == WORDS(Key.MODEL_CURRENT, model="p/plain", effort=WORDS(Key.MODEL_NO_EFFORT))


@pytest.mark.parametrize("text", ["/model", "/reasoning", "/reasonings"])
async def test_a_host_that_names_no_model_is_told_of(desk: Bench, text: str) -> None:
    for name in ("session/modelCatalog", "llm.models"):
        desk.host.fail(name, value={"groups": [], "failures": []})
    desk.host.fail("host.describe", value={"version": "0.0.1"})
    assert await desk.ask(text) == WORDS(Key.MODEL_NONE)


async def test_a_choice_that_got_no_answer_is_not_called_done(desk: Bench) -> None:
    await bound(desk)
    desk.fail("selectModel", drop="before", effect=True)
    reply = await desk.ask("/model deepseek-v4-pro")
    assert "not certain" in reply
    assert "Reference H-" in reply
    assert selections(desk) == 1


async def test_what_follows_a_choice_is_answered_by_the_new_model(desk: Bench) -> None:
    session = await bound(desk)
    for text in ("/model deepseek-v4-pro", "hello", "and more"):
        await desk.say(text)
    texts = await desk.channel.until_sent(2)
    assert texts[0] == WORDS(Key.MODEL_DONE, model=PRO, effort="high")
    answers = [event for event in session.log if event["type"] == "assistant/message"]
    assert "deepseek-v4-pro" in str(answers[-1])
