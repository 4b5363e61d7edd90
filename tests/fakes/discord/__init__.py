"""A faithful fake of Discord's REST API and gateway on a real loopback socket.

Read :class:`FakeDiscord` first; :mod:`tests.fakes.discord.payloads` makes what people write and pick.
"""

from tests.fakes.discord.faults import Fault, How
from tests.fakes.discord.gateway import FakeGateway
from tests.fakes.discord.payloads import APPLICATION, GENERAL, ME, TELLER, TOKEN, VOICE, Obj, Writer, dm
from tests.fakes.discord.server import FakeDiscord, Said

__all__ = [
    "APPLICATION",
    "GENERAL",
    "ME",
    "TELLER",
    "TOKEN",
    "VOICE",
    "FakeDiscord",
    "FakeGateway",
    "Fault",
    "How",
    "Obj",
    "Said",
    "Writer",
    "dm",
]
