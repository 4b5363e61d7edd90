"""TOML and environment -> one frozen configuration.

Whatever is wrong with a file ends in :class:`ConfigError`: the path of the key and what was expected, never the value,
which may be a secret somebody put on the wrong line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import msgspec
import platformdirs

from bridges.config_error import ConfigError, Wrong, explain
from bridges.ids import can_match
from bridges.listen import Listen
from bridges.secret import Places, Secret, read_file, secrets_in
from commands.folders import is_absolute
from harness_client.address import Address
from i18n import Key, Language

APP: Final = "harness-im"
VARIABLE: Final = "HARNESS_IM_CONFIG"
MAX_BYTES: Final = 1024 * 1024


def _at_home(key: str, folder: Callable[[str], Path], name: str) -> Path:
    """Return where a file is on this platform. Raises ConfigError, which names ``key``, where nobody knows the home."""
    try:
        return folder(APP) / name
    except RuntimeError:
        raise ConfigError(key, Key.CONFIG_NO_HOME) from None


def _check_workspace(path: str | None) -> None:
    """Want an absolute path of the host's machine."""
    if path is not None and not is_absolute(path):
        raise Wrong("workspace")


class Identifier(str):
    """A public id of an account; may be kept in the same three places as a secret."""

    __slots__ = ()


Url = Annotated[str, msgspec.Meta(pattern=r"^(https?|wss?)://[^\s/?#@\x00-\x1f\x7f]+([/?#][^\s\x00-\x1f\x7f]*)?\Z")]
"""An address that may be shown: without blanks, control characters, or the name and password of a user."""
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of the file."""


class HarnessMode(StrEnum):
    """Whether we reach a host that runs already, or start one of our own."""

    HTTP = "http"
    EMBEDDED = "embedded"


class Harness(Section, frozen=True, kw_only=True):
    """``[harness]``. ``url`` may hold the token, so it is a secret too. ``mode`` follows from ``url`` when absent."""

    mode: HarnessMode | None = None
    url: Secret | None = None
    token: Secret | None = None
    workspace: str | None = None

    def __post_init__(self) -> None:
        if self.embedded and self.url is not None:
            raise Wrong("url", Key.CONFIG_EMBEDDED_URL)
        if not self.embedded and self.url is None:
            raise Wrong("url", Key.CONFIG_MISSING)
        try:
            _ = self.address
        except ValueError:
            raise Wrong("url") from None
        _check_workspace(self.workspace)

    @property
    def embedded(self) -> bool:
        """Whether we start the host."""
        return self.mode is HarnessMode.EMBEDDED or (self.mode is None and self.url is None)

    @property
    def address(self) -> Address | None:
        """Where the host listens; None for one of our own."""
        token = self.token.reveal() if self.token else None
        return Address.parse(self.url.reveal(), token) if self.url else None


class StateFile(Section, frozen=True, kw_only=True):
    """``[state]``."""

    path: Path = msgspec.field(default_factory=lambda: _at_home("state.path", platformdirs.user_data_path, "state.db"))


class Log(Section, frozen=True, kw_only=True):
    """``[log]``: how the lines on standard error look; ``json`` is one object a line."""

    format: Literal["console", "json"] = "console"


class Metrics(Section, frozen=True, kw_only=True):
    """``[metrics]``; absent means off. Without a login of its own it is for this machine only."""

    listen: Listen

    def __post_init__(self) -> None:
        if not self.listen.is_loopback:
            raise Wrong("listen", Key.CONFIG_NOT_LOOPBACK)


class Summaries(Section, frozen=True, kw_only=True):
    """``[summaries]``: the model that condenses past conversations; what is absent is what the host itself uses.

    ``url`` is the base of an OpenAI-compatible endpoint. ``pi`` starts Pi, which writes those of Pi's sessions.
    """

    idle: bool = True
    """Whether summaries are written when a workspace is idle."""
    url: Url | None = None
    key: Secret | None = None
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] = "deepseek-v4-flash"
    pi: Annotated[str, msgspec.Meta(min_length=1)] = "pi"


class Access(Section, frozen=True, kw_only=True):
    """``[bot.access]``: who may talk, command, own. Denies by default; :mod:`bridges.access` decides by it."""

    direct: Literal["pairing", "open"] | frozenset[str] = "pairing"
    group: Literal["open"] | frozenset[str] = frozenset()
    commands: Literal["all"] | frozenset[str] = "all"
    owners: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("direct", "group", "commands", "owners"):
            rule: str | frozenset[str] = getattr(self, name)
            if not isinstance(rule, str) and not all(map(can_match, rule)):
                raise Wrong(name)


class Busy(StrEnum):
    """What ordinary text does while a task runs."""

    QUEUE = "queue"
    STEER = "steer"


class Bot(Section, frozen=True, kw_only=True):
    """``[[bot]]``: what all channels have in common."""

    name: Name
    workspace: str | None = None
    access: Access = Access()
    busy: Busy = Busy.QUEUE
    group_approvals: bool = False
    """Whether a group may decide about tool calls; refused unless this is set."""

    def __post_init__(self) -> None:
        _check_workspace(self.workspace)

    @property
    def channel(self) -> str:
        """Return the channel's name, as in the file."""
        return str(self.__struct_config__.tag)


class Api(Section, frozen=True, kw_only=True):
    """``[bot.endpoints]`` of a channel with one address."""

    api: Url | None = None


class DiscordEndpoints(Api, frozen=True, kw_only=True):
    """``api`` ends in ``/api/v10``."""

    gateway: Url | None = None


class WeComEndpoints(Section, frozen=True, kw_only=True):
    """WeCom speaks over a socket only."""

    websocket: Url | None = None


class QQEndpoints(Api, frozen=True, kw_only=True):
    """``token`` is the whole address of the token call, or its base."""

    token: Url | None = None


@dataclass(frozen=True, slots=True)
class CloudNumber:
    """A number on the WhatsApp Cloud API."""

    id: Identifier
    access_token: Secret
    app_secret: Secret
    verify_token: Secret
    listen: Listen


T = TypeVar("T")


def _given(name: str, value: T | None) -> T:
    if value is None:
        raise Wrong(name, Key.CONFIG_MISSING)
    return value


class Telegram(Bot, frozen=True, kw_only=True, tag_field="channel", tag="telegram"):
    """A bot of @BotFather."""

    token: Secret
    endpoints: Api = Api()


class Slack(Bot, frozen=True, kw_only=True, tag_field="channel", tag="slack"):
    """A Socket Mode app; ``endpoints.api`` ends in ``/api/``."""

    bot_token: Secret
    app_token: Secret
    endpoints: Api = Api()


class Discord(Bot, frozen=True, kw_only=True, tag_field="channel", tag="discord"):
    """A Discord application's bot."""

    token: Secret
    endpoints: DiscordEndpoints = DiscordEndpoints()


class WhatsApp(Bot, frozen=True, kw_only=True, tag_field="channel", tag="whatsapp"):
    """A Cloud API number, whose webhook is served at ``listen`` and ``path``, or a linked device, which needs none."""

    transport: Literal["cloud", "linked"] = "cloud"
    phone_number_id: Identifier | None = None
    access_token: Secret | None = None
    app_secret: Secret | None = None
    verify_token: Secret | None = None
    listen: Listen | None = None
    path: Annotated[str, msgspec.Meta(pattern=r"^/[^\s?#\x00-\x1f\x7f]*\Z")] = "/"
    endpoints: Api = Api()

    def __post_init__(self) -> None:
        Bot.__post_init__(self)
        _ = self.cloud

    @property
    def cloud(self) -> CloudNumber | None:
        """What the Cloud API needs; None for a linked device."""
        if self.transport == "linked":
            return None
        return CloudNumber(
            _given("phone_number_id", self.phone_number_id),
            _given("access_token", self.access_token),
            _given("app_secret", self.app_secret),
            _given("verify_token", self.verify_token),
            _given("listen", self.listen),
        )


class Feishu(Bot, frozen=True, kw_only=True, tag_field="channel", tag="feishu"):
    """A Feishu or Lark app; ``endpoints.api`` is the domain."""

    app_id: Identifier
    app_secret: Secret
    endpoints: Api = Api()


class DingTalk(Bot, frozen=True, kw_only=True, tag_field="channel", tag="dingtalk"):
    """A DingTalk app in stream mode; ``card_template`` is the id of an AI card's template, for answers that grow."""

    client_id: Identifier
    client_secret: Secret
    card_template: Identifier | None = None
    endpoints: Api = Api()


class WeCom(Bot, frozen=True, kw_only=True, tag_field="channel", tag="wecom"):
    """A WeCom smart bot on the long connection; ``display_name`` is what it is called in groups."""

    bot_id: Identifier
    secret: Secret
    display_name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    endpoints: WeComEndpoints = WeComEndpoints()


class QQ(Bot, frozen=True, kw_only=True, tag_field="channel", tag="qq"):
    """An official QQ bot."""

    app_id: Identifier
    client_secret: Secret
    endpoints: QQEndpoints = QQEndpoints()


class Weixin(Bot, frozen=True, kw_only=True, tag_field="channel", tag="weixin"):
    """A Weixin bot; without ``token`` and ``account`` those of ``harness-im login weixin`` are used."""

    token: Secret | None = None
    account: Identifier | None = None
    endpoints: Api = Api()


AnyBot = Telegram | Slack | Discord | WhatsApp | Feishu | DingTalk | WeCom | QQ | Weixin


class Config(Section, frozen=True, kw_only=True):
    """The whole file. Without one: an embedded host, no bots, the platform's data directory."""

    language: Language = Language.ZH
    harness: Harness = Harness()
    state: StateFile = msgspec.field(default_factory=StateFile)
    log: Log = Log()
    metrics: Metrics | None = None
    summaries: Summaries = Summaries()
    bots: tuple[AnyBot, ...] = msgspec.field(name="bot", default=())

    def __post_init__(self) -> None:
        names = [bot.name for bot in self.bots]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise Wrong(f"bot[{index}].name", Key.CONFIG_TWICE)
        addresses = [(index, bot.endpoints) for index, bot in enumerate(self.bots) if isinstance(bot, Discord)]
        for index, endpoints in addresses:
            if endpoints != addresses[0][1]:  # its SDK keeps them for the whole process
                raise Wrong(f"bot[{index}].endpoints", Key.CONFIG_ONE_ADDRESS)

    def secrets(self) -> frozenset[str]:
        """Return every secret in the clear, for the log to hide."""
        found = {secret.reveal() for secret in secrets_in(self)}
        return frozenset(found | {token for text in found for token in re.findall(r"[?&]token=([^&#\s]+)", text)})


def locate(path: Path | None, environ: Mapping[str, str]) -> Path:
    """Return ``path``, else ``$HARNESS_IM_CONFIG``, else the file in the platform's folder. Raises ConfigError."""
    named = path or environ.get(VARIABLE)
    return Path(named) if named else _at_home("--config", platformdirs.user_config_path, "config.toml")


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """Read the file at its place (:func:`locate`); only the platform's own may be absent. Raises ConfigError."""
    file = locate(path, environ)
    try:
        data = read_file(file, MAX_BYTES)
    except FileNotFoundError as error:
        if path is None and not environ.get(VARIABLE):
            return Config()
        raise ConfigError(str(file), Key.CONFIG_ABSENT) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise ConfigError(str(file), Key.CONFIG_UNREADABLE, reason=type(error).__name__) from error
    return parse(data, Places(environ, file.absolute().parent), name=str(file))


def parse(data: bytes, places: Places, *, name: str = APP) -> Config:
    """Read the bytes of a file; relative paths start at ``places.folder``. Raises ConfigError."""
    try:
        return msgspec.convert(tree_of(data, name), Config, dec_hook=_Decoder(places))
    except msgspec.ValidationError as error:
        raise explain(error) from None


def tree_of(data: bytes, name: str) -> dict[str, object]:
    """Return what the bytes of a file say, whatever it is worth. Raises ConfigError, which calls it ``name``."""
    try:
        if len(data) > MAX_BYTES:
            raise ConfigError(name, Key.CONFIG_UNREADABLE, reason=f"> {MAX_BYTES} bytes")
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, a number or a nesting beyond measure
        place = re.search(r"\(at ([^()]*)\)$", str(error))
        raise ConfigError(name, Key.CONFIG_SYNTAX, place=place[1] if place else type(error).__name__) from None


class _Decoder:
    """Reads the types msgspec does not know."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def __call__(self, kind: type, source: object) -> object:
        if kind is Secret:
            return Secret(self._places.find(source))
        if kind is Identifier:
            return Identifier(self._places.find(source))
        if not isinstance(source, str) or not source or "\0" in source:
            raise TypeError(type(source).__name__)
        if kind is Listen:
            return Listen(source)
        return self._places.absolute(source)
