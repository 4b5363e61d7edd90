"""Who may talk, command and own: the whole table, and what happens while the policy cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.access import NOTHING, OPERATOR, TERMINAL, Policies, Rights, decide, rights
from bridges.config import Access
from bridges.state import BotKey, open_state
from commands.model import ChatKind, SenderId
from tests.fakes.clock import FakeClock

ANN, BOB, OWNER = SenderId("ann"), SenderId("bob"), SenderId("owner")
OPS = BotKey("telegram", "ops")
DIRECT, GROUP = ChatKind.DIRECT, ChatKind.GROUP
ALL, TALK, PAIR = Rights(talk=True, command=True), Rights(talk=True), Rights(pair=True)
OWNS = Rights(talk=True, command=True, own=True)

DEFAULT = Access()
OPEN = Access(direct="open", group="open")
LISTED = Access(direct=frozenset({ANN}), group=frozenset({BOB}), owners=frozenset({OWNER}))
FEW = Access(direct="open", group="open", commands=frozenset({ANN}), owners=frozenset({OWNER}))

TABLE = [
    # policy, kind, sender, paired, rights
    (DEFAULT, DIRECT, ANN, False, PAIR),
    (DEFAULT, DIRECT, ANN, True, ALL),
    (DEFAULT, GROUP, ANN, False, NOTHING),
    (DEFAULT, GROUP, ANN, True, NOTHING),
    (OPEN, DIRECT, ANN, False, ALL),
    (OPEN, GROUP, ANN, False, ALL),
    (LISTED, DIRECT, ANN, False, ALL),
    (LISTED, GROUP, ANN, False, NOTHING),
    (LISTED, DIRECT, BOB, False, NOTHING),
    (LISTED, DIRECT, BOB, True, NOTHING),
    (LISTED, GROUP, BOB, False, ALL),
    (LISTED, DIRECT, OWNER, False, OWNS),
    (LISTED, GROUP, OWNER, False, OWNS),
    (FEW, DIRECT, ANN, False, ALL),
    (FEW, DIRECT, BOB, False, TALK),
    (FEW, GROUP, BOB, False, TALK),
    (FEW, GROUP, OWNER, False, OWNS),
    (TERMINAL, DIRECT, OPERATOR, False, OWNS),
    (TERMINAL, DIRECT, ANN, True, NOTHING),
    (TERMINAL, GROUP, ANN, False, NOTHING),
    (None, DIRECT, OWNER, True, NOTHING),
    (OPEN, DIRECT, SenderId(""), True, NOTHING),
]


@pytest.mark.parametrize(("policy", "kind", "sender", "paired", "expected"), TABLE)
def test_the_table(policy: Access | None, kind: ChatKind, sender: SenderId, paired: bool, expected: Rights) -> None:
    assert decide(policy, kind, sender, paired=paired) == expected


@pytest.mark.parametrize("sender", ["open", "all", "pairing", "ANN", "ann ", "*"])
def test_no_word_of_the_policy_is_a_person(sender: str) -> None:
    assert decide(LISTED, DIRECT, SenderId(sender), paired=False) == NOTHING
    assert not decide(DEFAULT, DIRECT, SenderId(sender), paired=False).talk


async def test_a_stranger_is_paired_by_code(tmp_path: Path) -> None:
    async with open_state(tmp_path / "state.db", clock=FakeClock()) as state:
        assert await rights(DEFAULT, state.pairings, OPS, DIRECT, ANN) == PAIR
        await state.pairings.approve(await state.pairings.ask(OPS, ANN) or "")
        assert await rights(DEFAULT, state.pairings, OPS, DIRECT, ANN) == ALL
        assert await rights(DEFAULT, state.pairings, OPS, GROUP, ANN) == NOTHING
        assert await rights(LISTED, state.pairings, OPS, DIRECT, BOB) == NOTHING
        await state.pairings.dismiss(OPS, ANN)
        assert await rights(DEFAULT, state.pairings, OPS, DIRECT, ANN) == PAIR


def write(path: Path, access: str) -> None:
    path.write_text(f'[[bot]]\nname = "ops"\nchannel = "telegram"\ntoken = "fake"\naccess = {access}\n')


def test_a_change_counts_from_the_next_event_and_damage_denies(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write(path, '{ direct = ["ann"] }')
    policies = Policies.following(path, {})

    def talks() -> bool:
        return decide(policies.of(OPS), DIRECT, ANN, paired=False).talk

    assert talks()
    write(path, '{ direct = ["bob"] }')
    assert not talks()
    write(path, '{ direct = "open" }')
    assert talks()
    write(path, '{ direct = "opened" }')
    assert not talks()
    write(path, '{ direct = "open" }')
    assert talks()
    path.unlink()
    assert not talks()
    assert policies.of(BotKey("telegram", "other")) is None


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write(path, '{ direct = "open" }')
    policies = Policies.following(path, {})
    first = policies.of(OPS)
    assert first is not None
    assert policies.of(OPS) is first
