"""Every channel, its platform simulated, against the real host: a smoke test of the acceptance table."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.state.sqlite import open_state
from commands.model import ChatKind
from harness_client.client import HarnessClient
from i18n import Key, Language
from tests.contract.desk import Seat
from tests.contract.platform import Row, Trait
from tests.contract.test_table import ROWS
from tests.live.talk import BOUND

pytestmark = pytest.mark.asyncio(loop_scope="session")


class LiveSeat(Seat):
    """A seat before a host that takes its time."""

    patience = BOUND


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
async def test_a_prompt_its_history_and_a_new_session(
    row: Row, client: HarnessClient, workspace: Path, tmp_path: Path
) -> None:
    async with row.platform() as platform, open_state(tmp_path / "state.db") as state:
        seat = LiveSeat(platform, state, Language.EN)
        async with seat.served(client, str(workspace)):
            assert seat.words(Key.HISTORY_SUMMARY) in "".join(await seat.ask("/help"))
            assert await seat.ask("/history") == [seat.words(Key.HISTORY_UNBOUND)]
            (answer,) = await seat.ask("hello from a channel")
            history = "".join(await seat.ask("/history 5"))
            assert "hello from a channel" in history
            assert answer in history
            if Trait.GROUPS not in row.LACKS:
                assert await seat.ask("/history", chat=ChatKind.GROUP) == [seat.words(Key.HISTORY_PRIVATE_ONLY)]
            await seat.ask("/new")
            assert await seat.ask("/history") == [seat.words(Key.HISTORY_UNBOUND)]
