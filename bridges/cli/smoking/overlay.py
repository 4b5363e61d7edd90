"""The state of a smoke test: the production state, read only, but for the ids of the messages that were taken.

Those are written down, so that a platform that delivers one of them again later does not have it run after all.
Everything else that would be kept is refused, or forgotten at the end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

from bridges.message import Cursors, EventId
from bridges.state import (
    BotKey,
    Bots,
    Chats,
    Claims,
    Health,
    Healths,
    Noted,
    Pairing,
    Pairings,
    Settings,
    State,
    StateError,
    Trouble,
    Turn,
)
from bridges.state.sqlite import CURSOR_KEYS
from commands.model import Binding, ChatKey, SenderId
from harness_client.types import SessionId
from i18n import Language

NO_CODE: Final = "00000000"
"""What a stranger is shown in the place of a pairing code; no real one has a zero."""


def over(state: State, path: Path, *, language: Callable[[], Language], pairs: Callable[[], bool]) -> State:
    """Return the state of a smoke test over the real one at ``path``.

    Every chat speaks ``language``; a stranger is shown :data:`NO_CODE` while ``pairs``, and nothing otherwise.
    """
    refuse = _Refusal(path)
    return State(
        chats=_Chats(state.chats, language, refuse),
        bots=_Bots(state.bots, refuse),
        claims=_Claims(state.claims, refuse),
        turns=_Turns(refuse),
        pairings=_Pairings(state.pairings, pairs, refuse),
        healths=_Healths(state.healths),
        cursors=lambda bot: _Cursors(state.cursors(bot)),
        set_aside=state.set_aside,
    )


@dataclass(frozen=True, slots=True)
class _Refusal:
    path: Path

    def __call__(self) -> NoReturn:
        raise StateError(Trouble.READ_ONLY, self.path, "smoke test")


@dataclass(frozen=True, slots=True)
class _Chats:
    """See :class:`bridges.state.model.Chats`."""

    real: Chats
    language: Callable[[], Language]
    refuse: _Refusal

    async def get(self, chat: ChatKey) -> Binding:
        return await self.real.get(chat)

    async def settings(self, chat: ChatKey) -> Settings:
        return replace(await self.real.settings(chat), language=self.language())

    async def bound(self) -> tuple[tuple[ChatKey, SessionId], ...]:
        return await self.real.bound()

    async def bind(self, chat: ChatKey, session: SessionId, *, expected: Binding) -> Binding:
        del chat, session, expected
        self.refuse()

    async def unbind(self, chat: ChatKey) -> Binding:
        del chat
        self.refuse()

    async def set_language(self, chat: ChatKey, language: Language | None) -> None:
        del chat, language
        self.refuse()

    async def set_preset(self, chat: ChatKey, preset: str | None) -> None:
        del chat, preset
        self.refuse()

    async def pin_workspace(self, chat: ChatKey, path: str | None) -> Binding:
        del chat, path
        self.refuse()


@dataclass(frozen=True, slots=True)
class _Bots:
    """See :class:`bridges.state.model.Bots`."""

    real: Bots
    refuse: _Refusal

    async def workspace(self, bot: BotKey) -> str | None:
        return await self.real.workspace(bot)

    async def switch_workspace(self, bot: BotKey, path: str, *, unpin: ChatKey | None = None) -> None:
        del bot, path, unpin
        self.refuse()

    async def settle(self, present: Iterable[BotKey]) -> None:
        del present
        self.refuse()


@dataclass(frozen=True, slots=True)
class _Claims:
    """See :class:`bridges.state.model.Claims`: the one thing that is written."""

    real: Claims
    refuse: _Refusal

    async def claim(self, bot: BotKey, event: EventId, *, turn: Turn | None = None) -> bool:
        if turn is not None:  # a prompt: none may begin
            self.refuse()
        return await self.real.claim(bot, event)


@dataclass(frozen=True, slots=True)
class _Turns:
    """See :class:`bridges.state.model.Turns`: those of the production bot stay as they are."""

    refuse: _Refusal

    async def save(self, turn: Turn) -> None:
        del turn
        self.refuse()

    async def end(self, turn: Turn) -> None:
        del turn
        self.refuse()

    async def outstanding(self, bot: BotKey) -> tuple[Turn, ...]:
        del bot
        return ()


@dataclass(frozen=True, slots=True)
class _Pairings:
    """See :class:`bridges.state.model.Pairings`."""

    real: Pairings
    pairs: Callable[[], bool]
    refuse: _Refusal

    async def ask(self, bot: BotKey, sender: SenderId) -> str | None:
        del bot, sender
        return NO_CODE if self.pairs() else None

    async def approve(self, code: str, *, bot: BotKey | None = None) -> Pairing | None:
        del code, bot
        self.refuse()

    async def admitted(self, bot: BotKey, sender: SenderId) -> bool:
        return await self.real.admitted(bot, sender)

    async def dismiss(self, bot: BotKey, sender: SenderId) -> bool:
        del bot, sender
        self.refuse()

    async def waiting(self) -> tuple[Pairing, ...]:
        return await self.real.waiting()


@dataclass(frozen=True, slots=True)
class _Healths:
    """See :class:`bridges.state.model.Healths`: a smoke test is no running program."""

    real: Healths

    async def note(self, healths: Iterable[Health]) -> None:
        del healths

    async def noted(self) -> tuple[Noted, ...]:
        return await self.real.noted()


class _Cursors:
    """See :class:`bridges.message.Cursors`: begins where the production bot is, and leaves that one there."""

    def __init__(self, real: Cursors) -> None:
        self._real = real
        self._written: OrderedDict[str, bytes] = OrderedDict()

    async def load(self, key: str) -> bytes | None:
        return self._written[key] if key in self._written else await self._real.load(key)

    async def save(self, key: str, value: bytes) -> None:
        self._written[key] = value
        self._written.move_to_end(key)
        while len(self._written) > CURSOR_KEYS:
            self._written.popitem(last=False)
