"""What people see of the bot: messages, and AI cards that are made, put into a chat, filled, ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Obj: TypeAlias = dict[str, "object"]

TEMPLATE = "template-fake.schema"


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the bot: by ``webhook``, or of its own accord, ``private`` or ``group``."""

    way: str
    chat: str
    text: str


@dataclass(slots=True)
class Card:
    """One card. ``chat`` is empty until it is delivered."""

    name: str
    chat: str = ""
    states: list[str] = field(default_factory=lambda: [""])
    ended: bool = False
    failed: bool = False

    @property
    def text(self) -> str:
        return self.states[-1]


class Cards:
    """All cards; most calls return a status and a code."""

    def __init__(self, shown: list[Said | Card], violations: list[str]) -> None:
        """Append to ``shown`` what is put into a chat, in order with all else."""
        self._shown = shown
        self.all: dict[str, Card] = {}
        self._violations = violations
        self._guids: set[str] = set()
        self.full = False
        """No chat takes a card."""

    def create(self, body: Obj) -> tuple[int, str]:
        if body["cardTemplateId"] != TEMPLATE:
            return 400, "param.templateNotExist"
        self.all[str(body["outTrackId"])] = Card(str(body["outTrackId"]))
        return 200, ""

    def deliver(self, body: Obj) -> Obj:
        """Put a card into a chat; whether that takes it is only said inside of an answer that looks fine."""
        card = self.all[str(body["outTrackId"])]
        space, _, chat = str(body["openSpaceId"]).removeprefix("dtv1.card//").partition(".")
        model = "imRobotOpenDeliverModel" if space == "IM_ROBOT" else "imGroupOpenDeliverModel"
        if model not in body:
            self._violations.append(f"a card for {space} without its model")
        taken = not self.full
        if taken:
            card.chat = f"cid-{chat}" if space == "IM_ROBOT" else chat
            self._shown.append(card)
        said = {"spaceId": chat, "spaceType": space, "success": taken, "errorMsg": "" if taken else "no"}
        return {"success": True, "result": [said]}

    def fill(self, body: Obj) -> tuple[int, str]:
        card = self.all.get(str(body["outTrackId"]))
        if card is None:
            return 404, "param.cardNotExist"
        if str(body["guid"]) in self._guids:
            return 200, ""  # the same change once more
        if card.ended:
            self._violations.append("a card goes on after its end")
            return 400, "param.finalized"
        self._guids.add(str(body["guid"]))
        if body["key"] != "content":
            self._violations.append("a variable the template does not have")
        content = str(body["content"])
        card.states.append(content if body["isFull"] else card.text + content)
        card.ended = bool(body["isFinalize"])
        card.failed = bool(body["isError"])
        return 200, ""
