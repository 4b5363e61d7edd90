"""What a host asks a person in the middle of a turn: questions and approvals, from all sessions to the right chats.

:mod:`.listening` hears the host and finds the chat, :mod:`.dialogue` talks with whoever started the turn, and what is
asked is a :class:`.matter.Matter`: :mod:`.question` or :mod:`.approval`.
"""

from bridges.interactions.dialogue import Answering, Dialogue, Opening
from bridges.interactions.listening import Interactions

__all__ = ["Answering", "Dialogue", "Interactions", "Opening"]
