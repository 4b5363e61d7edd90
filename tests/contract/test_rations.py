"""Channels whose platform counts the replies to a message: a long answer says that it goes on, and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from i18n import Key, Language, Words
from tests.contract.desk import desk_at
from tests.contract.platform import Row
from tests.contract.rows import qq, weixin
from tests.fakes.harness import FakeHarness, say

LINES = 4_000


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize(("row", "replies", "later"), [(weixin, 9, 6), (qq, 4, 3)], ids=["weixin", "qq"])
async def test_a_long_answer_says_that_it_goes_on(
    row: Row, replies: int, later: int, language: Language, tmp_path: Path
) -> None:
    text = "".join(f"line {number}\n" for number in range(LINES))
    async with (
        row.platform() as platform,
        FakeHarness() as host,
        desk_at(host, platform, tmp_path, language) as desk,
    ):
        host.model.script(say(text))
        heard = await desk.ask("hi")
        assert len(heard) == replies
        assert heard.pop() == Words(language)(Key.CHAT_REST_WAITS)
        more = await desk.ask("/version")
        assert len(more) >= later
        told = "".join(heard + more[: later - 1]).split()
        assert text.split()[: len(told)] == told
