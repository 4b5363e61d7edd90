"""Reading a ``/history`` reply back, and what must hold for every command's reply."""

from __future__ import annotations

import re

from commands.budget import utf16_length
from commands.model import CommandResult

ENTRY = re.compile(r"^(\d)\. (?:用户|助手|User|Assistant)$")


def bodies(text: str) -> list[str]:
    """The bodies of a reply whose bodies hold no blank line."""
    head, *entries, _ = text.split("\n\n")
    assert head.startswith(("会话历史｜会话 ", "History | Session "))
    assert f" {len(entries)}" in head.rsplit("｜")[-1].rsplit("|")[-1]
    found = []
    for number, entry in enumerate(entries, 1):
        first, _, body = entry.partition("\n")
        match = ENTRY.match(first)
        assert match is not None
        assert match[1] == str(number)
        found.append(body)
    return found


def check_form(result: CommandResult) -> None:
    """One to three segments within every limit, all of well-formed text, none blank."""
    assert 1 <= len(result.segments) <= 3
    assert all(segment.strip() for segment in result.segments)
    assert all(utf16_length(segment) <= 1_800 for segment in result.segments)
    whole = "".join(result.segments)
    assert utf16_length(whole) <= 3_000
    assert whole.encode("utf-8").decode("utf-8") == whole
