"""``/history [count]``: the last messages of the session this chat talks to (spec HISTORY).

Only reads. It never creates, wakes or switches a session, and never calls the model.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import partial
from typing import Final

from commands.budget import LIMITS, fit, sendable, shorten
from commands.cleaning import clean, is_invisible
from commands.count import DEFAULT, parse_count
from commands.marks import without_marks
from commands.model import CommandRequest, CommandResult, Outcome, Services
from commands.recognise import ANY_BOT, Recognised, recognise
from harness_client.errors import Code, HarnessError
from harness_client.events import Image, Text
from harness_client.transcript import Role, VisibleBlock
from harness_client.types import SessionId
from harness_client.window import Window, read_window
from i18n import Key, Words

NAME: Final = "history"
_LABEL_CODE_POINTS: Final = 12
_EXAMINED: Final = 16_384
"""Code points of a message that are looked at: far more than can be shown, few enough not to hold the event loop, even
where each one is a control sequence."""

_FAILURES: Final = {
    Code.SESSION_NOT_FOUND: (Key.HISTORY_GONE, Outcome.REFUSED),
    Code.UNSUPPORTED: (Key.HISTORY_UNSUPPORTED, Outcome.FAILED),
    Code.TIMED_OUT: (Key.HISTORY_TIMED_OUT, Outcome.FAILED),
}
"""What has a phrase of its own; everything else cannot be read right now."""


def is_history(text: str) -> bool:
    """Whether stored text is a ``/history`` command, to whichever bot it was addressed."""
    return isinstance(recognise(text, {NAME: NAME}, bot=ANY_BOT), Recognised)


async def history(request: CommandRequest, services: Services) -> CommandResult:
    """Answer with the newest messages, oldest first; an argument that is no count reads as none."""
    words = services.words
    count = parse_count(request.argument) or DEFAULT
    binding = await services.bindings.get(request.chat)
    if binding.session is None:
        turn = services.turns.current(request.chat)
        starting = turn is not None and turn.starting
        return CommandResult((words(Key.HISTORY_STARTING if starting else Key.HISTORY_UNBOUND),), Outcome.REFUSED)
    try:
        window = await read_window(
            services.harness,
            binding.session,
            count,
            clock=services.clock,
            is_command=is_history,
            without_marks=without_marks,
        )
    except HarnessError as error:
        return _failed(error, binding.session, request, services)
    # Compared as a whole, counters included: a chat that was bound elsewhere and back counts as changed.
    if await services.bindings.get(request.chat) != binding:
        return CommandResult((words(Key.HISTORY_CHANGED),), Outcome.REFUSED)
    return CommandResult(render(window, binding.session, count, words))


def render(window: Window, session: SessionId, count: int, words: Words) -> tuple[str, ...]:
    """Return the reply's segments for ``window``, which was asked for ``count`` messages."""
    if not window.messages:
        return (words(Key.HISTORY_NOT_REACHED if window.more else Key.HISTORY_EMPTY),)
    bodies = [_body(message.blocks, words) for message in window.messages]
    roles = [words(_ROLES[message.role]) for message in window.messages]
    compose = partial(_compose, roles=roles, label=label(session), footer=_footer(window, count, words), words=words)
    return sendable(fit(bodies, words(Key.HISTORY_TRUNCATED), compose))


def label(session: SessionId) -> str:
    """Return the few characters of a session's id that tell a person which one it is."""
    seen = (c for c in session.removeprefix("session-") if unicodedata.category(c) not in {"Cc", "Cf", "Zl", "Zp"})
    return clean("".join(seen)[:_LABEL_CODE_POINTS]) or "-"


_ROLES: Final = {Role.USER: Key.HISTORY_USER, Role.ASSISTANT: Key.HISTORY_ASSISTANT}


def _compose(
    bodies: Sequence[str], dropped: int, *, roles: Sequence[str], label: str, footer: Sequence[str], words: Words
) -> str:
    entries = (f"{n}. {role}\n{body}" for n, (role, body) in enumerate(zip(roles[dropped:], bodies, strict=True), 1))
    notes = [*footer, *([words(Key.HISTORY_DROPPED, count=dropped)] if dropped else []), words(Key.HISTORY_FOOTER)]
    return "\n\n".join([words(Key.HISTORY_HEADER, label=label, count=len(bodies)), *entries, "\n".join(notes)])


def _footer(window: Window, count: int, words: Words) -> list[str]:
    lines = [words(Key.HISTORY_RUNNING)] if window.running else []
    if len(window.messages) < count:
        shortage = Key.HISTORY_BOUNDED if window.more else Key.HISTORY_ONLY
        lines.append(words(shortage, count=len(window.messages)))
    return lines


def _body(blocks: Sequence[VisibleBlock], words: Words) -> str:
    raw = "\n".join(part for part in (_part(block, words) for block in blocks) if part)
    text = clean(raw[:_EXAMINED])
    if is_invisible(text):
        return words(Key.HISTORY_NO_TEXT)
    return text if len(raw) <= _EXAMINED else shorten(text, LIMITS.body, words(Key.HISTORY_TRUNCATED))


def _part(block: VisibleBlock, words: Words) -> str:
    if isinstance(block, Text):
        return block.text
    return words(Key.HISTORY_IMAGE if isinstance(block, Image) else Key.HISTORY_FILE)


def _failed(error: HarnessError, session: SessionId, request: CommandRequest, services: Services) -> CommandResult:
    key, outcome = _FAILURES.get(error.code, (Key.HISTORY_UNAVAILABLE, Outcome.FAILED))
    reference = services.references.record(error, actor=request.sender, session=session)
    return CommandResult((services.words(key, reference=reference),), outcome, reference)
