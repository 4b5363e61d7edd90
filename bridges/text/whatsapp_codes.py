"""What the Graph API's error codes mean. The code decides; the HTTP status only where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bridges.message import ChannelStopped, NotSent, Stop

MOST_REFUSALS: Final = 8
"""Further ones in a row make the wait no longer."""


@dataclass(frozen=True, slots=True)
class Slower:
    """Not sent: try again after ``first`` seconds, and each further refusal makes it ``more`` or ``times`` as many."""

    first: float
    more: float = 0.0
    times: float = 1.0

    def wait(self, refusals: int) -> float:
        """Return the seconds to wait after so many refusals in a row, the present one included."""
        earlier = min(refusals, MOST_REFUSALS) - 1
        return (self.first + self.more * earlier) * self.times**earlier


@dataclass(frozen=True, slots=True)
class Meaning:
    """What becomes of the message, and of the link if ``stop`` says why it cannot go on; ``advice`` is for the log."""

    outcome: NotSent | Slower
    stop: Stop | None = None
    advice: str = ""

    def stopped(self, code: int) -> ChannelStopped | None:
        """Return what ends the link, if it ends."""
        return ChannelStopped(self.stop, f"{self.advice} (code {code})") if self.stop else None


_TOKEN: Final = Meaning(
    NotSent.REAUTHENTICATE,
    Stop.NEEDS_LOGIN,
    "WhatsApp refuses the access token or its permissions; put a new one in its place",
)
_ACCOUNT: Final = Meaning(
    NotSent.BLOCKED, Stop.MISCONFIGURED, "WhatsApp has restricted the number or its account; see WhatsApp Manager"
)
_MANY: Final = Meaning(Slower(120.0), advice="the app or its account has used up its calls for now")
_TRANSIENT: Final = Meaning(Slower(2.0, times=2.0))
_UNREACHABLE: Final = Meaning(NotSent.BLOCKED)
_OURS: Final = Meaning(NotSent.REJECTED, advice="WhatsApp does not understand what we sent")

MEANINGS: Final = {
    131047: Meaning(NotSent.WINDOW_CLOSED, advice="the person last wrote more than 24 hours ago"),
    131056: Meaning(Slower(6.0, more=6.0)),  # about one message to a person every six seconds
    130429: Meaning(Slower(1.0, times=4.0)),  # of one number
    **dict.fromkeys((4, 80007), _MANY),
    **dict.fromkeys((368, 131031, 131042, 131048), _ACCOUNT),
    131049: Meaning(NotSent.BLOCKED, advice="WhatsApp shields this person from more messages for now"),
    **dict.fromkeys((131021, 131026, 131030), _UNREACHABLE),
    **dict.fromkeys((131020, 131041, 131207, 131208), _UNREACHABLE),  # of a group
    **dict.fromkeys((0, 10, 190, *range(200, 300)), _TOKEN),
    **dict.fromkeys((100, 131008, 131009, 131062), _OURS),
    **dict.fromkeys((1, 2, 131000, 131016), _TRANSIENT),
}
"""Code -> meaning."""


def meaning(code: int | None, status: int) -> Meaning:
    """Return what a refusal means; a code that nobody knows is a refusal that repeating would not change."""
    if code is not None and code in MEANINGS:
        return MEANINGS[code]
    if status == 401 and code is None:
        return _TOKEN
    if status == 429:
        return _MANY
    return Meaning(NotSent.UNKNOWN if status >= 500 else NotSent.REJECTED)
