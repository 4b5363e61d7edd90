"""Text of a configuration: tables with whatever characters in them, and what is added to a file that stays as it is."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence

Value = str | Sequence[str] | Mapping[str, str]


class CannotExtend(Exception):
    """The file is written in a way that text at its end cannot add a bot to."""


def quoted(text: str) -> str:
    """Return a basic string. JSON writes all characters as TOML does, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def written(header: str, entries: Mapping[str, Value]) -> str:
    """Return a table below its header, such as ``[[bot]]``; the keys are bare ones of ours."""
    lines = [header, *(f"{key} = {_value(value)}" for key, value in entries.items())]
    return "\n".join(filter(None, lines)) + "\n"


def _value(value: Value) -> str:
    match value:
        case str():
            return quoted(value)
        case Mapping():
            return "{ " + ", ".join(f"{key} = {quoted(text)}" for key, text in value.items()) + " }"
        case _:
            return "[" + ", ".join(map(quoted, value)) + "]"


def extended(old: str, bot: str) -> str:
    """Return ``old``, every character of it, with the table of one more bot at its end.

    Raises CannotExtend when the result would not say what both say, ValueError when ``old`` is no TOML.
    """
    before, added = tomllib.loads(old), tomllib.loads(bot)["bot"]
    new = f"{old}{'' if old.endswith(chr(10)) or not old else chr(10)}\n{bot}"
    bots = before.get("bot", [])
    try:
        if isinstance(bots, list) and tomllib.loads(new) == {**before, "bot": [*bots, *added]}:
            return new
    except tomllib.TOMLDecodeError:
        pass
    raise CannotExtend
