"""Cards that grow: numbered changes, an end, and all that is wrong with a change."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

Obj = dict[str, object]

LARGEST = 30_000
"""Bytes of a card."""


@dataclass(slots=True)
class FakeCard:
    """One card."""

    id: str
    card: Obj
    growing: bool = False
    number: int = 0
    texts: list[str] = field(default_factory=list)
    """All states anybody saw, the newest last."""
    changes: dict[str, int] = field(default_factory=dict)
    """The answers given, by the id of the change."""

    @classmethod
    def of(cls, id_: str, body: Obj) -> FakeCard | int:
        """Return the card a call describes, or the code of its refusal."""
        made = cls(id_, {})
        code = made.replace(body)
        return code or made

    def change(self, what: str, body: Obj) -> int:
        """Make a change once; return its code."""
        uuid, number = str(body["uuid"]), int(str(body["sequence"]))
        if uuid in self.changes:
            return self.changes[uuid]
        if number <= self.number:
            return 300317
        self.number = number
        code = {"content": self._fill, "settings": self._settle, "card": self._exchange}[what](body)
        self.changes[uuid] = code
        return code

    def replace(self, entity: Obj) -> int:
        data = str(entity["data"])
        if entity["type"] != "card_json" or len(data.encode()) > LARGEST:
            return 200860
        self.card = json.loads(data)
        self.growing = self.card["config"]["streaming_mode"]  # type: ignore[index]  # a fault of the client's shows here
        (element,) = self.card["body"]["elements"]  # type: ignore[index]  # as above
        self.texts.append(element["content"])
        return 0

    def _exchange(self, body: Obj) -> int:
        entity = body["card"]
        assert isinstance(entity, dict)
        return self.replace(entity)

    def _fill(self, body: Obj) -> int:
        text = str(body["content"])
        if not self.growing:
            return 300309
        if len(text.encode()) > LARGEST:
            return 200860
        self.texts.append(text)
        return 0

    def _settle(self, body: Obj) -> int:
        self.growing = json.loads(str(body["settings"]))["config"]["streaming_mode"]
        return 0
