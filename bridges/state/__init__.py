"""What outlives the process. :mod:`.model` says what can be kept, :mod:`.sqlite` keeps it in one file.

Start with :func:`open_state`.
"""

from bridges.state.model import (
    BotKey,
    Bots,
    Chats,
    Claims,
    Health,
    Healths,
    Link,
    Noted,
    Pairing,
    Pairings,
    Phase,
    Settings,
    State,
    StateError,
    Trouble,
    Turn,
    Turns,
)
from bridges.state.sqlite import open_state

__all__ = [
    "BotKey",
    "Bots",
    "Chats",
    "Claims",
    "Health",
    "Healths",
    "Link",
    "Noted",
    "Pairing",
    "Pairings",
    "Phase",
    "Settings",
    "State",
    "StateError",
    "Trouble",
    "Turn",
    "Turns",
    "open_state",
]
