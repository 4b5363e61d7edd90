"""A faithful fake of Slack on real loopback sockets: Web API, Socket Mode, response addresses, files.

Read :class:`FakeSlack` first; :mod:`tests.fakes.slack.payloads` makes what people do.
"""

from tests.fakes.slack.faults import Fault, How
from tests.fakes.slack.payloads import BOT_ID, BOT_USER, CHANNEL, TEAM, TELLER, Obj, direct
from tests.fakes.slack.server import FakeSlack, Said

__all__ = [
    "BOT_ID",
    "BOT_USER",
    "CHANNEL",
    "TEAM",
    "TELLER",
    "FakeSlack",
    "Fault",
    "How",
    "Obj",
    "Said",
    "direct",
]
