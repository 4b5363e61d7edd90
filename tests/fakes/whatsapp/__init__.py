"""A simulated WhatsApp Cloud API on real sockets: the Graph API, and the posts to a webhook."""

from __future__ import annotations

from tests.fakes.whatsapp.faults import Fault
from tests.fakes.whatsapp.posts import DIGITS, NUMBER, Obj, change, message, post, status, value
from tests.fakes.whatsapp.server import ACCESS_TOKEN, APP_SECRET, VERIFY_TOKEN, FakeWhatsApp, Sent

__all__ = [
    "ACCESS_TOKEN",
    "APP_SECRET",
    "DIGITS",
    "NUMBER",
    "VERIFY_TOKEN",
    "FakeWhatsApp",
    "Fault",
    "Obj",
    "Sent",
    "change",
    "message",
    "post",
    "status",
    "value",
]
