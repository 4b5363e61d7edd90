"""Looks at the Discord side of a bot, by plain calls: the SDK would repeat what fails for half a minute."""

from __future__ import annotations

from typing import Final, TypeVar

import aiohttp
import msgspec

from bridges.checkup import refused, sessions, unanswered
from bridges.http import CallFailed, Unanswered, exchange, new_session
from bridges.message import Clock, Noticed, Sign

MESSAGE_CONTENT: Final = 1 << 18 | 1 << 19
"""Flags of an application that may read messages: one of many servers, or one of few."""


class _User(msgspec.Struct):
    username: str


class _Application(msgspec.Struct):
    flags: int = 0


class _Limit(msgspec.Struct):
    total: int
    remaining: int
    reset_after: int
    """Milliseconds."""


class _Gateway(msgspec.Struct):
    session_start_limit: _Limit


A = TypeVar("A")


class _Refused(Exception):
    """Discord said no; what that shows."""

    def __init__(self, noticed: Noticed) -> None:
        super().__init__(noticed.sign)
        self.noticed = noticed


async def look(token: str, base: str, clock: Clock) -> tuple[Noticed, ...]:
    """See :meth:`bridges.message.ChecksPlatform.check`; opens no session. ``base`` ends in ``/api/v10``."""
    async with new_session() as http:
        try:
            me = await _get(http, clock, token, f"{base}/users/@me", _User)
            application = await _get(http, clock, token, f"{base}/applications/@me", _Application)
            gateway = await _get(http, clock, token, f"{base}/gateway/bot", _Gateway)
        except _Refused as error:
            return (error.noticed,)
        except CallFailed as error:
            return (unanswered(error),)
    intent = () if application.flags & MESSAGE_CONTENT else (Noticed(Sign.NO_INTENT),)
    limit = gateway.session_start_limit
    left = sessions(limit.remaining, limit.total, limit.reset_after)
    return Noticed(Sign.ACCEPTED, f"@{me.username}"), *intent, *left


async def _get(http: aiohttp.ClientSession, clock: Clock, token: str, url: str, answer: type[A]) -> A:
    call = url.rpartition("/api/")[2]
    headers = {"Authorization": f"Bot {token}"}
    reply = await exchange(http, clock, call, {"method": "GET", "url": url, "headers": headers})
    if reply.status == 401:
        raise _Refused(Noticed(Sign.BAD_CREDENTIAL, "token"))
    if reply.status != 200:
        raise _Refused(refused(reply.status))
    try:
        return msgspec.json.decode(reply.body, type=answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unanswered(f"{call}: the answer is not what it should be") from None
