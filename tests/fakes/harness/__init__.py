"""A faithful fake of the DeepSeek Harness on a real loopback socket, both protocol generations.

Read :class:`FakeHarness` first; :mod:`tests.fakes.harness.model` says what the fake model can be told to do.
"""

from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.faults import How
from tests.fakes.harness.host import Call, FakeHarness
from tests.fakes.harness.log import Cut
from tests.fakes.harness.model import Failure, Step, Tool, ask, question, say
from tests.fakes.harness.session import Session

__all__ = ["Call", "Cut", "Failure", "FakeHarness", "How", "Obj", "Session", "Step", "Tool", "ask", "question", "say"]
