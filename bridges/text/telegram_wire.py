"""What carries python-telegram-bot's calls: our own bounded HTTP, and answers that no log hears of. Imports the SDK."""

from __future__ import annotations

import json
from typing import Final

import aiohttp
from telegram.error import NetworkError, TimedOut
from telegram.request import BaseRequest, RequestData

from bridges.http import CONNECT_SECONDS, CallFailed, Reply, Request, exchange
from bridges.http import TimedOut as NoAnswer
from bridges.message import Clock

UNREAD: Final = "unread"
"""Where an update has what it came with."""

_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class Wire(BaseRequest):
    """At most ``connections`` calls at a time, each within ``seconds`` unless it says otherwise.

    The SDK's own reads bodies of any length and tells the log what is in an answer that it cannot read.
    """

    def __init__(self, connections: int, seconds: float, clock: Clock) -> None:
        self._seconds = seconds
        self._clock = clock
        self._http = aiohttp.ClientSession(
            trust_env=True,  # whoever needs a proxy to reach the platform names it there
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(limit=connections),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
        )

    @property
    def read_timeout(self) -> float:
        """The seconds a call may take."""
        return self._seconds

    async def initialize(self) -> None:
        """Nothing is left to do."""

    async def shutdown(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: object = None,
        write_timeout: object = None,
        connect_timeout: object = None,
        pool_timeout: object = None,
    ) -> tuple[int, bytes]:
        """Make a call; see :meth:`telegram.request.BaseRequest.do_request`."""
        data = request_data.url_encoded_parameters() if request_data else ""
        seconds = read_timeout if isinstance(read_timeout, float) else self._seconds
        request: Request = {"method": method, "url": url, "headers": _FORM, "data": data.encode()}
        try:
            reply = await exchange(self._http, self._clock, "call", request, seconds=seconds)
        except NoAnswer as error:
            raise TimedOut from error
        except CallFailed as error:
            raise NetworkError(str(error)) from error
        return reply.status, reply.body

    async def file(self, url: str, seconds: float, limit: int) -> Reply:
        """Fetch a file. Raises CallFailed."""
        return await exchange(
            self._http, self._clock, "file", {"method": "GET", "url": url}, seconds=seconds, limit=limit
        )

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        """Return an answer of the Bot API; see :meth:`telegram.request.BaseRequest.parse_json_payload`."""
        try:
            answer = json.loads(payload)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not answer.keys() & {"result", "description"}:
            raise NetworkError("no answer of the Bot API")
        return answer


class Polls(Wire):
    """Hands on each update unread: the SDK reads all of them or none, and logs what it cannot read."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        """Return an answer with nothing in its updates that the SDK could stumble over."""
        answer = Wire.parse_json_payload(payload)
        if "result" in answer:
            answer["result"] = _wrapped(answer["result"])
        return answer


def _wrapped(updates: object) -> list[dict[str, object]]:
    """Wrap what has an id, by which it can be confirmed. Raises NetworkError when nothing of what came has one."""
    if not isinstance(updates, list):
        raise NetworkError("no list of updates")
    wrapped = [
        {"update_id": update["update_id"], UNREAD: update}
        for update in updates
        if isinstance(update, dict) and type(update.get("update_id")) is int
    ]
    if updates and not wrapped:
        raise NetworkError("updates without ids")
    return wrapped
