"""Languages and the lookup."""

from __future__ import annotations

import functools
import tomllib
from enum import StrEnum
from importlib import resources

from i18n.keys import Key


class Language(StrEnum):
    """The two languages kept by this project."""

    ZH = "zh"
    EN = "en"

    @classmethod
    def of(cls, tag: str) -> Language:
        """Choose by a language tag: ``en``, ``english``, ``en-…`` and ``en_…`` are English, all else Chinese."""
        folded = tag.strip().lower().replace("_", "-")
        return cls.EN if folded in {"en", "english"} or folded.startswith("en-") else cls.ZH


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
