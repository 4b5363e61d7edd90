"""Looks at the Slack side of a bot: whose the tokens are, and what the app may do. Imports the SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bridges.checkup import kind, refused
from bridges.message import Noticed, Sign
from bridges.text.slack_api import ANSWER_SECONDS, DEAD_LOGINS, code_of, head
from bridges.text.slack_parse import SCOPES, SLACK

_GRANTED: Final = "x-oauth-scopes"
"""The header with which every answer says what its token may do."""


async def look(bot_token: str, app_token: str, api: str | None, hide: Callable[[str], None]) -> tuple[Noticed, ...]:
    """See :meth:`bridges.message.ChecksPlatform.check`; opens no link. ``hide`` keeps its address out of the log."""
    client = AsyncWebClient(base_url=api or SLACK, timeout=ANSWER_SECONDS, retry_handlers=[])
    return *await _bot(client, bot_token), *await _app(client, app_token, hide)


async def _bot(client: AsyncWebClient, token: str) -> tuple[Noticed, ...]:
    try:
        answer = await client.auth_test(token=token)
    except (SlackApiError, aiohttp.ClientError, TimeoutError) as error:
        return (_unseen(error, "bot_token", "bot_token"),)
    user, team = answer.get("user"), answer.get("team")
    if not (isinstance(user, str) and isinstance(team, str)):
        return (Noticed(Sign.UNREADABLE, "auth.test"),)
    who = Noticed(Sign.ACCEPTED, f"@{user}, {team}")
    headers = {name.lower(): value for name, value in answer.headers.items()}
    if _GRANTED not in headers:
        return (who,)
    granted = {scope.strip() for scope in str(headers[_GRANTED]).split(",")}
    missing = [scope for scope in SCOPES if scope not in granted]
    return (who, Noticed(Sign.NO_SCOPES, ", ".join(missing))) if missing else (who,)


async def _app(client: AsyncWebClient, token: str, hide: Callable[[str], None]) -> tuple[Noticed, ...]:
    try:
        answer = await client.apps_connections_open(app_token=token)
    except (SlackApiError, aiohttp.ClientError, TimeoutError) as error:
        return (_unseen(error, "app_token", "connections:write"),)
    url = answer.get("url")
    if not isinstance(url, str):
        return (Noticed(Sign.UNREADABLE, "apps.connections.open"),)
    hide(urlsplit(url).query)
    return ()


def _unseen(error: SlackApiError | aiohttp.ClientError | TimeoutError, token: str, scope: str) -> Noticed:
    """Return what a call shows that was not answered; ``scope`` is what a missing one is."""
    match error:
        case SlackApiError():
            status, _ = head(error)
            code = code_of(error)
            if code in DEAD_LOGINS:
                return Noticed(Sign.BAD_CREDENTIAL, token)
            if code == "missing_scope":
                return Noticed(Sign.NO_SCOPES, scope)
            return refused(status, code) if code or status != 200 else Noticed(Sign.UNREADABLE, kind(error))
        case aiohttp.ClientConnectorError():
            return Noticed(Sign.UNREACHED, kind(error))
        case TimeoutError():
            return Noticed(Sign.SILENT)
        case _:
            return Noticed(Sign.UNREADABLE, kind(error))
