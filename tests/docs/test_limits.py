"""Limits that pages tell are those of the program; English ones are read, for the numbers of both languages agree."""

from __future__ import annotations

import pytest

from bridges.cli.running import END_SECONDS
from bridges.conversation import CHAT_LIMIT
from bridges.monitoring import PROBE_SECONDS
from bridges.prompt import IMAGE_BYTES, MESSAGE_BYTES, MOST
from bridges.serve import DRAIN_SECONDS
from bridges.state.sqlite import CODES_WAITING
from bridges.text.whatsapp_webhook import LARGEST_POST
from commands.batch import LIMIT
from harness_client.window import SECONDS
from tests.docs.pages import read

MIB = 1024 * 1024
FILES = f"{IMAGE_BYTES // MIB} MB each, {MESSAGE_BYTES // MIB} MB and {MOST} a message"
TOLD = {
    "README.md": (f"takes at most {SECONDS:g} seconds", f"Collect up to {LIMIT} messages"),
    "docs/en/access.md": (f"At most {CODES_WAITING} codes wait",),
    "docs/en/commands.md": (f"wait their turn, {CHAT_LIMIT} in a chat", FILES),
    "docs/en/operating.md": (f"what is under way gets {DRAIN_SECONDS:g} seconds", f"asked every {PROBE_SECONDS:g} s"),
    "SECURITY.md": (f"{LARGEST_POST // MIB} MB at most", f"of which {CODES_WAITING} may wait"),
}  # fmt: skip


@pytest.mark.parametrize("page", TOLD)
def test_what_is_told_is_so(page: str) -> None:
    text = " ".join(read(page).split())
    assert [phrase for phrase in TOLD[page] if phrase not in text] == []


def test_the_end_comes_in_the_ten_seconds_that_are_promised() -> None:
    assert DRAIN_SECONDS < END_SECONDS < 10
