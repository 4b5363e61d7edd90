"""Everything a person may meet when something is wrong, section by section; causes and remedies are written by hand.

A section is a closed set of the code: a new member has no entry in ``troubleshooting.toml``, and the test says so.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bridges.cli.overview import _LINKS
from bridges.cli.reason import STOPS
from bridges.delivery import End
from bridges.message import Stop
from bridges.state import Link
from harness_client.errors import Code
from i18n import Key, Language, Words
from i18n.catalog import _catalog
from tests.docs.tables import table, told
from tests.guards.sources import python, tree

Shown = Callable[[Words], str]
"""What the person sees, in the language of the page."""

HEADINGS = {
    Language.EN: ("what you see", "why", "what to do"),
    Language.ZH: ("看到的内容", "原因", "处理办法"),
}

NO_TROUBLE = frozenset({
    Key.RUN_READY, Key.RUN_UP, Key.RUN_MONITORED, Key.RUN_WAITING, Key.RUN_STOPPED, Key.RELOAD_ASKED,
    Key.DOCTOR_CHECK, Key.DOCTOR_SUBJECT, Key.DOCTOR_FOUND, Key.DOCTOR_INSTALLATION, Key.DOCTOR_CONFIGURATION,
    Key.DOCTOR_SECRETS, Key.DOCTOR_STATE_FILE, Key.DOCTOR_HOST, Key.DOCTOR_ENDPOINT, Key.DOCTOR_TIME, Key.DOCTOR_SDK,
    Key.DOCTOR_WELL, Key.DOCTOR_WRONG, Key.DOCTOR_CONFIGURED, Key.DOCTOR_SECRET, Key.DOCTOR_STATE,
    Key.DOCTOR_EMBEDDED, Key.DOCTOR_HARNESS, Key.DOCTOR_ANSWERS, Key.DOCTOR_CLOCK, Key.DOCTOR_INSTALLED,
    Key.DOCTOR_PACKAGE, Key.DOCTOR_PLATFORM, Key.RUN_STATUS, Key.HEALTH_ALIVE,
    Key.PLATFORM_ACCEPTED, Key.PLATFORM_LOGIN_STORED, Key.PLATFORM_SKIPPED,
    Key.INIT_LANGUAGE, Key.INIT_WELCOME, Key.INIT_EXISTS, Key.INIT_REPLACE_SURE, Key.INIT_HARNESS, Key.INIT_CHANNELS,
    Key.INIT_CHANNEL, Key.INIT_NEEDS, Key.INIT_NAME, Key.INIT_SECRET, Key.INIT_OPTIONAL, Key.INIT_ASKING,
    Key.INIT_WHAT_NOW, Key.INIT_OWNER, Key.INIT_ANOTHER, Key.INIT_WRITTEN, Key.INIT_KEPT_IN, Key.INIT_NARROWED,
    Key.INIT_VARIABLES, Key.INIT_PAIRING, Key.INIT_LOG_IN_NOW, Key.INIT_NEXT, Key.INIT_UNCHECKED,
    Key.LOGIN_SCAN, Key.LOGIN_SCANNED, Key.LOGIN_NUMBER, Key.LOGIN_DONE,
    Key.WHATSAPP_RISK, Key.WHATSAPP_AGREE, Key.WHATSAPP_INSTALLING, Key.WHATSAPP_SCAN, Key.WHATSAPP_LINKED,
})  # fmt: skip
"""Texts of the tables below that tell of nothing wrong."""

EXPLAINED = frozenset({
    "archive", "config", "doctor", "health", "init", "login", "platform", "reload", "run", "smoke", "start", "state",
    "warning", "whatsapp", "why",
})  # fmt: skip
"""Tables of the catalog whose texts have a cause and a remedy, those of NO_TROUBLE aside."""

CONVERSATION = frozenset({
    "age", "approval", "asked", "batch", "bots", "cancel", "channel", "chat", "compact", "conv", "demo", "help",
    "history", "language", "list", "model", "models", "new", "pair", "pairing", "past", "pbot", "preset", "presets",
    "question", "reasoning", "reasonings", "send", "session", "sessions", "status", "steer", "stop", "terminal",
    "version", "workspace", "workspaces",
})  # fmt: skip
"""Tables of replies, which say themselves what to do; those that give a reference are explained all the same."""


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the page: its entries by their id, in order."""

    name: str
    entries: Mapping[str, Shown]


def _phrase(key: Key) -> Shown:
    """Return a text with its blanks as dots."""
    return lambda words: re.sub(r"\{\w+\}", "…", _catalog(words.language)[key]).replace("{{", "{").replace("}}", "}")


def _phrases(*names: str) -> dict[str, Shown]:
    """Return the texts of these tables of the catalog that tell of something wrong."""
    return {key: _phrase(key) for name in names for key in Key if _tells(key, name)}


def _tells(key: Key, name: str) -> bool:
    return (
        key.startswith(f"{name}.")
        and key not in NO_TROUBLE
        and not key.startswith("init.hint_")
        and (name != "smoke" or key.startswith("smoke.why_"))
    )


def _referenced() -> dict[str, Shown]:
    """Return every text that gives the person a reference."""
    return {key: _phrase(key) for key in Key if "{reference}" in _catalog(Language.EN)[key]}


def _plainly(text: str) -> Shown:
    return lambda _: f"`{text}`"


def tables() -> set[str]:
    """Return the tables of the catalog."""
    return {key.partition(".")[0] for key in Key}


@functools.cache
def exit_codes() -> frozenset[int]:
    """Return the exit codes that the commands' modules name: ``OK, FAILED = 0, 1``."""
    found: set[int] = set()
    for name, text in python("bridges").items():
        for node in tree(text).body if name.startswith("bridges/cli/") else ():
            match node:
                case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if "FAILED" in map(ast.unparse, names):
                    found |= {int(ast.unparse(value)) for value in values}
    return frozenset(found)


@functools.cache
def sections() -> dict[str, Section]:
    stops = {f"stopped.{stop}": (lambda words, key=STOPS[stop], stop=stop: f"`{stop}` · {words(key)}") for stop in Stop}
    links = {f"link.{link}": (lambda words, key=_LINKS[link], link=link: f"`{link}` · {words(key)}") for link in Link}
    found = (
        Section("chat", _referenced()),
        Section("bot", links | _phrases("health") | stops),
        Section("start", _phrases("config", "state", "start", "run", "reload")),
        Section("doctor", _phrases("doctor")),
        Section("platform", _phrases("platform")),
        Section("init", _phrases("init")),
        Section("smoke", _phrases("smoke")),
        Section("setup", _phrases("login", "whatsapp")),
        Section("archive", _phrases("archive", "why", "warning")),
        Section("exit", {f"exit.{code}": _plainly(str(code)) for code in sorted(exit_codes())}),
        Section("host", {f"code.{code}": _plainly(code) for code in Code}),
        Section("send", {f"end.{end}": _plainly(end) for end in End}),
    )
    return {section.name: section for section in found}


def section(name: str, language: Language) -> str:
    words, entries = Words(language), told("troubleshooting")
    rows = [[shown(words), *entries[each][language]] for each, shown in sections()[name].entries.items()]
    return table(HEADINGS[language], rows)
