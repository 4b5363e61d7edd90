"""Everything that can go wrong between us and the host, as one tree.

::

    HarnessError                    .code is a member of Code
    ├── Unreachable                 no answer: refused, reset, DNS, closed early
    ├── TimedOut                    the deadline passed first
    ├── Unauthorized                401, or the login was refused
    ├── Forbidden                   403: the Host/Origin fence
    ├── Unsupported                 404 or "unknown method": this host has no such call
    ├── WrongHost                   something answered that is no Harness we know
    ├── Malformed                   an answer that breaks the protocol
    │   └── HostFault               HTTP 5xx: a handler of the host broke; what it was doing may go on
    ├── TooLarge                    a body over the cap
    └── Refused                     the host answered "no"; .reason is the host's own code
        ├── SessionNotFound
        ├── SessionBusy             agent busy, writer held, command not possible now
        └── Conflict                the id, path or name is taken or does not fit

Every exception of a lower library is turned into one of these at the transport's edge
(``tests/harness_client/test_carrier.py`` lists them). Messages never hold a response body, a token or a message text:
they are safe to log. ``str(error)`` is for operators; what a person in a chat reads is chosen by ``code`` in the
layers above.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Code(StrEnum):
    """The closed set of failures, for decisions and metrics labels."""

    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed-out"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    UNSUPPORTED = "unsupported"
    WRONG_HOST = "wrong-host"
    MALFORMED = "malformed"
    TOO_LARGE = "too-large"
    REFUSED = "refused"
    SESSION_NOT_FOUND = "session-not-found"
    SESSION_BUSY = "session-busy"
    CONFLICT = "conflict"


class HarnessError(Exception):
    """Root of the tree; never raised itself."""

    code: Code


class Unreachable(HarnessError):
    """No answer came: connection refused or reset, name unknown, closed in the middle of a body."""

    code = Code.UNREACHABLE


class TimedOut(HarnessError):
    """The deadline passed before the answer was complete. The call may have taken effect."""

    code = Code.TIMED_OUT


class Unauthorized(HarnessError):
    """The host wants a login it did not get, or refused the one it got."""

    code = Code.UNAUTHORIZED


class Forbidden(HarnessError):
    """The host's Host/Origin fence refused the request (HTTP 403)."""

    code = Code.FORBIDDEN


class Unsupported(HarnessError):
    """This host has no such call: HTTP 404, or its own word for an unknown method."""

    code = Code.UNSUPPORTED


class WrongHost(HarnessError):
    """Something answered, but it is no Harness of a known generation."""

    code = Code.WRONG_HOST


class Malformed(HarnessError):
    """The answer breaks the protocol: wrong content type, wrong JSON, wrong shape, contradicting events."""

    code = Code.MALFORMED


class HostFault(Malformed):
    """A handler of the host broke (HTTP 500 and its like). The call may have taken effect; the next may succeed."""


class TooLarge(HarnessError):
    """The body is over the cap (bytes, after content decoding)."""

    code = Code.TOO_LARGE


class Refused(HarnessError):
    """The host understood and said no."""

    code = Code.REFUSED

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason
        """The host's own error code, such as ``session/title-invalid``; safe to log."""


class SessionNotFound(Refused):
    """The session does not exist on this host."""

    code = Code.SESSION_NOT_FOUND


class SessionBusy(Refused):
    """The agent is busy, or another process holds the session's writer."""

    code = Code.SESSION_BUSY


class Conflict(Refused):
    """The id, path or name is taken, or does not fit what exists."""

    code = Code.CONFLICT


_KINDS: dict[str, type[Refused]] = {
    "session-not-found": SessionNotFound,
    "session/not-found": SessionNotFound,
    "agent-busy": SessionBusy,
    "steer-unavailable": SessionBusy,
    "session/agent-busy": SessionBusy,
    "session/writer-held": SessionBusy,
    "session-conflict": Conflict,
    "session/conflict": Conflict,
    "workspace-name-conflict": Conflict,
    "workspace/name-conflict": Conflict,
    "agent-preset-locked": Conflict,
    "agent-preset/locked": Conflict,
}
_UNSUPPORTED = frozenset({"unknown-command", "gateway/invocation-unavailable", "gateway/signature-invalid"})
_REASON = re.compile(r"[A-Za-z0-9/_.-]{1,64}")


def refusal(reason: str, what: str) -> Refused | Unsupported:
    """Turn the host's error code for the call ``what`` into an error (codes: facts HARNESS 3.3 and 4.4).

    Only the code is kept: the host's message may quote ids, paths and text.
    """
    if not _REASON.fullmatch(reason):
        reason = "unrecognised"
    if reason in _UNSUPPORTED:
        return Unsupported(f"{what}: {reason}")
    return _KINDS.get(reason, Refused)(f"{what}: {reason}", reason=reason)
