"""What our own bridge adds around a person's words in a prompt, and how it is taken off again (spec HISTORY 4).

A prompt with something added begins with a preamble for the model::

    [chat-bridge context]
    Added by the chat bridge; the words of the person follow the closing line.
    Messages sent together (lines of each): 2, 1
    Quoted message from Alice:
    > what Alice wrote
    Attached files:
    - .harness-im/inbound/01-plan.pdf
    [/chat-bridge context]

The person's words come after it, unchanged; each of several messages under a line ``[message 1 of 2]``. Every line of
the preamble is one of a fixed form, so that nothing quoted can close it early, and the words are found by counting
lines, so that nothing in them can be taken for a mark. Words that would themselves read as a preamble get an empty one.
The marks are part of stored logs: they never change with the language, and old ones must stay removable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness_client.events import Block, Text

_OPEN: Final = "[chat-bridge context]"
_CLOSE: Final = "[/chat-bridge context]"
_NOTE: Final = "Added by the chat bridge; the words of the person follow the closing line."
_COUNTS: Final = "Messages sent together (lines of each): "
_QUOTE: Final = "Quoted message from "
_FILES: Final = "Attached files:"

_PREAMBLE: Final = re.compile(
    rf"{re.escape(_OPEN)}\n{re.escape(_NOTE)}\n"
    rf"(?:{re.escape(_COUNTS)}(?P<counts>[1-9][0-9]{{0,6}}(?:, [1-9][0-9]{{0,6}}){{0,99}})\n)?"
    rf"(?:{re.escape(_QUOTE)}[^\n]*:\n(?:> [^\n]*\n)*+)?"
    rf"(?:{re.escape(_FILES)}\n(?:- [^\n]*\n)*+)?"
    rf"{re.escape(_CLOSE)}(?:\n|\Z)"
)
"""No line can be read in two ways, so the repeats never give back: over millions of lines that would cost gigabytes."""
_LINE_BREAKS: Final = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
MAX_MESSAGES: Final = 100
"""Messages of one prompt."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A message that the person quoted."""

    author: str
    text: str


def wrap(messages: Sequence[str], *, quote: Quote | None = None, files: Sequence[str] = ()) -> str:
    """Return the text of a prompt: the words of one or more messages of a person, and what goes with them.

    Nothing is added to a single message alone, unless it could be taken for what this function makes.
    ``unwrap(wrap(messages, …))`` gives the messages joined by LF, whatever they are. Raises ValueError for no message
    or more than 100.
    """
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise ValueError(f"a prompt has 1 to {MAX_MESSAGES} messages")
    if len(messages) == 1 and quote is None and not files and unwrap(messages[0]) is None:
        return messages[0]
    lines = [_OPEN, _NOTE]
    if len(messages) > 1:
        lines.append(_COUNTS + ", ".join(str(text.count("\n") + 1) for text in messages))
    if quote is not None:
        lines.append(f"{_QUOTE}{_one_line(quote.author)}:")
        lines += (f"> {line}" for line in _LINE_BREAKS.split(quote.text))
    if files:
        lines.append(_FILES)
        lines += (f"- {_one_line(file)}" for file in files)
    lines.append(_CLOSE)
    for number, text in enumerate(messages, 1):
        lines += [_label(number, len(messages)), text] if len(messages) > 1 else [text]
    return "\n".join(lines)


def unwrap(text: str) -> str | None:
    """Return the person's words in a text that :func:`wrap` made; None for any other text."""
    preamble = _PREAMBLE.match(text)
    if preamble is None:
        return None
    words = text[preamble.end() :]
    counts = preamble["counts"]
    return words if counts is None else _unlabelled(words, [int(count) for count in counts.split(", ")])


def without_marks(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return a message's content as the person wrote it. Only its first text can begin with a preamble."""
    for index, block in enumerate(blocks):
        if isinstance(block, Text):
            words = unwrap(block.text)
            return blocks if words is None else (*blocks[:index], Text(words), *blocks[index + 1 :])
    return blocks


def _unlabelled(words: str, counts: Sequence[int]) -> str | None:
    if words.count("\n") + 1 != sum(counts) + len(counts):
        return None
    lines = words.split("\n")
    kept: list[str] = []
    at = 0
    for number, count in enumerate(counts, 1):
        if lines[at] != _label(number, len(counts)):
            return None
        kept += lines[at + 1 : at + 1 + count]
        at += 1 + count
    return "\n".join(kept)


def _label(number: int, total: int) -> str:
    return f"[message {number} of {total}]"


def _one_line(text: str) -> str:
    return _LINE_BREAKS.sub(" ", text)
