"""The demo model over a real socket, in both dialects."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping

import aiohttp
import pytest

from bridges.demo_model import DemoModel, Step, Tool, files, server
from bridges.demo_model.request import Purpose
from bridges.demo_model.script import BadScript, last_script

PATHS = ("/v1/messages", "/chat/completions")
ECHO_EN = "This is a demo, not a model: it can only repeat. You said: "
ECHO_ZH = "这里是演示，没有接入模型，只会复述。你说："


@pytest.fixture
async def model() -> AsyncIterator[DemoModel]:
    async with DemoModel() as model:
        yield model


@pytest.fixture
async def http(model: DemoModel) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(model.url) as http:
        yield http


def user(*texts: str) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


ASSISTANT = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "bash", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "out"}]}


class Answer:
    """A stream put together again, whichever dialect it came in."""

    def __init__(self, raw: str) -> None:
        self.events = [json.loads(line[6:]) for line in raw.split("\n") if line.startswith("data: {")]
        self.whole = raw.endswith("data: [DONE]\n\n") or "event: message_stop" in raw
        self.text = "".join(self._found("text", "content"))
        self.reasoning = "".join(self._found("thinking", "reasoning_content"))
        self.arguments = "".join(self._found("partial_json", "arguments"))
        self.pieces = len(self._found("text", "content"))
        self.finish = next(iter(self._found("stop_reason", "finish_reason")), None)

    def _found(self, *names: str) -> list[str]:
        """Values of the deltas under any of ``names``, empty ones left out."""
        found = []
        for event in self.events:
            choices = event.get("choices") or [{}]
            calls = choices[0].get("delta", {}).get("tool_calls") or [{}]
            places = [event.get("delta", {}), choices[0], choices[0].get("delta", {}), calls[0].get("function", {})]
            found += [place[name] for place in places for name in names if place.get(name)]
        return found


async def ask(
    http: aiohttp.ClientSession, path: str, *messages: Mapping[str, object], system: str = "", compact: bool = False
) -> Answer:
    body = {"model": "m", "stream": True, "messages": messages, "tools": [{"name": "bash"}], "dsh_session_log": [1]}
    if system:
        del body["tools"]
        body["system"] = system
    headers = {"x-deepseek-harness-compact": "1"} if compact else {}
    async with http.post(path, json=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        return Answer(await response.text())


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("question", "echo"), [("say hi", ECHO_EN), ("你好 world", ECHO_ZH)])
async def test_it_echoes_in_small_pieces_and_says_what_it_is(
    http: aiohttp.ClientSession, path: str, question: str, echo: str
) -> None:
    answer = await ask(http, path, user(question, "context of the host's own"))
    assert answer.text == echo + question
    assert answer.pieces > 5
    assert answer.whole
    assert answer.finish in {"end_turn", "stop"}


async def test_a_long_question_is_not_echoed_for_ever(http: aiohttp.ClientSession) -> None:
    answer = await ask(http, PATHS[0], user("x" * 10_000))
    assert answer.text == ECHO_EN + "x" * server.ECHOED


@pytest.mark.parametrize("path", PATHS)
async def test_a_script_plays_step_by_step(http: aiohttp.ClientSession, path: str) -> None:
    steps = [
        {"reasoning": "hmm", "text": "look", "tools": [{"name": "bash", "arguments": {"command": "ls"}}]},
        {"text": "done", "finish": "length"},
    ]
    prompt = user("please #demo " + json.dumps({"steps": steps}))
    first = await ask(http, path, prompt)
    assert (first.reasoning, first.text, json.loads(first.arguments)) == ("hmm", "look", {"command": "ls"})
    assert first.finish in {"tool_use", "tool_calls"}
    second = await ask(http, path, prompt, ASSISTANT, RESULT)
    assert (second.text, second.finish) == ("done", {PATHS[0]: "max_tokens", PATHS[1]: "length"}[path])
    over = await ask(http, path, prompt, ASSISTANT, RESULT, ASSISTANT, RESULT)
    assert over.text == "The demo script is over."
    after = await ask(http, path, prompt, ASSISTANT, RESULT, ASSISTANT, user("and now?"))
    assert after.text == ECHO_EN + "and now?"


async def test_the_newest_script_counts_and_one_inside_another_does_not(http: aiohttp.ClientSession) -> None:
    inner = '#demo {"steps": [{"text": "inner"}]}'
    outer = json.dumps({"steps": [{"text": "outer", "tools": [{"name": "task", "arguments": {"prompt": inner}}]}]})
    answer = await ask(http, PATHS[0], user(inner), ASSISTANT, user(f"#demo{outer} tell me about #demo, too"))
    assert answer.text == "outer"


async def test_a_script_with_a_mistake_is_explained(http: aiohttp.ClientSession) -> None:
    for script, cause in [
        ('{"steps": [{"txet": "x"}]}', "txet"),
        ('{"steps": ', "Expecting value"),
        ('{"steps": [{"delay": 1e9}]}', "delay"),
    ]:
        answer = await ask(http, PATHS[0], user(f"#demo {script}"))
        assert answer.text.startswith("The demo cannot play this script: ")
        assert cause in answer.text


def test_arguments_may_be_broken_text() -> None:
    assert Tool("bash", '{"command": ').json == '{"command": '
    assert last_script("no script, just #demo") is None
    with pytest.raises(BadScript):
        last_script("#demo " + '{"a":' * 100_000)


async def test_a_title_and_a_summary_are_no_chat(model: DemoModel, http: aiohttp.ClientSession) -> None:
    model.queue.append(Step(text="for the chat"))
    title = await ask(http, PATHS[0], user('["你好"]'), system="Create a concise title for a session.")
    assert title.text == "演示会话"
    in_messages = {"role": "system", "content": "Create a concise title."}
    async with http.post(PATHS[1], json={"messages": [in_messages, user("hi")]}) as response:
        assert Answer(await response.text()).text == "Demo chat"
    summary = await ask(http, PATHS[0], user("hi"), compact=True)
    assert summary.text == "A demo, not a model: it cannot sum up what was said."
    assert (await ask(http, PATHS[0], user("hi"))).text == "for the chat"
    assert model.asked == {Purpose.TITLE: 2, Purpose.COMPACTION: 1, Purpose.CHAT: 1}


@pytest.mark.parametrize("path", PATHS)
async def test_it_fails_when_told(http: aiohttp.ClientSession, path: str) -> None:
    for status, kind in [(400, "invalid_request_error"), (503, "api_error")]:
        async with http.post(path, json={"messages": [user(f'#demo {{"steps":[{{"status":{status}}}]}}')]}) as response:
            assert response.status == status
            assert (await response.json())["error"]["type"] == kind


@pytest.mark.parametrize("path", PATHS)
async def test_it_drops_the_line_when_told(model: DemoModel, http: aiohttp.ClientSession, path: str) -> None:
    model.queue.append(Step(text="half", end="drop"))
    with pytest.raises(aiohttp.ClientPayloadError):
        await ask(http, path, user("hi"))


async def test_it_hangs_when_told_until_the_caller_leaves(model: DemoModel, http: aiohttp.ClientSession) -> None:
    model.queue.append(Step(text="half of", end="hang", delay=0.001, wait=0.001))
    async with http.post(PATHS[0], json={"messages": [user("hi")]}) as response:
        assert b"message_start" in await response.content.readany()
    assert (await ask(http, PATHS[0], user("next"))).text == ECHO_EN + "next"


@pytest.mark.parametrize("body", [b"{", b'{"messages": 1}', b"\xff", b"[]"])
async def test_what_is_no_request_is_refused(http: aiohttp.ClientSession, body: bytes) -> None:
    async with http.post(PATHS[0], data=body) as response:
        assert response.status == 400


async def test_bodies_are_bounded(http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_BYTES", 1000)
    async with DemoModel() as small, http.post(f"{small.url}/v1/messages", data=b" " * 2000) as response:
        assert response.status == 413


async def test_models_are_listed(http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/models") as response:
        assert [entry["id"] for entry in (await response.json())["data"]]


@pytest.mark.parametrize(("prefix", "stamp"), [("", int), ("/v1", str)])
async def test_files_are_described_and_forgotten(
    http: aiohttp.ClientSession, prefix: str, stamp: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FILES", 2)
    names = []
    for number in range(3):
        form = aiohttp.FormData()
        form.add_field("purpose", "vision")
        form.add_field("file", b"abc", filename=f"{number}.png", content_type="image/png")
        async with http.post(f"{prefix}/files", data=form) as response:
            described = await response.json()
        assert (described["filename"], described["mime_type"]) == (f"{number}.png", "image/png")
        assert described["size_bytes"] == described["bytes"] == 3
        assert isinstance(described["created_at"], stamp)
        names.append(described["id"])
    async with http.get(f"{prefix}/files") as response:
        assert [entry["id"] for entry in (await response.json())["data"]] == names[1:]
    async with http.get(f"{prefix}/files/{names[0]}") as response:
        assert response.status == 404
    async with http.get(f"{prefix}/files/{names[1]}") as response:
        assert (await response.json())["id"] == names[1]
    async with http.delete(f"{prefix}/files/{names[1]}") as response:
        assert (await response.json())["deleted"]
    async with http.get(f"{prefix}/files/{names[1]}") as response:
        assert response.status == 404


async def test_a_form_without_a_file_is_refused(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/files", data={"purpose": "vision"}) as response:
        assert response.status == 400
