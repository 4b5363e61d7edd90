"""A simulated Feishu: the long connection, and the part of the API that bots use. Real sockets on this machine."""

from __future__ import annotations

from tests.fakes.feishu.events import ALICE, BOT, GROUP, mention, message, private
from tests.fakes.feishu.faults import Fault
from tests.fakes.feishu.gateway import Delivery
from tests.fakes.feishu.server import APP_ID, SECRET, FakeFeishu, Obj, Shown

__all__ = [
    "ALICE",
    "APP_ID",
    "BOT",
    "GROUP",
    "SECRET",
    "Delivery",
    "FakeFeishu",
    "Fault",
    "Obj",
    "Shown",
    "mention",
    "message",
    "private",
]
