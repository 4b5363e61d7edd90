"""The demo model on a loopback port: the two chat calls, the model list and the small files call of a host."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from typing import Final, Self

import msgspec
from aiohttp import web

from bridges.demo_model.dialects import Completions, Dialect, Messages
from bridges.demo_model.files import Files, failure
from bridges.demo_model.request import ModelRequest, Purpose
from bridges.demo_model.script import BadScript, Step
from i18n import Key, Language, Words

BODY_BYTES: Final = 64 * 1024 * 1024
"""Most a request may hold: hosts add their own log to it."""
ECHOED: Final = 400
"""Characters of the question that are echoed."""

_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


class DemoModel:
    """A server in this process; an async context manager. Nothing is checked, least of all the key.

    An answer is, in this order: the title or summary a host asks for itself; the step that is due of a script in the
    prompt; the next of ``queue``; an echo that says, in the question's language, that this is a demo.
    """

    def __init__(self, *, pace: float = 0.0) -> None:
        self.queue: deque[Step] = deque()
        """Steps for the next chat requests that have no script of their own."""
        self.asked: Counter[Purpose] = Counter()
        """How often the model was asked, and why: what must not change while something only reads."""
        self._pace = pace
        self._files = Files()
        self._runner = web.AppRunner(
            self._app(), access_log=None, shutdown_timeout=0.2, handler_cancellation=True, keepalive_timeout=30
        )
        self._url = ""

    @property
    def url(self) -> str:
        """Base URL for a host, without a trailing slash."""
        return self._url

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self._url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=BODY_BYTES)
        for prefix in ("", "/v1"):
            app.router.add_post(f"{prefix}/messages", self._messages)
            app.router.add_post(f"{prefix}/chat/completions", self._completions)
            app.router.add_get(f"{prefix}/models", self._models)
            self._files.add_to(app, prefix)
        return app

    # -- chat -------------------------------------------------------------------------------------------------------

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, Messages)

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, Completions)

    async def _answer(self, request: web.Request, dialect: type[Messages | Completions]) -> web.StreamResponse:
        try:
            asked = msgspec.json.decode(await request.read(), type=ModelRequest)
        except msgspec.MsgspecError as error:
            return failure(400, f"not a request of a known dialect: {error}")
        purpose = asked.purpose(request.headers)
        self.asked[purpose] += 1
        step = self._choose(asked, purpose)
        await asyncio.sleep(step.wait)
        if step.status is not None:
            return failure(step.status, "the script says so")
        return await _stream(request, step, dialect(step, asked.model, asked.size()))

    def _choose(self, asked: ModelRequest, purpose: Purpose) -> Step:
        question = asked.question().strip()
        words = Words(Language.ZH if _HAN.search(question) else Language.EN)
        match purpose:
            case Purpose.TITLE:
                return Step(text=words(Key.DEMO_TITLE))
            case Purpose.COMPACTION:
                return Step(text=words(Key.DEMO_SUMMARY))
            case Purpose.CHAT:
                return self._chat(asked, question, words)

    def _chat(self, asked: ModelRequest, question: str, words: Words) -> Step:
        try:
            scripted = asked.due_step()
        except BadScript as error:
            return Step(text=words(Key.DEMO_BAD_SCRIPT, cause=str(error)))
        if scripted is not None:
            return scripted
        if self.queue:
            return self.queue.popleft()
        if not question:
            return Step(text=words(Key.DEMO_SCRIPT_OVER))
        return Step(text=words(Key.DEMO_ECHO, text=question[:ECHOED]), piece=4, delay=self._pace)

    # -- the rest of a model's address ------------------------------------------------------------------------------

    async def _models(self, _request: web.Request) -> web.Response:
        models = [{"id": name, "object": "model"} for name in ("deepseek-v4-flash", "deepseek-v4-pro")]
        return web.json_response({"object": "list", "data": models})


async def _stream(request: web.Request, step: Step, answer: Dialect) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-store"})
    await response.prepare(request)
    try:
        for frame in answer.said():
            await response.write(frame)
            await asyncio.sleep(step.delay)
        if step.end == "hang":
            await asyncio.Event().wait()
        if step.end == "drop":
            if request.transport is not None:
                request.transport.abort()
            return response
        for frame in answer.ending():
            await response.write(frame)
    except ConnectionError:
        pass  # the host cancelled the turn, or died
    return response
