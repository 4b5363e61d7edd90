"""The edge to Slack's Web API: its calls in our words, its errors as our outcomes. Imports the SDK.

Nothing is repeated here. The SDK's own retry after a broken connection would post a message twice.
"""

from __future__ import annotations

from typing import Final

import aiohttp
import msgspec
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bridges import shown
from bridges.http import BODY_LIMIT, CallFailed, Reply, Request, Unreached, exchange
from bridges.message import ChannelStopped, Clock, NotSent, RetryAfter, SendOutcome, Sent, SentId, Stop
from bridges.text.slack_parse import SLACK, Me, escaped
from bridges.trusted import TrustedHosts, UntrustedHost

ANSWER_SECONDS: Final = 20
"""How long a call waits for its answer; afterwards nobody knows whether it took effect."""

LOOKUP_SECONDS: Final = 2
"""How long a question may take that must be settled within the 3 s in which Slack wants an acknowledgement."""

UNREACHED_SECONDS: Final = 2.0
"""When to try again what never left this machine."""

UNNAMED_WAIT: Final = 30.0
"""How long to wait when Slack says "too fast" and not until when."""

FETCH_SECONDS: Final = 60


DEAD_LOGINS: Final = frozenset({
    "account_inactive", "invalid_auth", "not_authed", "not_allowed_token_type", "token_expired", "token_revoked",
    "user_removed_from_team",
})  # fmt: skip
"""What Slack says of a token that only a person can replace."""

_OUTCOMES: Final = {
    **dict.fromkeys(DEAD_LOGINS, NotSent.REAUTHENTICATE),
    **dict.fromkeys(
        (
            "access_denied", "channel_is_archived", "channel_not_found", "ekm_access_denied", "is_archived",
            "messages_tab_disabled", "no_permission", "not_in_channel", "restricted_action",
            "restricted_action_non_threadable_channel", "restricted_action_read_only_channel",
            "restricted_action_thread_locked", "restricted_action_thread_only_channel", "team_access_not_granted",
            "user_disabled", "user_not_found",
        ),
        NotSent.BLOCKED,
    ),
    **dict.fromkeys(("msg_too_long", "msg_blocks_too_long"), NotSent.TOO_LONG),
    "edit_window_closed": NotSent.WINDOW_CLOSED,
    # Slack itself says of these that part of the work may have been done.
    **dict.fromkeys(("fatal_error", "internal_error", "request_timeout", "service_unavailable"), NotSent.UNKNOWN),
}  # fmt: skip
"""Slack's word -> our outcome; a word that is not here is a refusal that repeating would not change."""

_TOO_FAST: Final = frozenset({"message_limit_exceeded", "rate_limited", "ratelimited"})

_PLAIN: Final = {"mrkdwn": False, "unfurl_links": False, "unfurl_media": False}


class SlackApi:
    """The calls one bot makes with its bot token. ``api`` is another address of the Web API in place of Slack's."""

    def __init__(self, token: str, api: str | None, clock: Clock) -> None:
        self._token = token
        self._clock = clock
        self._hosts = TrustedHosts(("slack.com",), api)
        base = api or SLACK
        self._client = AsyncWebClient(token, base_url=base, timeout=ANSWER_SECONDS, retry_handlers=[])
        self._lookups = AsyncWebClient(token, base_url=base, timeout=LOOKUP_SECONDS, retry_handlers=[])

    async def log_in(self) -> Me:
        """Return who we are. Raises ChannelStopped, ConnectionError."""
        try:
            answer = await self._client.auth_test()
        except (SlackApiError, aiohttp.ClientError, TimeoutError) as error:
            raise lost(error, "bot token (xoxb-…)") from None
        return Me(str(answer["user_id"]), str(answer.get("bot_id", "")))

    async def is_ours(self, conversation: str) -> bool:
        """Whether a private conversation is one with the bot; False also when nobody can say in time."""
        try:
            answer = await self._lookups.conversations_info(channel=conversation)
        except (SlackApiError, aiohttp.ClientError, TimeoutError):
            return False
        channel = answer.get("channel")
        return isinstance(channel, dict) and channel.get("is_im") is True

    async def post(self, channel: str, thread: str | None, text: str) -> SendOutcome:
        """Send a message."""
        where = {"channel": channel, "thread_ts": thread} if thread else {"channel": channel}
        return await self._say("chat.postMessage", where, text)

    async def update(self, channel: str, message: SentId, text: str) -> SendOutcome:
        """Replace the text of a message of ours."""
        return await self._say("chat.update", {"channel": channel, "ts": message}, text)

    async def _say(self, method: str, where: dict[str, str], text: str) -> SendOutcome:
        body = {**where, "text": escaped(text), "parse": "none", "link_names": False, **_PLAIN}
        try:
            answer = await self._client.api_call(method, json=body)
        except SlackApiError as error:
            status, headers = head(error)
            return _refused(status, code_of(error), headers.get("Retry-After"))
        except (aiohttp.ClientError, TimeoutError) as error:
            return _unanswered(error)
        name = answer.get("ts")
        return Sent(SentId(str(name)) if name else None)

    async def respond(self, hook: str, text: str) -> SendOutcome:
        """Answer a slash command for the eyes of its sender, at most five times in 30 minutes."""
        body = {"text": escaped(text), "response_type": "ephemeral", "replace_original": False, **_PLAIN}
        headers = {"Content-Type": "application/json"}
        try:
            url = self._hosts.check(hook)
            reply = await self._exchange(
                {"method": "POST", "url": url, "headers": headers, "data": msgspec.json.encode(body)}, ANSWER_SECONDS
            )
        except UntrustedHost:
            return NotSent.REJECTED
        except Unreached:
            return RetryAfter(UNREACHED_SECONDS)
        except CallFailed:
            return NotSent.UNKNOWN
        if reply.status == 200:
            return Sent(None)
        if reply.status in {404, 410}:  # used up, or too old
            return NotSent.WINDOW_CLOSED
        return _refused(reply.status, "", reply.headers.get("Retry-After"))

    async def fetch(self, address: str, limit: int) -> bytes:
        """Fetch at most ``limit`` bytes of a file from Slack. Raises OSError."""
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            url = self._hosts.check(address)
            reply = await self._exchange({"method": "GET", "url": url, "headers": headers}, FETCH_SECONDS, limit)
        except UntrustedHost:
            raise OSError("the file is elsewhere") from None
        except CallFailed as error:
            raise OSError(str(error)) from None
        # Without the scope files:read Slack answers 200 with its sign-in page, or sends us there.
        if reply.status != 200 or reply.headers.get("Content-Type", "").startswith("text/html"):
            raise OSError(f"file: HTTP {reply.status}, or a page in its place")
        return reply.body

    async def _exchange(self, request: Request, seconds: float, limit: int = BODY_LIMIT) -> Reply:
        # Whoever needs a proxy to reach the platform needs it here too: the SDK reads the same variables.
        async with aiohttp.ClientSession(trust_env=True) as http:
            return await exchange(http, self._clock, "slack", request, seconds=seconds, limit=limit)


def code_of(error: SlackApiError) -> str:
    """Return Slack's word for what went wrong; empty when it is no answer of Slack's."""
    data = error.response.data if isinstance(error.response, AsyncSlackResponse) else None
    return str(data.get("error", "")) if isinstance(data, dict) else ""


def lost(error: SlackApiError | aiohttp.ClientError | TimeoutError, token: str) -> Exception:
    """Return what a failed log-in with ``token`` means for the link; no text of Slack's gets into it."""
    code = code_of(error) if isinstance(error, SlackApiError) else ""
    if code in DEAD_LOGINS:
        return ChannelStopped(Stop.NEEDS_LOGIN, f"Slack refuses the {token}: {code}; put a new one in its place")
    if code == "missing_scope":
        return ChannelStopped(Stop.MISCONFIGURED, f"the {token} lacks a scope; install the app with its manifest")
    return ConnectionError(code or type(error).__name__)


def wait_of(error: SlackApiError) -> float | None:
    """Return the seconds Slack asks to wait; None when it asks for nothing of the kind."""
    status, headers = head(error)
    return _seconds(headers.get("Retry-After")) if status == 429 or code_of(error) in _TOO_FAST else None


def head(error: SlackApiError) -> tuple[int, dict[str, str]]:
    """Return status and headers; an answer that is no JSON comes as aiohttp made it."""
    answer = error.response
    status = answer.status_code if isinstance(answer, AsyncSlackResponse) else answer.status
    return int(status), dict(answer.headers)


def _refused(status: int, code: str, wait: str | None) -> SendOutcome:
    if status == 429 or code in _TOO_FAST:
        return RetryAfter(_seconds(wait))
    no_verdict = status >= 500 or (status < 300 and not code)  # a page of something in between, or half an answer
    outcome = NotSent.UNKNOWN if no_verdict else _OUTCOMES.get(code, NotSent.REJECTED)
    structlog.get_logger(__name__).warning("not sent", status=status, code=shown.code(code), outcome=outcome)
    return outcome


def _unanswered(error: aiohttp.ClientError | TimeoutError) -> SendOutcome:
    return RetryAfter(UNREACHED_SECONDS) if isinstance(error, aiohttp.ClientConnectorError) else NotSent.UNKNOWN


def _seconds(wait: str | None) -> float:
    return float(wait) if wait is not None and wait.isascii() and wait.isdigit() else UNNAMED_WAIT
