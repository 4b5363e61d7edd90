"""What questions and approvals have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from bridges.bot import RunningBot
from harness_client.errors import HarnessError
from harness_client.settled import LOOK_BACK, Settled
from harness_client.streams import Page
from harness_client.types import InteractionId, SessionId
from i18n import Key, Words

LONGEST: Final = 6_000
"""UTF-16 units of what may be shown to be answered. More is never cut, it is turned down."""

CONFIRM_PAUSES: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds between two looks into the log for what became of an answer."""


@dataclass(frozen=True, slots=True)
class Notices:
    """What a chat reads around a matter, beside the matter itself."""

    already: Key
    """To words that came too late."""
    text_only: Key
    failed: Key
    """The answer did not get through, and is asked for again; with a reference."""
    switched: Key
    restarted: Key
    expired: Key
    unshown: Key
    """It cannot be shown whole, and was turned down."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a person's words: what to say to them, and whether the matter is over or to be shown again."""

    text: str = ""
    over: bool = False
    again: bool = False


class Matter(Protocol):
    """One thing that a person is asked."""

    id: InteractionId
    notices: Notices
    rank: int
    """The smallest is asked first."""

    def text(self, words: Words) -> str:
        """Return what to show now."""

    async def hear(self, text: str, words: Words) -> Heard:
        """Take the words of whoever may answer. Raises HarnessError when the host did not get the answer."""

    def elsewhere(self, outcome: str | None, words: Words) -> str:
        """Return what to say when it was settled elsewhere; ``outcome`` is the host's word, if any."""

    async def withdraw(self) -> None:
        """Tell the host that no answer will come. Raises HarnessError."""


async def confirmed(
    bot: RunningBot, session: SessionId, parent: SessionId | None, look: Callable[[Page], Settled]
) -> Settled:
    """Look into the log until it says what became of an answer; OPEN when it still does not after all pauses."""
    for pause in CONFIRM_PAUSES:
        try:
            found = look(await bot.harness.page(session, limit=LOOK_BACK, parent=parent))
        except HarnessError:
            found = Settled.OPEN  # the next look may get through
        if found is not Settled.OPEN:
            return found
        await bot.clock.sleep(pause)
    return Settled.OPEN
