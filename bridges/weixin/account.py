"""Accounts that logged in by QR code: one private file in the data directory, newest account last."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from bridges import private_file

NAME: Final = "weixin-accounts.json"
KEPT: Final = 10
"""Accounts kept; the platform takes as many tokens when it looks whether a bot is bound already."""

_MAX_BYTES: Final = 256 * 1024


class Account(msgspec.Struct, frozen=True):
    """A bot of Weixin: its id, its token, the address it was told to use, and the person who scanned the code."""

    id: str
    token: str
    base: str | None = None
    user: str | None = None

    def __repr__(self) -> str:
        return f"Account({self.id!r})"


@dataclass(frozen=True, slots=True)
class Accounts:
    """The file. ``folder`` is the data directory."""

    folder: Path

    @property
    def path(self) -> Path:
        """Return where the file is."""
        return self.folder / NAME

    def read(self) -> tuple[Account, ...]:
        """Read all accounts, none when there is no file. Raises OSError, also for a file that is not ours."""
        try:
            with self.path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return ()
        try:
            return msgspec.json.decode(data, type=tuple[Account, ...])
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Without a cause: it could quote a token.
            raise OSError(f"{self.path.name} is damaged: move it away and log in again") from None

    def find(self, name: str | None) -> Account | None:
        """Return the account of that id, or the newest one. Raises OSError."""
        accounts = self.read()
        return next((account for account in reversed(accounts) if name in {None, account.id}), None)

    def save(self, account: Account) -> None:
        """Write the account as the newest, in the place of an older login of the same bot. Raises OSError.

        The file is complete and private at every moment.
        """
        others = [known for known in self.read() if known.id != account.id]
        data = msgspec.json.encode([*others, account][-KEPT:])
        private_file.write(self.path, data)
