"""The configuration: what it takes, what it refuses, and that nothing else looks at the environment."""

from __future__ import annotations

import ast
import datetime
import json
import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.config import Busy, Config, HarnessMode, Telegram, WhatsApp, load, parse
from bridges.config_error import ConfigError
from bridges.listen import Listen
from bridges.secret import Places, Secret
from harness_client.address import Address
from i18n import Key, Language, Words
from tests.guards.sources import PACKAGES, python, tree

FULL: Final = """
language = "en"
[harness]
mode = "http"
url = "http://127.0.0.1:3080/?token=printed-token"
workspace = "/srv/project"
[state]
path = "state/state.db"
[log]
format = "json"
[metrics]
listen = "127.0.0.1:9464"
[[bot]]
name = "ops"
channel = "telegram"
token = { env = "TELEGRAM_TOKEN" }
workspace = "/srv/other"
busy = "steer"
group_approvals = true
[bot.access]
direct = ["1"]
group = "open"
commands = ["1", "2"]
owners = ["123456"]
[bot.endpoints]
api = "http://127.0.0.1:8081"
[[bot]]
name = "b2"
channel = "slack"
bot_token = "xoxb-fake"
app_token = "xapp-fake"
endpoints = { api = "http://127.0.0.1:1/api/" }
[[bot]]
name = "b3"
channel = "discord"
token = "fake-discord"
endpoints = { api = "http://127.0.0.1:1/api/v10", gateway = "ws://127.0.0.1:2" }
[[bot]]
name = "b4"
channel = "whatsapp"
phone_number_id = "100"
access_token = "fake-access"
app_secret = "fake-app-secret"
verify_token = "fake-verify"
listen = "[::1]:0"
path = "/hook"
[[bot]]
name = "b5"
channel = "feishu"
app_id = { env = "FEISHU_APP" }
app_secret = "fake-feishu"
[[bot]]
name = "b6"
channel = "dingtalk"
client_id = "ding"
client_secret = "fake-ding"
[[bot]]
name = "b7"
channel = "wecom"
bot_id = "wec"
secret = "fake-wecom"
endpoints = { websocket = "ws://127.0.0.1:3" }
[[bot]]
name = "b8"
channel = "qq"
app_id = "qq"
client_secret = "fake-qq"
endpoints = { token = "http://127.0.0.1:4/token", api = "http://127.0.0.1:4" }
[[bot]]
name = "b9"
channel = "weixin"
"""
ENVIRON: Final = {"TELEGRAM_TOKEN": "fake-telegram-token", "FEISHU_APP": "cli_1"}
PLACES: Final = Places(ENVIRON, Path("/nowhere"))


def read(text: str, **environ: str) -> Config:
    return parse(text.encode(), Places(environ, Path("/nowhere")))


def refusal(text: str, **environ: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(text, **environ)
    return caught.value


def bot(rest: str, channel: str = "telegram") -> str:
    return f'[[bot]]\nname = "ops"\nchannel = "{channel}"\n{rest}\n'


def test_every_channel_and_every_key_is_read() -> None:
    config = parse(FULL.encode(), PLACES)
    assert config.language is Language.EN
    assert config.harness.mode is HarnessMode.HTTP
    assert not config.harness.embedded
    assert config.harness.address == Address("http://127.0.0.1:3080", "printed-token")
    assert config.state.path == Path("/nowhere/state/state.db")
    assert config.log.format == "json"
    assert config.metrics is not None
    assert config.metrics.listen == Listen("127.0.0.1:9464")
    assert [bot.channel for bot in config.bots] == (
        ["telegram", "slack", "discord", "whatsapp", "feishu", "dingtalk", "wecom", "qq", "weixin"]
    )
    telegram = config.bots[0]
    assert isinstance(telegram, Telegram)
    assert telegram.token == Secret("fake-telegram-token")
    assert telegram.busy is Busy.STEER
    assert telegram.access.direct == frozenset({"1"})
    assert telegram.access.group == "open"
    whatsapp = config.bots[3]
    assert isinstance(whatsapp, WhatsApp)
    assert whatsapp.cloud is not None
    assert (whatsapp.cloud.listen.host, whatsapp.cloud.listen.port, whatsapp.path) == ("::1", 0, "/hook")


@pytest.mark.parametrize("name", ["phone_number_id", "access_token", "app_secret", "verify_token", "listen"])
def test_a_whatsapp_number_needs_everything_and_a_linked_device_nothing(name: str) -> None:
    needed = ("phone_number_id", "access_token", "app_secret", "verify_token", "listen")
    table = "".join(f'{key} = "localhost:1"\n' for key in needed if key != name)
    refused = refusal(bot(table, "whatsapp"))
    assert (refused.key, refused.path) == (Key.CONFIG_MISSING, f"bot[0].{name}")
    (only,) = read(bot('transport = "linked"', "whatsapp")).bots
    assert isinstance(only, WhatsApp)
    assert only.cloud is None


def test_the_defaults_deny() -> None:
    (only,) = read(bot('token = "fake"')).bots
    assert only.access.direct == "pairing"
    assert only.access.group == frozenset()
    assert only.access.commands == "all"
    assert not only.access.owners
    assert not only.group_approvals


def test_without_any_file_a_host_of_our_own_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    config = load(None, {})
    assert config.harness.embedded
    assert config.log.format == "console"
    assert config.bots == ()
    assert config.state.path.name == "state.db"
    assert "harness-im" in config.state.path.parts


def test_the_option_wins_over_the_variable_and_the_variable_over_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_config_path", lambda _: tmp_path)
    (tmp_path / "config.toml").write_text("language = 'zh'")
    (tmp_path / "variable.toml").write_text("language = 'en'")
    (tmp_path / "option.toml").write_text("[metrics]\nlisten = '127.0.0.1:0'")
    variable = {"HARNESS_IM_CONFIG": str(tmp_path / "variable.toml")}
    assert load(None, {}).language is Language.ZH
    assert load(None, variable).language is Language.EN
    assert load(tmp_path / "option.toml", variable).metrics is not None


@pytest.mark.parametrize(("folder", "key"), [("user_config_path", "--config"), ("user_data_path", "state.path")])
def test_without_a_home_what_lies_there_must_be_named(
    folder: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(_: str) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr("platformdirs.user_config_path", lambda _: tmp_path)
    monkeypatch.setattr(f"platformdirs.{folder}", nowhere)
    with pytest.raises(ConfigError) as caught:
        load(None, {})
    assert (caught.value.path, caught.value.key) == (key, Key.CONFIG_NO_HOME)
    (tmp_path / "config.toml").write_text("[state]\npath = 'here.db'")
    assert load(tmp_path / "config.toml", {}).state.path == tmp_path / "here.db"


@pytest.mark.parametrize("environ", [{}, {"HARNESS_IM_CONFIG": "/nowhere/absent.toml"}])
def test_a_file_that_was_named_must_exist(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None if environ else Path("/nowhere/absent.toml"), environ)
    assert caught.value.path == "/nowhere/absent.toml"
    assert caught.value.key is Key.CONFIG_ABSENT


def test_a_folder_or_an_endless_file_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, {})
    assert caught.value.key is Key.CONFIG_UNREADABLE
    (tmp_path / "big.toml").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "big.toml", {})
    assert caught.value.key is Key.CONFIG_UNREADABLE


DISCORD = "[[bot]]\nname = '{}'\nchannel = 'discord'\ntoken = 'fake'\n{}\n"

REFUSED: Final = {
    "languag = 'zh'": ("languag", Key.CONFIG_UNKNOWN),
    "language = 'fr'": ("language", Key.CONFIG_WRONG),
    "language = 1": ("language", Key.CONFIG_WRONG),
    "[harness]\nmode = 'http'": ("harness.url", Key.CONFIG_MISSING),
    "[harness]\nmode = 'embedded'\nurl = 'http://h'": ("harness.url", Key.CONFIG_EMBEDDED_URL),
    "[harness]\nmode = 'grpc'": ("harness.mode", Key.CONFIG_WRONG),
    "[harness]\nurl = '127.0.0.1:3080'": ("harness.url", Key.CONFIG_WRONG),
    "[harness]\nurl = 'http://h/path'": ("harness.url", Key.CONFIG_WRONG),
    "[harness]\nurl = 'http://h:99999'": ("harness.url", Key.CONFIG_WRONG),
    "[harness]\nurl = 'http://h/?token=a'\ntoken = 'b'": ("harness.url", Key.CONFIG_WRONG),
    "[harness]\nworkspace = 'here'": ("harness.workspace", Key.CONFIG_WRONG),
    "[metrics]": ("metrics.listen", Key.CONFIG_MISSING),
    "[metrics]\nlisten = '9464'": ("metrics.listen", Key.CONFIG_WRONG),
    "[metrics]\nlisten = 'h:99999'": ("metrics.listen", Key.CONFIG_WRONG),
    "[state]\npath = ''": ("state.path", Key.CONFIG_WRONG),
    "[state]\npath = '~no-such-person-here/x'": ("state.path", Key.CONFIG_WRONG),
    "bot = 1": ("bot", Key.CONFIG_WRONG),
    "bot = [1]": ("bot[0]", Key.CONFIG_WRONG),
    bot("", "signal"): ("bot[0].channel", Key.CONFIG_WRONG),
    "[[bot]]\nname = 'ops'": ("bot[0].channel", Key.CONFIG_MISSING),
    bot(""): ("bot[0].token", Key.CONFIG_MISSING),
    bot("token = 1"): ("bot[0].token", Key.CONFIG_WRONG),
    bot("token = ''"): ("bot[0].token", Key.CONFIG_WRONG),
    bot("token = { env = 'A', file = 'b' }"): ("bot[0].token", Key.CONFIG_WRONG),
    bot("token = { env = 'ABSENT' }"): ("bot[0].token", Key.CONFIG_NOTHING_THERE),
    bot("token = { file = 'absent' }"): ("bot[0].token", Key.CONFIG_NOTHING_THERE),
    bot("token = { file = '$CREDENTIALS_DIRECTORY/absent' }"): ("bot[0].token", Key.CONFIG_NOTHING_THERE),
    bot("token = 'fake'\napp_token = 'fake'"): ("bot[0].app_token", Key.CONFIG_UNKNOWN),
    bot("token = 'fake'\naccess = { owners = ['*'] }"): ("bot[0].access.owners", Key.CONFIG_WRONG),
    bot("token = 'fake'\naccess = { owners = [' 1'] }"): ("bot[0].access.owners", Key.CONFIG_WRONG),
    bot("token = 'fake'\naccess = { owners = [1] }"): ("bot[0].access.owners[0]", Key.CONFIG_WRONG),
    bot("token = 'fake'\naccess = { direct = 'all' }"): ("bot[0].access.direct", Key.CONFIG_WRONG),
    bot("token = 'fake'\naccess = { group = 'pairing' }"): ("bot[0].access.group", Key.CONFIG_WRONG),
    bot("token = 'fake'\nendpoints = { api = 'ftp://x' }"): ("bot[0].endpoints.api", Key.CONFIG_WRONG),
    bot("token = 'fake'\nendpoints = { gateway = 'ws://x' }"): ("bot[0].endpoints.gateway", Key.CONFIG_UNKNOWN),
    bot("token = 'fake'") + bot("token = 'fake'"): ("bot[1].name", Key.CONFIG_TWICE),
    DISCORD.format("a", "") + DISCORD.format("b", "endpoints = { api = 'http://x' }"): (
        "bot[1].endpoints",
        Key.CONFIG_ONE_ADDRESS,
    ),
    "[[bot]]\nname = 'a b'\nchannel = 'weixin'": ("bot[0].name", Key.CONFIG_WRONG),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_fault_names_its_key(text: str) -> None:
    path, key = REFUSED[text]
    error = refusal(text)
    assert (error.path, error.key) == (path, key)
    for language in Language:
        assert path in Words(language)(error.key, **error.values)


@pytest.mark.parametrize(
    "text", ["language =", "= 1", "a = 1\na = 2", "x = " + "[" * 5000, "x = " + "9" * 5000, "\ud800"]
)
def test_what_is_no_toml_names_the_file(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text.encode("utf-8", "surrogatepass"), PLACES, name="harness-im.toml")
    assert (caught.value.path, caught.value.key) == ("harness-im.toml", Key.CONFIG_SYNTAX)


def test_a_secret_on_the_wrong_line_is_not_repeated() -> None:
    secret = "sk-obviously-fake"
    lines = [f"language = '{secret}'", f"[harness]\nmode = '{secret}'", f"[state]\npath = ['{secret}']"]
    bots = [bot(f"token = 'fake'\naccess.direct = '{secret}'"), bot("", secret), bot(f"token = ['{secret}']")]
    for text in [*lines, *bots, f"[metrics]\nlisten = '{secret}'", f"x = {secret}"]:
        error = refusal(text)
        assert secret not in str(error)
        assert secret not in repr(error.values)


def test_secrets_come_from_three_places(tmp_path: Path) -> None:
    (tmp_path / "credentials").mkdir()
    (tmp_path / "beside").write_text("from-beside\n")
    (tmp_path / "credentials" / "token").write_text("from-supervisor\n")
    environ = {"NAME": "from-environment", "CREDENTIALS_DIRECTORY": str(tmp_path / "credentials")}
    alone, supervised = Places({"NAME": "from-environment"}, tmp_path), Places(environ, tmp_path)
    assert alone.find("literal") == "literal"
    assert alone.find({"env": "NAME"}) == "from-environment"
    assert alone.find({"file": "beside"}) == "from-beside"
    assert supervised.find({"file": "token"}) == "from-supervisor"
    assert supervised.find({"file": "$CREDENTIALS_DIRECTORY/token"}) == "from-supervisor"
    assert supervised.find({"file": str(tmp_path / "beside")}) == "from-beside"


def test_no_secret_shows_itself() -> None:
    config = parse(FULL.encode(), PLACES)
    shown = f"{config!r} {config} {config.bots[0]} {config.harness.url}"
    assert config.secrets() >= {"printed-token", "fake-telegram-token", "xapp-fake", "fake-verify", "fake-qq"}
    for secret in config.secrets():
        assert secret not in shown


Tree = None | bool | int | float | str | datetime.date | list["Tree"] | dict[str, "Tree"]
VALUES: Final[st.SearchStrategy[Tree]] = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def toml(tree: Tree) -> str:
    match tree:
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)} = {toml(value)}" for key, value in tree.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, tree)) + "]"
        case datetime.date():
            return tree.isoformat()
        case _:
            return json.dumps(tree).replace("NaN", "nan").replace("Infinity", "inf")


def mutate(tree: dict[str, Tree], data: st.DataObject) -> None:
    """Replace, remove or add one value, somewhere."""
    node: dict[str, Tree] = tree
    while True:
        key = data.draw(st.sampled_from(sorted(node)))
        inner = node[key]
        if isinstance(inner, list) and inner:
            inner = data.draw(st.sampled_from(inner))
        if isinstance(inner, dict) and inner and data.draw(st.booleans()):
            node = inner
            continue
        match data.draw(st.sampled_from(["replace", "remove", "add"])):
            case "remove":
                del node[key]
            case "add":
                node[data.draw(st.text())] = data.draw(VALUES)
            case _:
                node[key] = data.draw(VALUES)
        return


def check(data: bytes) -> None:
    try:
        parse(data, PLACES)
    except ConfigError as error:
        assert error.path, error  # noqa: PT017 - reading it without a fault is as good
        assert str(error).startswith(error.path)  # noqa: PT017 - as above


@given(st.data())
def test_a_mutated_configuration_is_read_or_refused_by_name(data: st.DataObject) -> None:
    tree = tomllib.loads(FULL)
    mutate(tree, data)
    check("\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in tree.items()).encode())


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_refused_by_name(data: bytes) -> None:
    check(data)


@given(st.integers(0, len(FULL) - 1), st.text(max_size=3), st.integers(0, 5))
def test_a_torn_configuration_is_read_or_refused_by_name(at: int, put: str, cut: int) -> None:
    check((FULL[:at] + put + FULL[at + cut :]).encode("utf-8", "replace"))


def test_one_module_reads_the_environment() -> None:
    readers = {
        name
        for name, text in python(*PACKAGES).items()
        for node in ast.walk(tree(text))
        if (isinstance(node, ast.Attribute) and re.match(r"os\.(environ|getenv)b?$", ast.unparse(node)))
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and any("env" in a.name for a in node.names))
    }
    assert readers == {"bridges/environment.py"}
