"""A simulated QQ bot platform on real sockets."""

from __future__ import annotations

from tests.fakes.qq.faults import Fault
from tests.fakes.qq.gateway import BOT_ID, Gateway
from tests.fakes.qq.server import APP_ID, SECRET, FakeQQ, Obj, Sent

__all__ = ["APP_ID", "BOT_ID", "SECRET", "FakeQQ", "Fault", "Gateway", "Obj", "Sent"]
