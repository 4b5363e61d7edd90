"""What the command line said already, so that nobody needs to be asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bridges.cli.channel_names import NAMES
from bridges.cli.setup.draft import Reference, given
from bridges.cli.setup.fields import KINDS
from i18n import Key, Words


class BadOption(Exception):
    """An option cannot be what it says; ``key`` and ``values`` word it."""

    def __init__(self, key: Key, **values: str) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``harness-im init``; None and empty: not given."""

    config: Path | None = None
    language: str | None = None
    channel: str | None = None
    name: str | None = None
    settings: tuple[str, ...] = ()
    """``--set KEY=VALUE``"""
    endpoints: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    pairing: bool = False
    harness: str | None = None
    check: bool = True
    force: bool = False

    def values(self, channel: str, words: Words) -> dict[str, str]:
        """Return what ``--set`` says, by key. Raises BadOption; a secret may be named there, not told."""
        kind = KINDS[channel]
        found = pairs("--set", self.settings)
        for key, value in found.items():
            field = kind.field(key)
            if field is None:
                known = ", ".join(field.key for field in kind.fields) or "-"
                raise BadOption(Key.INIT_NO_FIELD, channel=words(NAMES[channel]), field=key, known=known)
            if field.secret and value != "-" and not isinstance(given(value, secret=True, folder=Path()), Reference):
                raise BadOption(Key.INIT_IN_THE_OPEN, field=key)
        return found


def pairs(flag: str, options: tuple[str, ...]) -> dict[str, str]:
    """Read ``NAME=VALUE`` options. Raises BadOption."""
    split = [each.partition("=") for each in options]
    if not all(name and sign for name, sign, _ in split):
        raise BadOption(Key.INIT_MALFORMED, flag=flag)
    return {name: value.strip() for name, _, value in split}
