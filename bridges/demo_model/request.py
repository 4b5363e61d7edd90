"""What a host asks of the model, in either dialect, read no further than the demo needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from bridges.demo_model.script import Step, last_script

_TITLE = re.compile(r"\btitle\b|标题", re.IGNORECASE)
_COMPACT_HEADER = "x-deepseek-harness-compact"


class Purpose(StrEnum):
    """Why the host asks."""

    CHAT = "chat"
    TITLE = "title"
    COMPACTION = "compaction"


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None


class _Message(msgspec.Struct, frozen=True):
    role: str
    content: str | tuple[_Part, ...] | None = None

    def texts(self) -> list[str]:
        if isinstance(self.content, str):
            return [self.content]
        return [part.text for part in self.content or () if part.type == "text" and part.text]


class ModelRequest(msgspec.Struct, frozen=True):
    """The body of a request; the host's own additions (its log, its plugins) are skipped."""

    messages: tuple[_Message, ...]
    model: str = "demo"
    system: str | tuple[_Part, ...] | None = None
    tools: tuple[msgspec.Raw, ...] = ()

    def purpose(self, headers: Mapping[str, str]) -> Purpose:
        """Tell a chat from the host's own calls: compaction by its header, a title by its instructions."""
        if _COMPACT_HEADER in headers:
            return Purpose.COMPACTION
        instructions = _Message("system", self.system).texts()
        instructions += [text for message in self.messages if message.role == "system" for text in message.texts()]
        return Purpose.TITLE if not self.tools and _TITLE.search("\n".join(instructions)) else Purpose.CHAT

    def question(self) -> str:
        """Return what was asked last: the first text after the last answer, for the host adds its own behind it."""
        asked: list[str] = []
        for message in reversed(self.messages):
            if message.role == "assistant":
                break
            if message.role == "user":
                asked = message.texts() + asked
        return asked[0] if asked else ""

    def due_step(self) -> Step | None:
        """Return the step of the newest script that is due; None without one or when it is over. Raises BadScript."""
        answers = 0
        for message in reversed(self.messages):
            if message.role == "assistant":
                answers += 1
            elif message.role == "user" and (steps := last_script("\n".join(message.texts()))) is not None:
                return steps[answers] if answers < len(steps) else None
        return None

    def size(self) -> int:
        """Return a guess at the tokens of the conversation."""
        return sum(len(text) for message in self.messages for text in message.texts()) // 4 + 1
