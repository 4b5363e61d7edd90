"""WhatsApp as a linked device of a person's or a bot's own account; off unless the configuration asks for it.

WhatsApp's servers are told that a message arrived by the client library itself. What we add: the Node program writes
each message down before it hands it over, and tells it again until ``inbox.accept`` returned.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from pathlib import Path
from typing import Final

import structlog

from bridges.message import (
    Acceptance,
    ChannelStopped,
    Clock,
    Inbox,
    Limits,
    Noticed,
    NotSent,
    ReplyTarget,
    RetryAfter,
    SendOutcome,
    Sent,
    SentId,
    Sign,
    Stop,
)
from bridges.text.whatsapp_linked_parse import parse
from bridges.text.whatsapp_sidecar import (
    Broken,
    Closed,
    Device,
    Event,
    Failed,
    Heard,
    Lost,
    Opened,
    Qr,
    Sidecar,
    started,
)

OPEN_SECONDS: Final = 60.0
"""How long a link may take to open."""

DOWN_SECONDS: Final = 5.0
"""When to try again what was not sent because there is no link."""

IDS_REMEMBERED: Final = 1_000

SETUP: Final = "run harness-im whatsapp setup"

_STOPS: Final = {
    401: (Stop.NEEDS_LOGIN, f"WhatsApp unlinked this device; {SETUP}"),
    403: (Stop.MISCONFIGURED, "WhatsApp has banned or restricted this account; look at it on its phone"),
    411: (Stop.NEEDS_LOGIN, f"WhatsApp does not accept the login of this device any more; {SETUP}"),
    440: (Stop.REPLACED, "another program uses the login of this device; end one of them"),
}
_BLOCKED: Final = frozenset({401, 403, 404, 406})
"""What WhatsApp answers where we may not write, or nobody is."""


class LinkedChannel:
    """See :class:`bridges.message.Channel`."""

    limits = Limits(text=4_096, gap=1.0, joins=True)
    typing_seconds = 10.0

    def __init__(self, name: str, *, data: Path, url: str | None, clock: Clock, path: str | None = None) -> None:
        """Know the program's data directory, another server if any, and where to look for Node if not as usual."""
        self._name = name
        self._data = data
        self._url = url
        self._clock = clock
        self._path = path
        self._link: Sidecar | None = None
        self._ids: tuple[str, ...] = ()
        self._reserved: OrderedDict[str, None] = OrderedDict()
        self._log = structlog.get_logger(__name__).bind(bot=name)

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`; a second link would push out the first."""
        device = Device.of(self._data, self._name, self._url, self._path)
        if device is None:
            return (Noticed(Sign.NO_PROGRAM, "Node 20"),)
        if not device.installed or not device.has_login:
            return (Noticed(Sign.NO_LOGIN, "harness-im whatsapp setup"),)
        return (Noticed(Sign.LOGIN_STORED, self._name),)

    async def run(self, inbox: Inbox) -> None:
        """Keep one link until it is lost, which raises; see :meth:`bridges.message.Channel.run`."""
        device = Device.of(self._data, self._name, self._url, self._path)
        if device is None:
            raise ChannelStopped(Stop.MISCONFIGURED, "a linked device needs Node 20 or newer, and there is none")
        if not device.installed:
            raise ChannelStopped(Stop.NEEDS_LOGIN, f"the client of linked devices is not installed; {SETUP}")
        async with started(device, self._clock) as sidecar:
            try:
                async with self._clock.timeout(OPEN_SECONDS):
                    while self._link is None:
                        await self._handle(await sidecar.event(), sidecar, inbox)
                while True:
                    await self._handle(await sidecar.event(), sidecar, inbox)
            finally:
                self._link = None
                sidecar.lose()

    async def _handle(self, event: Event, sidecar: Sidecar, inbox: Inbox) -> None:
        """Do what an event asks for. Raises ChannelStopped, ConnectionError, OSError of the inbox."""
        match event:
            case Opened(ids):
                self._ids = ids
                self._link = sidecar
                inbox.connected()
            case Heard():
                await self._take(event, sidecar, inbox)
            case Qr():
                raise ChannelStopped(Stop.NEEDS_LOGIN, f"no WhatsApp account is linked; {SETUP}")
            case Broken():
                raise ChannelStopped(Stop.MISCONFIGURED, f"the client of linked devices does not start; {SETUP}")
            case Closed(code) if code in _STOPS:
                raise ChannelStopped(*_STOPS[code])
            case Closed(code):
                raise ConnectionError(f"link closed with code {code}")

    async def _take(self, heard: Heard, sidecar: Sidecar, inbox: Inbox) -> None:
        message = parse(heard.message, self._name, self._ids, self._reserved)
        taken = None if message is None else await inbox.accept(message)
        sidecar.taken(heard.file, read=taken is Acceptance.ACCEPTED)

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`; nothing is open between two runs."""
        self._link = None

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`; the id is ours before the message is, so its echo is known."""
        if self._link is None:
            return RetryAfter(DOWN_SECONDS)
        name = f"3EB0{secrets.token_hex(9).upper()}"
        self._reserved[name] = None
        while len(self._reserved) > IDS_REMEMBERED:
            self._reserved.popitem(last=False)
        try:
            await self._link.send(target.route, text, name)
        except Failed as error:
            self._log.warning("not sent", code=error.code)
            return NotSent.BLOCKED if error.code in _BLOCKED else NotSent.UNKNOWN
        except Lost as error:
            self._log.warning("perhaps not sent", error=str(error))
            return NotSent.UNKNOWN
        return Sent(SentId(name))

    async def typing(self, target: ReplyTarget) -> None:
        """See :meth:`bridges.message.ShowsTyping.typing`."""
        if self._link is not None:
            self._link.typing(target.route)
