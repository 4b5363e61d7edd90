"""A faithful fake of the Telegram Bot API on a real loopback socket.

Read :class:`FakeTelegram` first; :mod:`tests.fakes.telegram.updates` makes what people send.
"""

from tests.fakes.telegram.faults import Fault, How
from tests.fakes.telegram.server import FakeTelegram, Said
from tests.fakes.telegram.updates import GROUP_ID, ME, TELLER, Obj, person

__all__ = ["GROUP_ID", "ME", "TELLER", "FakeTelegram", "Fault", "How", "Obj", "Said", "person"]
