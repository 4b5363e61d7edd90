"""Looks at the Feishu side of a bot: the app's secret, its bot feature, whether it is switched on, its scopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bridges.checkup import refused, unanswered
from bridges.feishu.rest import Application, BadSecret, BotInfo, Refused, Rest, Scopes
from bridges.http import CallFailed
from bridges.message import Clock, Noticed, Sign

NEEDED: Final = {
    "im:message.p2p_msg:readonly": {"im:message.p2p_msg", "im:message", "im:message:readonly"},
    "im:message.group_at_msg:readonly": {"im:message.group_at_msg", "im:message.group_msg", "im:message"},
    "im:message:send_as_bot": {"im:message", "im:message:send"},
    "im:resource": {"im:message", "im:message:readonly", "im:message.history:readonly"},
    "cardkit:card:write": {"cardkit:card"},
}
"""A scope, and wider ones that hold it."""

_NO_BOT: Final = 11205
_GRANTED: Final = 1
_ACTIVE: Final = frozenset({None, 2, 4})
"""Switched on, also while an update waits for the administrator."""


async def look(application: Application, clock: Clock, hide: Callable[[str], None]) -> tuple[Noticed, ...]:
    """See :meth:`bridges.message.ChecksPlatform.check`; connects nothing."""
    rest = Rest(application, clock, hide)
    try:
        info = await rest.call("GET", "/bot/v3/info", BotInfo)
        if info.bot is None:
            return (Noticed(Sign.NO_BOT),)
        state = info.bot.activate_status
        active = () if state in _ACTIVE else (Noticed(Sign.NOT_ACTIVE, str(state)),)
        return Noticed(Sign.ACCEPTED, info.bot.app_name or application.id), *active, *await _scopes(rest)
    except BadSecret:
        return (Noticed(Sign.BAD_CREDENTIAL, "app_id, app_secret"),)
    except Refused as error:
        return (Noticed(Sign.NO_BOT) if error.code == _NO_BOT else refused(error.status, error.code or ""),)
    except CallFailed as error:
        return (unanswered(error),)
    finally:
        await rest.close()


async def _scopes(rest: Rest) -> tuple[Noticed, ...]:
    """Name the scopes that are not there; a tenant that does not tell is not held against the app."""
    try:
        told = await rest.call("GET", "/application/v6/scopes", Scopes)
    except (Refused, CallFailed):
        return ()
    granted = {scope.scope_name for scope in told.data.scopes if scope.grant_status == _GRANTED}
    missing = [scope for scope, wider in NEEDED.items() if not granted & {scope, *wider}]
    return (Noticed(Sign.SCOPES_UNSEEN, ", ".join(missing)),) if missing else ()
