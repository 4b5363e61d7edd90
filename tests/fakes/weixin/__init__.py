"""A simulated iLink platform on a real socket."""

from __future__ import annotations

from tests.fakes.weixin.faults import Fault
from tests.fakes.weixin.server import ACCOUNT, TOKEN, FakeWeixin, Obj, Sent

__all__ = ["ACCOUNT", "TOKEN", "FakeWeixin", "Fault", "Obj", "Sent"]
