"""Why the program could not start or go on, in words, with the way out."""

from __future__ import annotations

from typing import Final

from bridges.state import StateError, Trouble
from harness_client.embedded import EmbeddedError, HomeInUse, HostNotReady, RuntimeMissing
from harness_client.errors import Code, HarnessError
from i18n import Key, Words

Problem = StateError | HarnessError | EmbeddedError
"""What :func:`worded` has words for."""

_HOST: Final = {
    Code.UNREACHABLE: Key.START_UNREACHABLE,
    Code.TIMED_OUT: Key.START_TIMED_OUT,
    Code.UNAUTHORIZED: Key.START_UNAUTHORIZED,
    Code.FORBIDDEN: Key.START_FORBIDDEN,
    Code.WRONG_HOST: Key.START_WRONG_HOST,
    Code.UNSUPPORTED: Key.START_WRONG_HOST,
}
_STATE: Final = {
    Trouble.LOCKED: Key.STATE_LOCKED,
    Trouble.NEWER: Key.STATE_NEWER,
    Trouble.FOREIGN: Key.STATE_FOREIGN,
    Trouble.FULL: Key.STATE_FULL,
    Trouble.READ_ONLY: Key.STATE_READ_ONLY,
    Trouble.BUSY: Key.STATE_BUSY,
    Trouble.BROKEN: Key.STATE_BROKEN,
    Trouble.FAILED: Key.STATE_FAILED,
}


def worded(problem: Problem, words: Words, *, address: str = "") -> str:
    """Return the problem in words; ``address`` is the host's, without its token."""
    match problem:
        case StateError():
            # What is told of a newer file is where its older copy is, if there is one.
            newer = problem.trouble is Trouble.NEWER and problem.detail
            key = Key.STATE_NEWER_COPY if newer else _STATE[problem.trouble]
            return words(key, path=problem.path, reason=problem.detail, copy=problem.detail)
        case HarnessError():
            return words(_HOST.get(problem.code, Key.START_HOST_FAILED), address=address, reason=problem)
        case RuntimeMissing():
            return words(Key.START_NO_RUNTIME)
        case HomeInUse():
            return words(Key.START_HOME_IN_USE)
        case HostNotReady():
            return words(Key.START_NOT_READY, tail=problem.tail or str(problem))
        case _:
            return words(Key.START_NOT_READY, tail=str(problem))
