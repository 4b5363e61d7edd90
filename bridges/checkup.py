"""What a look at a platform shows when there is no answer to work with: one rule for all channels."""

from __future__ import annotations

from bridges import shown
from bridges.http import CallFailed, TimedOut, Unreached
from bridges.message import Noticed, Sign


def unanswered(error: CallFailed) -> Noticed:
    """Return what a call without an answer shows."""
    match error:
        case Unreached():
            return Noticed(Sign.UNREACHED, kind(error))
        case TimedOut():
            return Noticed(Sign.SILENT)
        case _:
            return Noticed(Sign.UNREADABLE, kind(error))


def kind(error: BaseException) -> str:
    """Return what kind of failure it is; texts of SDKs may hold tokens and addresses."""
    return str(error) if isinstance(error, CallFailed) else type(error).__name__


def refused(status: int, code: object = "") -> Noticed:
    """Return what a refusal shows that says nothing about the credentials."""
    told = shown.code(str(code)) if code else f"HTTP {status}"
    return Noticed(Sign.BUSY if status == 429 or status >= 500 else Sign.REFUSED, told)


def sessions(remaining: int, total: int, reset_milliseconds: int) -> tuple[Noticed, ...]:
    """Return what is to be said of the connections a gateway still allows, if anything."""
    if remaining <= 0:
        return (Noticed(Sign.NO_SESSIONS, str(-(-reset_milliseconds // 60_000))),)
    return (Noticed(Sign.FEW_SESSIONS, f"{remaining}/{total}"),) if remaining * 10 < total else ()
