"""What a chat reads at the end of a turn."""

from __future__ import annotations

from commands.model import Outcome
from harness_client.errors import Code, HarnessError, Refused
from harness_client.turn import TurnEnding, TurnReader
from i18n import Key, Words

_ENDINGS = {
    TurnEnding.ABORTED: (Key.CHAT_ABORTED, Outcome.OK),
    TurnEnding.ERROR: (Key.CHAT_TURN_FAILED, Outcome.FAILED),
    TurnEnding.MAX_TOKENS: (Key.CHAT_MAX_TOKENS, Outcome.OK),
    TurnEnding.INTERRUPTED: (Key.CHAT_INTERRUPTED, Outcome.FAILED),
    TurnEnding.BLOCKED: (Key.CHAT_BLOCKED, Outcome.FAILED),
    TurnEnding.OTHER: (Key.CHAT_ENDED, Outcome.FAILED),
}

_FAILURES = {
    Code.UNREACHABLE: Key.CHAT_UNREACHABLE,
    Code.TIMED_OUT: Key.CHAT_TIMED_OUT,
    Code.UNAUTHORIZED: Key.CHAT_UNAUTHORIZED,
    Code.FORBIDDEN: Key.CHAT_UNAUTHORIZED,
    Code.SESSION_NOT_FOUND: Key.CHAT_SESSION_GONE,
    Code.SESSION_BUSY: Key.CHAT_SESSION_BUSY,
}

_NO_PRESET = frozenset({"agent-preset-not-found", "agent-preset/not-found"})

_IMAGE_REFUSALS = frozenset({"attachment-error", "session/attachment-invalid"})
"""The host's codes for an image that it, or the model, does not take."""


def joined(*parts: str) -> str:
    """Join what is not blank, a blank line between the parts."""
    return "\n\n".join(part for part in parts if part.strip())


def ending_text(reader: TurnReader, words: Words) -> tuple[str, Outcome]:
    """Return the answer of a turn that has ended, with a line on how it ended where that was not well."""
    text = joined(reader.text(), words(Key.CHAT_DAMAGED) if reader.damaged else "")
    if reader.ending is None or reader.ending is TurnEnding.COMPLETED:
        return text or words(Key.CHAT_DONE), Outcome.OK
    key, outcome = _ENDINGS[reader.ending]
    return joined(text, words(key)), outcome


def failure_text(error: HarnessError, words: Words, reference: str) -> str:
    """Return a short, safe phrase for a host's failure."""
    if isinstance(error, Refused) and error.reason in _NO_PRESET:
        return words(Key.CHAT_PRESET_GONE)
    if isinstance(error, Refused) and error.reason in _IMAGE_REFUSALS:
        return words(Key.CHAT_IMAGES_REFUSED, reference=reference)
    return words(_FAILURES.get(error.code, Key.CHAT_FAILED), reference=reference)
