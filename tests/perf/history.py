"""``/history 5``: our own share of its time, and whether a long session costs more than a short one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from commands.history import history
from commands.model import Binding, ChatKey, ChatKind, CommandRequest, Outcome, SenderId
from harness_client.client import Address, HarnessClient
from harness_client.clock import SYSTEM_CLOCK
from harness_client.types import SessionId
from i18n import Language, Words
from tests.commands.rig import reading
from tests.perf.host import FIFTY, LONG, SHORT
from tests.perf.measure import Figure, Sample, median, sample

ROUNDS = 60
WARM_UP = 5
CHAT = ChatKey("terminal", "local", "perf")


@dataclass(frozen=True, slots=True)
class _Bound:
    """The one chat is bound to one session, for ever."""

    session: SessionId

    async def get(self, chat: ChatKey) -> Binding:
        return Binding(self.session, 1, 1, 1)

    async def bind(self, chat: ChatKey, session: SessionId, *, expected: Binding) -> Binding:
        raise NotImplementedError

    async def unbind(self, chat: ChatKey) -> Binding:
        raise NotImplementedError


class _NoReferences:
    """A failure ends the benchmark."""

    def record(self, error: BaseException, *, actor: SenderId, session: SessionId | None) -> str:
        raise error


async def figures(address: str) -> list[Figure]:
    """Ask in turn for the three sessions, so that all of them see the same machine."""
    request = CommandRequest(CHAT, ChatKind.DIRECT, SenderId("me"), "5")
    samples: dict[SessionId, list[Sample]] = {FIFTY: [], SHORT: [], LONG: []}
    async with HarnessClient(Address.parse(address)) as client:

        async def ask(session: SessionId) -> None:
            services = reading(_Bound(session), client, Words(Language.EN), SYSTEM_CLOCK, _NoReferences())
            result = await history(request, services)
            assert result.outcome is Outcome.OK
            assert "Latest 5" in result.segments[0]

        for number in range(WARM_UP + ROUNDS):
            for session, taken in samples.items():
                one = await sample(partial(ask, session))
                if number >= WARM_UP:
                    taken.append(one)
    wall = {session: median([one.wall for one in taken]) * 1000 for session, taken in samples.items()}
    own = median([one.cpu for one in samples[FIFTY]]) * 1000
    return [
        Figure("our own time in /history 5 on a page of 50 messages (150 kB)", own, 5, "ms",
               f"processor time, median of {ROUNDS}; {wall[FIFTY]:.1f} ms with the fake host"),
        Figure("/history 5 on 40,000 messages against 40", wall[LONG] / wall[SHORT], 1.2, "times",
               f"{wall[LONG]:.1f} ms against {wall[SHORT]:.1f} ms, medians of {ROUNDS}"),
    ]  # fmt: skip
