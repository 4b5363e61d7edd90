"""A faithful fake of the DeepSeek Harness on a real loopback socket, both protocol generations.

::

    async with FakeHarness(Generation.MODERN, flavour="0.2") as host:
        session = host.session("session-abc")          # or let the client create it
        session.dialogue(4)                            # a past: prompts u1…u4, answers a1…a4
        gate = asyncio.Event()
        host.model.script(say("Hel", gate, "lo"))      # the next turn streams "Hel" and waits for the gate
        host.fail("session/page", status=500, times=1)
        ...                                            # drive the client at host.url
        await host.until(lambda: session.partial == "Hel")
        gate.set()
        await host.settle()
        assert host.writes == []                       # calls that changed the host, or could have

Read :class:`FakeHarness` first, then :mod:`~tests.fakes.harness.model` (what the model can be told to say),
:class:`How` (what can go wrong) and :class:`Session` (how to write a past). ``replay`` serves recorded logs.
"""

from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.faults import How
from tests.fakes.harness.host import Call, FakeHarness
from tests.fakes.harness.log import Cut
from tests.fakes.harness.model import Failure, Step, Tool, ask, question, say
from tests.fakes.harness.session import Session

__all__ = ["Call", "Cut", "Failure", "FakeHarness", "How", "Obj", "Session", "Step", "Tool", "ask", "question", "say"]
