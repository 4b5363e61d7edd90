"""A bot as it was asked for, before anything is written: what goes into the file, and what is kept beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bridges.cli.setup.toml import Value, written

_REFERENCES: Final = ("env", "file")


@dataclass(frozen=True, slots=True)
class Plain:
    """A value that may stand in the file."""

    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A value in a place that the file names: ``kind`` is ``env`` or ``file``."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Hidden:
    """A secret that gets a file of its own."""

    text: str = field(repr=False)


Given = Plain | Reference | Hidden


def given(text: str, *, secret: bool, folder: Path) -> Given:
    """Read an answer: ``env:NAME``, ``file:PATH`` from the present ``folder``, or the value itself."""
    kind, colon, name = text.partition(":")
    if secret and colon and name and kind in _REFERENCES:
        return Reference(kind, str(folder / _at_home(name)) if kind == "file" else name)
    return Hidden(text) if secret else Plain(text)


def _at_home(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # ~somebody-unknown: no file will be found there
        return Path(name)


@dataclass(frozen=True, slots=True)
class Draft:
    """One bot."""

    channel: str
    name: str
    values: Mapping[str, Given]
    owners: tuple[str, ...] = ()
    endpoints: Mapping[str, str] = field(default_factory=dict)

    def kept(self, key: str, path: Path) -> Draft:
        """Return the bot with the secret ``key`` in the file ``path``."""
        return replace(self, values={**self.values, key: Reference("file", str(path))})

    def text(self) -> str:
        """Return its table."""
        head: dict[str, Value] = {"name": self.name, "channel": self.channel}
        access: dict[str, Value] = {"direct": "pairing"}
        if self.owners:
            access["owners"] = self.owners
        text = written("[[bot]]", head | {key: value_of(each) for key, each in self.values.items()})
        text += "\n" + written("[bot.access]", access)
        return text + ("\n" + written("[bot.endpoints]", dict(self.endpoints)) if self.endpoints else "")


def value_of(answer: Given) -> Value:
    """Return how the file says it; a secret that has no file yet stands there itself, to be checked."""
    match answer:
        case Reference(kind, name):
            return {kind: name}
        case Plain(text) | Hidden(text):
            return text
