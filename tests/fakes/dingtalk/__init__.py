"""A simulated DingTalk, its stream gateway and its API, on real sockets."""

from __future__ import annotations

from tests.fakes.dingtalk.cards import Card, Said
from tests.fakes.dingtalk.faults import Fault
from tests.fakes.dingtalk.server import CLIENT_ID, SECRET, FakeDingTalk, Obj

__all__ = ["CLIENT_ID", "SECRET", "Card", "FakeDingTalk", "Fault", "Obj", "Said"]
