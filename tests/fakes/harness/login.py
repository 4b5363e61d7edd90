"""The login of modern hosts: a token opens the page once, a cookie bound to the authority does the rest (facts 4.1)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from email.utils import formatdate

from aiohttp import web

from tests.fakes.harness.dialect import Mint, Obj

ASK = "dsh web authentication required; reopen the URL printed by dsh web.\n"
MONTH = 2_592_000


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Login:
    """Makes and checks cookies. The secret outlives restarts, the token does not."""

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._secret = b"fake-signing-secret"
        self.token = ""
        self.new_token()

    def new_token(self) -> None:
        """Print another token, as every start does."""
        self.token = _b64(hashlib.sha256(self._mint.uuid().encode()).digest())

    def expire(self) -> None:
        """Make every cookie given out so far worthless."""
        self._secret = self._mint.uuid().encode()

    def valid(self, request: web.Request) -> bool:
        """Whether the request bears the cookie of the very authority it names."""
        authority = request.headers.get("Host", "")
        return hmac.compare_digest(request.cookies.get(_name(authority), ""), self._value(authority))

    def index(self, request: web.Request) -> web.StreamResponse:
        """Answer ``GET /``: a cookie for the token, the page for the cookie, 401 for neither."""
        headers = {"Cache-Control": "no-store"}
        if "token" in request.query:
            if not hmac.compare_digest(request.query["token"].encode(), self.token.encode()):
                return web.Response(status=401, text=ASK, headers=headers)
            authority = request.headers.get("Host", "")
            response = web.Response(status=303, headers={**headers, "Location": "./", "Referrer-Policy": "no-referrer"})
            response.set_cookie(
                _name(authority),
                self._value(authority),
                max_age=MONTH,
                path="/",
                httponly=True,
                samesite="Strict",
                expires=formatdate(time.time() + MONTH, usegmt=True),
            )
            return response
        if not self.valid(request):
            return web.Response(status=401, text=ASK, headers=headers)
        return web.Response(text="<!doctype html>\n<html></html>", content_type="text/html", headers=headers)

    def _value(self, authority: str) -> str:
        payload: Obj = {"version": 1, "authority": authority}
        body = f"v1.{_b64(json.dumps(payload).encode())}"
        return f"{body}.{_b64(hmac.digest(self._secret, body.encode(), 'sha256'))}"


def _name(authority: str) -> str:
    return f"dsh-auth-{_b64(hashlib.sha256(authority.encode()).digest())}"
