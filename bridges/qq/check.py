"""Looks at the QQ side of a bot: its secret, who it is, and how often it may still connect."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bridges.checkup import refused, sessions, unanswered
from bridges.http import CallFailed
from bridges.message import Clock, Noticed, Sign
from bridges.qq.rest import Answer, Application, BadSecret, Refused, Rest


class _Me(Answer):
    username: str = ""


class _Limit(msgspec.Struct):
    total: int = 1
    remaining: int = 1
    reset_after: int = 0
    """Milliseconds."""


class _Gateway(Answer):
    session_start_limit: _Limit = msgspec.field(default_factory=_Limit)


async def look(application: Application, clock: Clock, hide: Callable[[str], None]) -> tuple[Noticed, ...]:
    """See :meth:`bridges.message.ChecksPlatform.check`; opens no session."""
    rest = Rest(application, clock, hide)
    try:
        me = await rest.call("GET", "/users/@me", _Me)
        limit = (await rest.call("GET", "/gateway/bot", _Gateway)).session_start_limit
    except BadSecret:
        return (Noticed(Sign.BAD_CREDENTIAL, "app_id, client_secret"),)
    except Refused as error:
        return (refused(error.status, error.code or ""),)
    except CallFailed as error:
        return (unanswered(error),)
    finally:
        await rest.close()
    left = sessions(limit.remaining, limit.total, limit.reset_after)
    return Noticed(Sign.ACCEPTED, me.username or application.id), *left
