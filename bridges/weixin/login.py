"""Logging a Weixin bot in: a QR code on our side, a phone on the other, and every turn that this can take."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol

from bridges.http import CallFailed
from bridges.trusted import UntrustedHost
from bridges.weixin.account import KEPT, Account
from bridges.weixin.hosts import Hosts
from bridges.weixin.wire import QrCode, QrStatus, Refused, Wire
from harness_client.clock import Clock

BOT_TYPE: Final = "3"
REFRESHES: Final = 3
"""How often a code that expired, or was blocked, is replaced."""

LOGIN_SECONDS: Final = 480.0
"""All of it together."""

POLL_SECONDS: Final = 35.0
PAUSE_SECONDS: Final = 1.0


class Progress(StrEnum):
    """What happens on the way."""

    SCANNED = "scanned"
    EXPIRED = "expired"
    BLOCKED = "blocked"
    """Too many wrong numbers for this code."""


class Failure(StrEnum):
    """Why a login came to nothing."""

    NO_CODE = "no-code"
    """The platform gave no QR code."""
    EXPIRED = "expired"
    BLOCKED = "blocked"
    TIMED_OUT = "timed-out"
    UNTRUSTED = "untrusted"
    """It pointed to a host that is not its own."""
    INCOMPLETE = "incomplete"
    """It said yes without saying who the bot is."""


class LoginFailed(Exception):
    """The login came to nothing; nothing was stored."""

    def __init__(self, why: Failure) -> None:
        super().__init__(why.value)
        self.why = why


class Person(Protocol):
    """Whoever holds the phone."""

    def show(self, address: str) -> None:
        """Show ``address`` as a QR code."""

    def tell(self, progress: Progress) -> None:
        """Say what happened."""

    def number(self, *, again: bool) -> str:
        """Ask for the number on the phone; ``again`` when the one before was wrong. May block: nothing else runs."""


class Login:
    """One login. ``known`` are the accounts of this machine, newest last: the platform says if it is one of them."""

    def __init__(self, wire: Wire, hosts: Hosts, person: Person, clock: Clock, known: Sequence[Account] = ()) -> None:
        self._wire = wire
        self._hosts = hosts
        self._person = person
        self._clock = clock
        self._known = known

    async def run(self) -> Account | None:
        """Return the account, or None when the bot is bound to this machine already. Raises LoginFailed."""
        try:
            async with self._clock.timeout(LOGIN_SECONDS):
                return await self._run()
        except TimeoutError:
            raise LoginFailed(Failure.TIMED_OUT) from None
        except UntrustedHost:
            raise LoginFailed(Failure.UNTRUSTED) from None

    async def _run(self) -> Account | None:
        ended = Progress.EXPIRED
        for _ in range(1 + REFRESHES):
            code = await self._code()
            self._person.show(code.qrcode_img_content)
            status = await self._follow(code.qrcode)
            if status.status == "binded_redirect":
                return None
            if status.status == "confirmed":
                return self._account(status)
            ended = Progress.BLOCKED if status.status == "verify_code_blocked" else Progress.EXPIRED
            self._person.tell(ended)
        raise LoginFailed(Failure(ended.value))

    async def _code(self) -> QrCode:
        tokens = [account.token for account in reversed(self._known)][:KEPT]
        try:
            return await self._wire.post(
                "get_bot_qrcode", {"local_token_list": tokens}, QrCode, params={"bot_type": BOT_TYPE}
            )
        except CallFailed as error:
            raise LoginFailed(Failure.NO_CODE) from error

    async def _follow(self, qrcode: str) -> QrStatus:
        """Return the state that ends this code; a poll that fails is asked again."""
        base, number, scanned = self._hosts.base, "", False
        while True:
            status = await self._status(base, qrcode, number)
            match status.status:
                case "confirmed" | "binded_redirect" | "expired" | "verify_code_blocked":
                    return status
                case "need_verifycode":
                    number = self._person.number(again=bool(number)).strip()
                    continue
                case "scaned":
                    number = ""
                    if not scanned:
                        self._person.tell(Progress.SCANNED)
                        scanned = True
                case "scaned_but_redirect" if status.redirect_host:
                    base = self._hosts.redirected(status.redirect_host)
            await self._clock.sleep(PAUSE_SECONDS)

    async def _status(self, base: str, qrcode: str, number: str) -> QrStatus:
        params = {"qrcode": qrcode} | ({"verify_code": number} if number else {})
        try:
            return await self._wire.get("get_qrcode_status", params, QrStatus, base=base, seconds=POLL_SECONDS)
        except Refused as error:
            if error.code in {401, 403, 404}:
                raise LoginFailed(Failure.NO_CODE) from error
            return QrStatus(status="wait")
        except CallFailed:
            return QrStatus(status="wait")

    def _account(self, status: QrStatus) -> Account:
        if not status.bot_token or not status.ilink_bot_id:
            raise LoginFailed(Failure.INCOMPLETE)
        base = self._hosts.trusted(status.baseurl) if status.baseurl else None
        return Account(status.ilink_bot_id, status.bot_token, base, status.ilink_user_id)
