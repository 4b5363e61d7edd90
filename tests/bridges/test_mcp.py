"""The MCP server as a client of the official SDK sees it, in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from archive.answers import ReadAnswer, SearchAnswer
from tests.archive.native import tree
from tests.bridges.test_history_cli import Home


@asynccontextmanager
async def client(home: Home, *options: str) -> AsyncIterator[ClientSession]:
    arguments = ["-m", "bridges.cli", "mcp", "--workspace", str(home.workspace), *options]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=home.environ)
    with (home.root / "errors").open("w") as errors:
        async with (
            stdio_client(server, errlog=errors) as (incoming, outgoing),
            ClientSession(incoming, outgoing) as made,
        ):
            await made.initialize()
            yield made


async def call(session: ClientSession, **arguments: object) -> tuple[bool, str]:
    """Call the tool; return whether it failed, and its answer as JSON text."""
    result = await session.call_tool("pbot_history", arguments)
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert json.loads(content.text) == result.structuredContent
    return bool(result.isError), content.text


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def test_the_tool_searches_and_reads(home: Home) -> None:
    before = tree(home.native)
    async with client(home) as session:
        (tool,) = (await session.list_tools()).tools
        assert tool.name == "pbot_history"
        assert tool.inputSchema["required"] == ["action"]
        failed, text = await call(session, action="search", query="database")
        assert not failed
        (result,) = msgspec.json.decode(text, type=SearchAnswer).results
        assert [(match.where, match.start, match.end) for match in result.matches] == [("answer", 18, 26)]
        failed, text = await call(session, action="read", id=result.id, limit=3)
        assert not failed
        page = msgspec.json.decode(text, type=ReadAnswer)
        assert (page.text, page.next_offset, page.end_reason) == ("数据库", 3, "stop")
    assert tree(home.native) == before
    assert (home.root / "errors").read_text() == ""


async def test_only_the_host_it_serves_is_refreshed(home: Home) -> None:
    async with client(home, "--host", "pi") as session:
        _, text = await call(session, action="search")
        assert [result.id for result in msgspec.json.decode(text, type=SearchAnswer).results] == ["one"]
    assert not (home.workspace / ".dsh").exists()


BAD: list[tuple[dict[str, object], str, str]] = [
    ({}, "missing", "action"),
    ({"action": "forget"}, "unknown-action", "action"),
    ({"action": "search", "limit": 51}, "out-of-range", "limit"),
    ({"action": "search", "limit": "many"}, "wrong-type", "limit"),
    ({"action": "search", "to": "soon"}, "bad-time", "to"),
    ({"action": "read", "id": "absent"}, "unknown-id", "id"),
]


async def test_bad_arguments_are_named(home: Home) -> None:
    async with client(home) as session:
        for arguments, code, parameter in BAD:
            failed, text = await call(session, **arguments)
            assert failed
            error = json.loads(text)["error"]
            assert set(error) == {"code", "parameter", "message"}
            assert (error["code"], error["parameter"]) == (code, parameter)
        result = await session.call_tool("another_tool", {})
        assert result.isError
