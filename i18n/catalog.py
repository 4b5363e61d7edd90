"""Keys, languages and the lookup."""

from __future__ import annotations

import functools
import tomllib
from enum import StrEnum
from importlib import resources


class Language(StrEnum):
    """The two languages kept by this project."""

    ZH = "zh"
    EN = "en"

    @classmethod
    def of(cls, tag: str) -> Language:
        """Choose by a language tag: ``en``, ``english``, ``en-…`` and ``en_…`` are English, all else Chinese."""
        folded = tag.strip().lower().replace("_", "-")
        return cls.EN if folded in {"en", "english"} or folded.startswith("en-") else cls.ZH


class Key(StrEnum):
    """Names of texts: table and entry of the catalog, joined by a dot."""

    HISTORY_HEADER = "history.header"
    HISTORY_USER = "history.user"
    HISTORY_ASSISTANT = "history.assistant"
    HISTORY_IMAGE = "history.image"
    HISTORY_FILE = "history.file"
    HISTORY_TRUNCATED = "history.truncated"
    HISTORY_NO_TEXT = "history.no_text"
    HISTORY_RUNNING = "history.running"
    HISTORY_FOOTER = "history.footer"
    HISTORY_PRIVATE_ONLY = "history.private_only"
    HISTORY_EMPTY = "history.empty"
    HISTORY_USAGE = "history.usage"
    HISTORY_SUMMARY = "history.summary"

    CONFIG_ABSENT = "config.absent"
    CONFIG_UNREADABLE = "config.unreadable"
    CONFIG_SYNTAX = "config.syntax"
    CONFIG_UNKNOWN = "config.unknown"
    CONFIG_MISSING = "config.missing"
    CONFIG_WRONG = "config.wrong"
    CONFIG_TWICE = "config.twice"
    CONFIG_NOTHING_THERE = "config.nothing_there"
    CONFIG_EMBEDDED_URL = "config.embedded_url"

    STATE_LOCKED = "state.locked"
    STATE_NEWER = "state.newer"
    STATE_FOREIGN = "state.foreign"
    STATE_FULL = "state.full"
    STATE_READ_ONLY = "state.read_only"
    STATE_BUSY = "state.busy"
    STATE_BROKEN = "state.broken"
    STATE_FAILED = "state.failed"
    STATE_SET_ASIDE = "state.set_aside"


@functools.cache
def _catalog(language: Language) -> dict[str, str]:
    text = resources.files("i18n").joinpath(f"{language}.toml").read_text("utf-8")
    return {
        f"{table}.{entry}": value for table, entries in tomllib.loads(text).items() for entry, value in entries.items()
    }


class Words:
    """The catalog in one language."""

    __slots__ = ("_texts", "language")

    def __init__(self, language: Language) -> None:
        self.language = language
        self._texts = _catalog(language)

    def __call__(self, key: Key, **values: object) -> str:
        """Return the text of ``key``, its ``{placeholders}`` filled in one pass: values are never read as templates.

        Raises KeyError when a placeholder has no value; the parity tests keep both languages' placeholders equal.
        """
        return self._texts[key].format_map(values)
