"""A simulated WeCom smart bot platform on real sockets."""

from __future__ import annotations

from tests.fakes.wecom.faults import Fault
from tests.fakes.wecom.server import BOT_ID, SECRET, FakeWeCom, Obj, Said

__all__ = ["BOT_ID", "SECRET", "FakeWeCom", "Fault", "Obj", "Said"]
