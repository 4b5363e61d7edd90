"""More than a thousand wrong configurations on the real command line: each told by its key, none by a traceback.

They are made from one right configuration that has every key there is, by breaking one thing: so every key is hit.
"""

from __future__ import annotations

import asyncio
import copy
import datetime
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast, get_args
from unittest import mock

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.cli import main
from bridges.config import AnyBot, Bot, load
from bridges.secret import MAX_BYTES
from tests.bridges.chat_process import PROGRAM, SECONDS, environment
from tests.bridges.test_config import Tree, toml

Table = dict[str, Tree]
Place = tuple[str | int, ...]


def secret(name: str) -> str:
    """Return what must never be printed."""
    return f"canary-{name}"


def bot(channel: str, **more: Tree) -> Table:
    return {"name": channel, "channel": channel, **more}


ACCESS: Final[Table] = {"direct": ["1"], "group": ["2"], "commands": ["3"], "owners": ["4"]}
EVERY: Final[Table] = {
    "language": "en",
    "log": {"format": "json"},
    "harness": {
        "mode": "http", "url": "http://127.0.0.1:3080", "token": secret("harness-token"), "workspace": "/srv/project",
    },
    "state": {"path": "state.db"},
    "metrics": {"listen": "127.0.0.1:9464"},
    "summaries": {
        "idle": True, "url": "https://127.0.0.1:1", "key": secret("summaries-key"), "model": "small", "pi": "pi",
    },
    "bot": [
        bot(
            "telegram", token=secret("telegram"), endpoints={"api": "http://127.0.0.1:1"}, workspace="/srv/other",
            busy="steer", group_approvals=True, access=ACCESS,
        ),
        bot("slack", bot_token=secret("slack-bot"), app_token=secret("slack-app"),
            endpoints={"api": "http://127.0.0.1:1/api/"}),
        bot("discord", token=secret("discord"), endpoints={"api": "http://127.0.0.1:1", "gateway": "ws://127.0.0.1:1"}),
        bot(
            "whatsapp", transport="cloud", phone_number_id="100", access_token=secret("whatsapp-access"),
            app_secret=secret("whatsapp-app"), verify_token=secret("whatsapp-verify"), listen="127.0.0.1:0",
            path="/hook", endpoints={"api": "http://127.0.0.1:1"},
        ),
        bot("feishu", app_id="cli_1", app_secret=secret("feishu"), endpoints={"api": "http://127.0.0.1:1"}),
        bot("dingtalk", client_id="ding", client_secret=secret("dingtalk"), card_template="card",
            endpoints={"api": "http://127.0.0.1:1"}),
        bot("wecom", bot_id="aib", secret=secret("wecom"), display_name="Bot",
            endpoints={"websocket": "ws://127.0.0.1:1"}),
        bot("qq", app_id="102", client_secret=secret("qq"),
            endpoints={"api": "http://127.0.0.1:1", "token": "http://127.0.0.1:1/token"}),
        bot("weixin", token=secret("weixin"), account="bot@im", endpoints={"api": "http://127.0.0.1:1"}),
    ],
}  # fmt: skip

SOURCES: Final = {
    "token", "key", "bot_token", "app_token", "access_token", "app_secret", "verify_token", "client_secret", "secret",
    "app_id", "bot_id", "client_id", "phone_number_id", "account", "card_template",
}  # fmt: skip
"""Keys of secrets and identifiers, but for QQ's endpoint of the same name."""

NEEDED: Final = {
    "name", "channel", "listen", "bot_token", "app_token", "access_token", "app_secret", "verify_token",
    "client_secret", "secret", "app_id", "bot_id", "client_id", "phone_number_id",
}  # fmt: skip
"""Keys that cannot be left out wherever they are. Telegram and Discord need their token too."""

WRONG: Final[Mapping[str, Sequence[str]]] = {
    "language": ["fr", ""],
    "format": ["xml", ""],
    "mode": ["grpc"],
    "url": ["ftp://h", "h:1", "http://"],
    "workspace": ["here", ""],
    "listen": ["9464", "h\x1b:1", "h:1\n", "h:99999", "h:-1", ":", "127.0.0.1", "h:x"],
    "model": ["", "x" * 201],
    "pi": [""],
    "name": ["", "a b", "ü", "x" * 65, "-x", "a\nb", "a\n", "a\x1b"],
    "channel": ["signal", ""],
    "busy": ["later"],
    "transport": ["pigeon"],
    "display_name": ["", "x" * 65],
    "direct": ["all", "closed"],
    "group": ["pairing"],
    "commands": ["none"],
    "api": ["ftp://h", "127.0.0.1", "http://", "http://u:p@h", "http://h\n", "http://h\x1b", "http://h/\x1b"],
    "gateway": ["wss:h"],
    "websocket": ["wss//h"],
}
"""Words of the right type that say nothing there."""

SECRET_SOURCES: Final[Sequence[Tree]] = [
    "", {}, {"env": "ABSENT"}, {"env": "BLANK"}, {"env": ""}, {"env": 7}, {"env": {"env": "SET"}}, {"file": "absent"},
    {"file": "empty"}, {"file": "blank"}, {"file": "big"}, {"file": "binary"}, {"file": "folder"}, {"file": "pipe"},
    {"file": "loop"}, {"file": "a\0b"}, {"file": ""}, {"file": ["empty"]}, {"env": "SET", "file": "empty"},
    {"vault": "SET"}, {"file": "~no-such-person-here/x"}, {"file": "/dev/zero"}, {"env": "A\0B"},
]  # fmt: skip

OTHER_TYPES: Final[Sequence[Tree]] = [
    7, -1, 1.5, float("nan"), True, [], [7], [[]], [secret("in a list")], {}, {"odd": secret("in a table")},
    secret("on the wrong line"), datetime.date(2026, 1, 1),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Break:
    """One wrong configuration: where it is broken, what stands there now (None: nothing), which key is to be named."""

    place: Place
    value: Tree
    named: str

    def tree(self) -> Table:
        """Return the whole configuration."""
        made = copy.deepcopy(EVERY)
        self.into(made)
        return made

    def into(self, tree: Table) -> None:
        """Break a configuration."""
        table, key = at(tree, self.place[:-1]), str(self.place[-1])
        if self.value is None:
            del table[key]
        else:
            table[key] = self.value


def at(tree: Table, place: Place) -> Table:
    """Return the table at a place."""
    node: Tree = tree
    for step in place:
        node = node[step]  # type: ignore[index]  # the place is one of the tree's
    return cast(Table, node)


def places(node: Tree = EVERY, above: Place = ()) -> Iterator[tuple[Place, Tree]]:
    """Yield every key of the right configuration."""
    match node:
        case dict():
            for key, value in node.items():
                yield (*above, key), value
                yield from places(value, (*above, key))
        case list():
            for index, value in enumerate(node):
                if isinstance(value, dict):
                    yield from places(value, (*above, index))


def path(place: Place) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")


def breaks(place: Place, value: Tree) -> Iterator[Break]:
    """Yield what can be wrong with one key."""
    key, named = str(place[-1]), path(place)
    is_source = key in SOURCES and "endpoints" not in place
    if key in NEEDED or (key == "token" and at(EVERY, place[:-1]).get("channel") in {"telegram", "discord"}):
        yield Break(place, None, named)
    yield Break((*place[:-1], f"{key}_"), secret("unknown"), f"{path(place[:-1])}.{key}_".removeprefix("."))
    words = SECRET_SOURCES if is_source or named == "harness.url" else WRONG.get(key, [])
    if key == "path" and place[0] == "bot":
        words = ["hook", "/a b", ""]
    elif named == "harness.url":
        words = [*words, "h:1", "http://h/path", "http://h:99999", "ftp://h"]
    for word in words:
        yield Break(place, word, named)
    for other in OTHER_TYPES:
        if not _fits(key, value, other, is_source=is_source or named == "harness.url"):
            yield Break(place, other, named)


def _fits(key: str, value: Tree, other: Tree, *, is_source: bool) -> bool:
    """Whether another value could be right in the place of ``value``."""
    match value:
        case str():
            return isinstance(other, str) and (is_source or key in {"path", "model", "pi", "display_name", "name"})
        case bool():
            return isinstance(other, bool)
        case list() if key == "bot":
            return other == []
        case list():
            return other == [] or other == [secret("in a list")]
        case _:
            return other == {}


ALL: Final = [each for place, value in places() for each in breaks(place, value)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that sources name."""
    made = tmp_path_factory.mktemp("malformed")
    (made / "empty").write_bytes(b"")
    (made / "blank").write_bytes(b" \n\n")
    (made / "big").write_bytes(b"x" * (MAX_BYTES + 1))
    (made / "binary").write_bytes(bytes(range(256)))
    (made / "folder").mkdir()
    os.mkfifo(made / "pipe")
    (made / "loop").symlink_to(made / "loop")
    return made


VARIABLES: Final = {"SET": secret("environment"), "BLANK": "  "}


def written(file: Path, tree: Table) -> Path:
    file.write_text("\n".join(f"{key} = {toml(value)}" for key, value in tree.items()), encoding="utf-8")
    return file


def begun(*_: object, **__: object) -> None:
    raise AssertionError("the program began to run")


def told(file: Path, *, command: str = "run") -> str:
    """Run the program on a wrong configuration; return what it said."""
    with (
        mock.patch.object(asyncio, "run", begun),
        mock.patch.object(socket, "socket", begun),
        mock.patch.dict(os.environ, VARIABLES),
    ):
        done = CliRunner().invoke(main, [command, "--config", str(file)])
    assert isinstance(done.exception, SystemExit), (done.exception, file.read_bytes()[-300:])
    assert done.exit_code == 2, done.output
    return done.output


def check(said: str, named: str) -> None:
    """One line or two that name the key and say more than that, and nothing secret."""
    assert said.startswith(named) or f" {named}" in said, (named, said)
    assert len(said.strip()) > len(named) + 3
    assert "canary" not in said.replace(named, "")
    assert "Traceback" not in said


def unset(node: msgspec.Struct, tree: Table, above: str = "") -> Iterator[str]:
    """Yield the keys of a table, and of those within, that the right configuration does not set.

    What all bots have in common is set in the first one.
    """
    shared = Bot.__struct_encode_fields__ if isinstance(node, Bot) and above != "bot[0]" else ()
    for field, key in zip(node.__struct_fields__, node.__struct_encode_fields__, strict=True):
        value, where = getattr(node, field), f"{above}.{key}".removeprefix(".")
        if key not in tree:
            yield from () if key in shared else (where,)
        elif isinstance(value, msgspec.Struct):
            yield from unset(value, cast(Table, tree[key]), where)
        elif isinstance(value, tuple):
            for index, (each, table) in enumerate(zip(value, cast(list[Table], tree[key]), strict=True)):
                yield from unset(each, table, f"{where}[{index}]")


def test_the_right_one_is_right_and_has_every_key(folder: Path) -> None:
    config = load(written(folder / "right.toml", EVERY), {})
    assert {each.channel for each in config.bots} == {str(kind.__struct_config__.tag) for kind in get_args(AnyBot)}
    assert list(unset(config, EVERY)) == []


def test_every_key_is_broken_in_every_way_it_can_be(folder: Path) -> None:
    """All of them on one command line each; the program never begins, so it connects to nothing."""
    assert len(ALL) >= 1_000
    assert {each.place for each in ALL} >= {place for place, _ in places()}
    for each in ALL:
        check(told(written(folder / "wrong.toml", each.tree())), each.named)


@settings(max_examples=50)
@given(st.sampled_from(ALL), st.sampled_from(["bots", "reload", "sessions"]))
def test_every_command_tells_it_the_same_way(folder: Path, each: Break, command: str) -> None:
    file = written(folder / "commands.toml", each.tree())
    assert told(file, command=command).strip() == told(file).strip()


@settings(max_examples=100)
@given(st.data())
def test_two_faults_are_told_by_one_of_them(folder: Path, data: st.DataObject) -> None:
    first, second = data.draw(st.lists(st.sampled_from(ALL), min_size=2, max_size=2, unique_by=lambda each: each.place))
    apart = first.place[: len(second.place)] != second.place and second.place[: len(first.place)] != first.place
    tree = first.tree()
    if apart:
        second.into(tree)
    said = told(written(folder / "two.toml", tree))
    named = [each.named for each in (first, second) if each.named in said]
    assert named
    check(said, named[0])


NO_TOML: Final = {
    "torn": b"[harness", "twice": b"a = 1\na = 2", "bare": b"= 1", "open": b'a = "x', "deep": b"x = " + b"[" * 9_999,
    "deep tables": b"x = " + b"{a=" * 9_999, "dotted": b".".join([b"a"] * 999) + b" = 1",
    "long": b"x = " + b"9" * 9_999,
    "latin": "language = 'ü'".encode("latin-1"), "utf-16": "language = 'zh'".encode("utf-16"), "nul": b"a = '\0'",
    "surrogate": b'a = "\\ud800"', "surrogate bytes": b"a = '\xed\xa0\x80'", "mark": b"\xef\xbb\xbflanguage = 'zh'",
    "date": b"a = 2026-13-45", "huge": b"#" * (1024 * 1024 + 1), "noise": bytes(range(256)) * 16,
    "secret": f"token = {secret('no-quotes')}".encode(),
}  # fmt: skip


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in NO_TOML.items()])
def test_what_is_no_toml_is_told_by_its_name(folder: Path, data: bytes) -> None:
    file = folder / "odd.toml"
    file.write_bytes(data)
    said = told(file)
    check(said, "a" if data.startswith(b"a.a") else str(file))


@pytest.mark.parametrize("name", ["nowhere", "folder", "pipe", "loop", "/dev/zero", "empty/beneath", "x" * 300])
def test_what_is_no_file_is_told_at_once(folder: Path, name: str) -> None:
    """A pipe without a writer and a file without an end would keep it waiting for ever."""
    check(told(folder / name), str(folder / name))


SAMPLES: Final = ALL[:: len(ALL) // 3]


async def test_the_real_program_tells_them_too(folder: Path) -> None:
    """Some of them through the installed program, at the same time."""
    files = [written(folder / f"sample-{number}.toml", each.tree()) for number, each in enumerate(SAMPLES)]
    odd = [folder / "pipe", folder / "folder"]
    said = await asyncio.gather(*(_real(folder, file) for file in [*files, *odd]))
    for text, named in zip(said, [each.named for each in SAMPLES] + list(map(str, odd)), strict=True):
        check(text, named)


async def _real(home: Path, file: Path) -> str:
    child = await asyncio.create_subprocess_exec(
        PROGRAM, "run", "--config", str(file), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=environment(home) | VARIABLES,
    )  # fmt: skip
    async with asyncio.timeout(SECONDS):
        out, _ = await child.communicate()
    assert child.returncode == 2, out
    return out.decode()
