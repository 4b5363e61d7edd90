from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from archive.model import Code
from archive.writers import LONGEST_ANSWER, WriterFailed
from archive.writers.endpoint import EndpointWriter
from archive.writers.pi import PiWriter

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SECRET = "sk-not-a-real-key"


@asynccontextmanager
async def endpoint(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}/v1"
    finally:
        await runner.cleanup()


def completion(text: object, finish: str | None = "stop") -> web.Response:
    return web.json_response(
        {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}]}
    )


async def test_the_endpoint_gets_the_prompt_and_the_material_and_nothing_else() -> None:
    seen: list[object] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers["Authorization"], await request.json()))
        return completion(" in short\n")

    async with endpoint(answer) as url:
        writer = EndpointWriter(f"{url}/", "some-model", SECRET)
        assert await writer.write("prompt", "material") == "in short"
    messages = [{"role": "system", "content": "prompt"}, {"role": "user", "content": "material"}]
    assert seen == [(f"Bearer {SECRET}", {"model": "some-model", "stream": False, "messages": messages})]
    assert SECRET not in repr(writer)


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (lambda: web.Response(status=500, text="secret body"), Code.WRITER_FAILED),
        (lambda: web.Response(status=302, headers={"Location": "http://192.0.2.1/"}), Code.WRITER_FAILED),
        (lambda: web.Response(text="{"), Code.WRITER_FAILED),
        (lambda: web.Response(body=b"\xff"), Code.WRITER_FAILED),
        (lambda: web.Response(text="[" * 100_000), Code.WRITER_FAILED),
        (lambda: web.json_response({"choices": []}), Code.WRITER_FAILED),
        (lambda: completion("cut", "length"), Code.WRITER_FAILED),
        (lambda: web.Response(text='{"choices": [{"message": {"content": "\\ud83d"}}]}'), Code.WRITER_FAILED),
        (lambda: completion(None), Code.WRITER_EMPTY),
        (lambda: completion(" \n"), Code.WRITER_EMPTY),
        (lambda: web.Response(body=b"x" * (LONGEST_ANSWER + 1)), Code.WRITER_FAILED),
    ],
)
async def test_answers_that_are_no_summary(response: Callable[[], web.Response], code: Code) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return response()

    async with endpoint(answer) as url:
        with pytest.raises(WriterFailed) as caught:
            await EndpointWriter(url, "m").write("p", "m")
    assert caught.value.code is code
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "no address", "http://[/"])
async def test_an_endpoint_that_is_not_there(url: str) -> None:
    with pytest.raises(WriterFailed) as caught:
        await EndpointWriter(url, "m").write("p", "m")
    assert caught.value.code is Code.WRITER_UNREACHABLE


async def test_an_endpoint_that_is_silent_is_given_up_and_a_cancelled_call_is_hung_up() -> None:
    hung_up = asyncio.Event()
    asked = asyncio.Event()

    async def silent(_request: web.Request) -> web.Response:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            hung_up.set()
        raise AssertionError

    async with endpoint(silent) as url:
        with pytest.raises(WriterFailed) as caught:
            await EndpointWriter(url, "m", seconds=0.05).write("p", "m")
        assert caught.value.code is Code.WRITER_TIMED_OUT
        asked.clear()
        hung_up.clear()
        call = asyncio.create_task(EndpointWriter(url, "m").write("p", "m"))
        await asked.wait()
        call.cancel()
        async with asyncio.timeout(5):
            await hung_up.wait()
        with pytest.raises(asyncio.CancelledError):
            await call


# -- Pi ----------------------------------------------------------------------------------------------------------------


def pi(body: str, tmp_path: Path, **more: float) -> PiWriter:
    """A program in the place of Pi; it sees its arguments as ``argv`` and the material as ``material``."""
    script = tmp_path / "pi.py"
    script.write_text(f"import json, os, sys, time\nargv = sys.argv[1:]\n{body}\n", "utf-8")
    return PiWriter((sys.executable, str(script)), {"PATH": os.environ["PATH"], "TOKEN": SECRET}, **more)


async def test_pi_runs_alone(tmp_path: Path) -> None:
    writer = pi("print(json.dumps([argv, sys.stdin.read(), os.listdir(), sorted(os.environ)]))", tmp_path)
    answer = await writer.write("the prompt", "材料")
    expected = (
        '[["--print", "--no-session", "--no-tools", "--no-extensions", "--no-skills", "--no-prompt-templates", '
        '"--no-themes", "--no-context-files", "--system-prompt", "the prompt"], "\\u6750\\u6599", [], '
    )
    assert answer.startswith(expected)
    assert "HOME" not in answer


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("sys.exit(1)", Code.WRITER_FAILED),
        ("print(' ')", Code.WRITER_EMPTY),
        ("sys.stdin.read(); sys.stdout.write('x' * 2_000_000)", Code.WRITER_FAILED),
        ("os.close(0); print('x'); sys.exit(3)", Code.WRITER_FAILED),
    ],
)
async def test_what_pi_may_do_instead(body: str, code: Code, tmp_path: Path) -> None:
    with pytest.raises(WriterFailed) as caught:
        await pi(body, tmp_path).write("p", "material " * 100_000)
    assert caught.value.code is code


async def test_no_pi_here() -> None:
    with pytest.raises(WriterFailed) as caught:
        await PiWriter(("no-such-program",), {}).write("p", "m")
    assert caught.value.code is Code.WRITER_MISSING


async def test_a_silent_pi_is_ended(tmp_path: Path) -> None:
    with pytest.raises(WriterFailed) as caught:
        await pi("time.sleep(600)", tmp_path, seconds=0.3).write("p", "m")
    assert caught.value.code is Code.WRITER_TIMED_OUT


async def test_a_cancelled_pi_is_ended_with_all_it_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    body = (
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'part')!r}, 'w').write(str(child.pid))\n"
        f"os.rename({str(tmp_path / 'part')!r}, {str(started)!r})\n"
        "time.sleep(600)"
    )
    call = asyncio.create_task(pi(body, tmp_path).write("p", "m"))
    async with asyncio.timeout(10):
        while not started.exists():  # noqa: ASYNC110 - another process knows no event of ours
            await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    child = int(started.read_text())
    async with asyncio.timeout(10):
        while _runs(child):  # noqa: ASYNC110 - nor does this one
            await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
