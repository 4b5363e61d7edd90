"""Runs the acceptance table on the simulated platforms: the only module of the program that knows the tests' fakes.

The fakes and the table are those of the tests, in the package ``tests`` of this very distribution. Every channel talks
to its platform's fake over real sockets of this machine, and to a fake Harness of either generation.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import bridges
from bridges.cli.smoking.lines import PASSED, Endpoint, Item, Result, Side, Spot, Verdict, Why, failed, not_done
from bridges.cli.smoking.record import Record
from bridges.environment import without_proxy
from bridges.message import Stop
from bridges.race import task_group
from bridges.shown import at, chain
from harness_client.clock import Clock
from harness_client.types import Generation
from i18n import Language
from tests import contract
from tests.contract.desk import NotConnected
from tests.contract.platform import Row
from tests.contract.table import CASES, Case

AT_ONCE: Final = 3
"""Channels that run at the same time."""
CASE_SECONDS: Final = 60.0
"""What one case may take on either generation."""


def is_ours() -> bool:
    """Whether ``tests.contract`` is that of this distribution: ``tests`` is a common name."""
    return Path(bridges.__file__).parents[1] == Path(contract.__file__).parents[2]


def cases(*names: str, language: Language | None = None) -> tuple[Case, ...]:
    """Return the cases of these names, those in one language only where it is given. Raises LookupError."""
    found = tuple(case for case in CASES if case.run.__name__ in names and language in {None, case.language})
    if {case.run.__name__ for case in found} != set(names):
        raise LookupError(names)
    return found


SHOWN_BY: Final[Mapping[Item, Sequence[Case]]] = {
    Item.HISTORY: cases("history_shows_the_newest_three_and_at_most_five"),
    Item.HISTORY_MOST: cases("history_shows_the_newest_three_and_at_most_five"),
    Item.ATTACHMENT: cases("history_with_an_attachment_is_refused"),
    Item.GROUP: cases("history_in_a_group_gives_the_notice_only"),
    Item.STRANGER: cases("a_stranger_hears_nothing_and_reaches_nothing", "where_the_bot_pairs_a_stranger_gets_a_code"),
    Item.BATCH: cases("a_batch_becomes_one_prompt"),
    Item.HELP_EN: cases("help_names_every_command", language=Language.EN),
    Item.HELP_ZH: cases("help_names_every_command", language=Language.ZH),
    Item.RUNNING: cases("history_answers_while_a_task_runs_and_leaves_it_alone"),
    Item.QUESTION: cases("a_question_is_answered_in_the_chat"),
    Item.APPROVAL: cases("an_approval_is_given_by_the_exact_word"),
    Item.DUPLICATE: cases("what_is_delivered_twice_is_answered_once"),
    Item.ECHO: cases("the_bots_own_message_is_none"),
    Item.FIRST_SEGMENT: cases("a_refused_first_segment_ends_the_reply"),
    Item.SECOND_SEGMENT: cases("a_refused_second_segment_ends_the_reply"),
    Item.BIND: cases("binding_a_session_points_to_history"),
}
"""Which cases of the table show which line; all of them have to pass."""


@dataclass(slots=True)
class Acceptance:
    """The acceptance, into ``record``. ``done`` is called after each channel; what it raises ends the run."""

    record: Record
    clock: Clock
    done: Callable[[str], None]
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def run(self, channels: Iterable[str]) -> None:
        """Run all channels, AT_ONCE at a time."""
        without_proxy()
        async with task_group() as tasks:
            for channel in channels:
                tasks.create_task(self._channel(channel))

    async def _channel(self, channel: str) -> None:
        async with self._turns:
            row: Row = importlib.import_module(f"tests.contract.rows.{channel}")
            outcomes: dict[str, Result] = {}
            for item, shown_by in SHOWN_BY.items():
                results = [await self._case(row, case, outcomes) for case in shown_by]
                spot = Spot(channel, None, Side.SIMULATED, Endpoint.FAKE, item)
                self.record.note(spot, _together(results), self.clock.time())
            self.done(channel)

    async def _case(self, row: Row, case: Case, outcomes: dict[str, Result]) -> Result:
        """Return the outcome of a case, run once however many lines it shows."""
        if case.needs & row.LACKS:
            return not_done(Why.PLATFORM)
        missing = not_done(Why.NOT_INSTALLED)
        if missing in outcomes.values():
            return missing
        if case.name not in outcomes:
            began = self.clock.monotonic()
            result = await _run(row, case)
            outcomes[case.name] = (
                replace(result, seconds=self.clock.monotonic() - began) if result != missing else missing
            )
        return outcomes[case.name]


async def _run(row: Row, case: Case) -> Result:
    try:
        with tempfile.TemporaryDirectory() as folder:
            for generation in Generation:
                async with asyncio.timeout(CASE_SECONDS):
                    await case.on(row, generation, Path(folder, generation))
    except Exception as error:  # noqa: BLE001 - whatever a case raises is its verdict, and the others go on
        links = tuple(chain(error))
        lost = next((link.health for link in links if isinstance(link, NotConnected)), None)
        if lost is not None and lost.why is Stop.NOT_INSTALLED:
            return not_done(Why.NOT_INSTALLED)
        cause = next((link for link in links if not isinstance(link, BaseExceptionGroup)), error)
        return failed(Why.CASE, f"{type(cause).__name__} {_place(links, case)}")
    return PASSED


def _place(links: Sequence[BaseException], case: Case) -> str:
    """Return the line of the case that was not met, or else where the last error was raised."""
    frames = [frame for link in links for frame in traceback.extract_tb(link.__traceback__)]
    own = [frame for frame in frames if frame.filename == inspect.getfile(case.run)]
    found = (own or frames)[-1]
    return at(found.filename, found.lineno or 0)


def _together(results: Sequence[Result]) -> Result:
    """Return one outcome for several cases: the worst, and how long they took in all."""
    order = (Verdict.FAIL, Verdict.NOT_DONE, Verdict.PASS)
    worst = min(results, key=lambda result: order.index(result.verdict))
    seconds = [result.seconds for result in results if result.seconds is not None]
    return replace(worst, seconds=sum(seconds) if seconds else None)
