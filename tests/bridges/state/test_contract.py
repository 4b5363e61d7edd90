"""What the state promises, whatever keeps it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.message import EventId, ReplyTarget, SentId, Stop
from bridges.state import BotKey, Health, Link, Noted, Phase, Settings, State, Turn, open_state
from commands.model import Binding, ChatKey, SenderId, StaleBinding
from harness_client.types import RequestId, SessionId
from i18n import Language
from tests.fakes.clock import FakeClock

OPS, OTHER = BotKey("telegram", "ops"), BotKey("slack", "other")
CHAT, SECOND = ChatKey("telegram", "ops", "1"), ChatKey("telegram", "ops", "2")
FOREIGN = ChatKey("slack", "other", "1")
A, B = SessionId("session-a"), SessionId("session-b")
EVENT = EventId("e1")
ANN, BOB = SenderId("ann"), SenderId("bob")


def turn(event: str = "e1", chat: ChatKey = CHAT, began: float = 1.0) -> Turn:
    return Turn(EventId(event), ReplyTarget(chat, "route"), ANN, began)


# -- bindings ---------------------------------------------------------------------------------------------------------


async def test_an_unknown_chat_is_unbound_and_reading_creates_nothing(state: State) -> None:
    assert await state.chats.get(CHAT) == Binding(None, 0, 0, 0)
    assert await state.chats.get(CHAT) == Binding(None, 0, 0, 0)


async def test_a_bound_chat_reads_as_bound(state: State) -> None:
    bound = await state.chats.bind(CHAT, A, expected=await state.chats.get(CHAT))
    assert bound.session == A
    assert await state.chats.get(CHAT) == bound
    assert (await state.chats.get(SECOND)).session is None


async def test_all_bound_chats_are_listed(state: State) -> None:
    assert await state.chats.bound() == ()
    for chat, session in ((CHAT, A), (SECOND, B), (FOREIGN, B)):
        await state.chats.bind(chat, session, expected=await state.chats.get(chat))
    await state.chats.unbind(SECOND)
    assert await state.chats.bound() == ((FOREIGN, B), (CHAT, A))


async def test_the_last_note_of_each_bot_is_kept_until_the_bot_is_gone(state: State, clock: FakeClock) -> None:
    await state.bots.settle([OPS, OTHER])
    up = Health(OPS, Link.UP, 1.0, last_event=2.0, error="TimeoutError")
    stopped = Health(OTHER, Link.STOPPED, 3.0, why=Stop.NEEDS_LOGIN)
    await state.healths.note([Health(OPS, Link.CONNECTING, 0.0), stopped])
    await clock.advance(5)
    await state.healths.note([up])
    now = clock.time()
    assert await state.healths.noted() == (Noted(stopped, now - 5, os.getpid()), Noted(up, now, os.getpid()))
    await state.bots.settle([OPS])
    assert await state.healths.noted() == (Noted(up, now, os.getpid()),)


async def test_going_there_and_back_is_noticed(state: State) -> None:
    first = await state.chats.bind(CHAT, A, expected=await state.chats.get(CHAT))
    second = await state.chats.bind(CHAT, B, expected=first)
    third = await state.chats.bind(CHAT, A, expected=second)
    assert third.session == first.session
    assert third != first


async def test_a_stale_bind_changes_nothing(state: State) -> None:
    unbound = await state.chats.get(CHAT)
    bound = await state.chats.bind(CHAT, A, expected=unbound)
    with pytest.raises(StaleBinding):
        await state.chats.bind(CHAT, B, expected=unbound)
    assert await state.chats.get(CHAT) == bound


async def test_of_many_first_binds_one_wins(state: State) -> None:
    unbound = await state.chats.get(CHAT)
    binds = (state.chats.bind(CHAT, SessionId(f"s{n}"), expected=unbound) for n in range(20))
    outcomes = await asyncio.gather(*binds, return_exceptions=True)
    (won,) = [outcome for outcome in outcomes if isinstance(outcome, Binding)]
    assert sum(isinstance(outcome, StaleBinding) for outcome in outcomes) == 19
    assert await state.chats.get(CHAT) == won


async def test_unbinding_moves_the_version_even_of_an_unbound_chat(state: State) -> None:
    first = await state.chats.unbind(CHAT)
    second = await state.chats.unbind(CHAT)
    assert first.session is second.session is None
    assert second.version > first.version > 0


async def test_a_workspace_switch_clears_every_chat_of_the_bot_and_no_other(state: State) -> None:
    for chat in (CHAT, SECOND, FOREIGN):
        await state.chats.bind(chat, A, expected=await state.chats.get(chat))
    before = await state.chats.get(CHAT)
    await state.bots.switch_workspace(OPS, "/srv/b")
    after = await state.chats.get(CHAT)
    assert after.session is None
    assert after.generation == before.generation + 1
    assert (await state.chats.get(SECOND)).session is None
    assert (await state.chats.get(FOREIGN)).session == A
    assert await state.bots.workspace(OPS) == "/srv/b"
    assert await state.bots.workspace(OTHER) is None


async def test_a_switch_leaves_the_pins_of_other_chats(state: State) -> None:
    for chat in (CHAT, SECOND):
        await state.chats.pin_workspace(chat, "/srv/pinned")
    await state.bots.switch_workspace(OPS, "/srv/b", unpin=CHAT)
    assert (await state.chats.settings(CHAT)).workspace is None
    assert (await state.chats.settings(SECOND)).workspace == "/srv/pinned"


async def test_a_workspace_switch_stales_a_bind_that_was_on_its_way(state: State) -> None:
    seen = await state.chats.get(CHAT)
    await state.bots.switch_workspace(OPS, "/srv/b")
    with pytest.raises(StaleBinding):
        await state.chats.bind(CHAT, A, expected=seen)


async def test_pinning_clears_the_binding(state: State) -> None:
    bound = await state.chats.bind(CHAT, A, expected=await state.chats.get(CHAT))
    pinned = await state.chats.pin_workspace(CHAT, "/srv/pinned")
    assert pinned.session is None
    assert pinned.version > bound.version
    assert (await state.chats.settings(CHAT)).workspace == "/srv/pinned"


async def test_the_language_of_a_chat_leaves_its_binding_alone(state: State) -> None:
    bound = await state.chats.bind(CHAT, A, expected=await state.chats.get(CHAT))
    await state.chats.set_language(CHAT, Language.EN)
    assert await state.chats.settings(CHAT) == Settings(Language.EN)
    assert await state.chats.get(CHAT) == bound
    await state.chats.set_language(CHAT, None)
    assert await state.chats.settings(CHAT) == Settings()


async def test_the_preset_of_a_chat_leaves_its_binding_alone(state: State) -> None:
    bound = await state.chats.bind(CHAT, A, expected=await state.chats.get(CHAT))
    await state.chats.set_preset(CHAT, "code")
    assert await state.chats.settings(CHAT) == Settings(preset="code")
    assert await state.chats.get(CHAT) == bound
    await state.chats.set_preset(CHAT, None)
    assert await state.chats.settings(CHAT) == Settings()


@given(steps=st.lists(st.sampled_from(["bind", "unbind", "switch", "pin", "leave"]), max_size=12))
async def test_no_state_of_a_chat_ever_comes_back(steps: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    async with open_state(tmp_path_factory.mktemp("state") / "state.db", clock=FakeClock()) as state:
        await state.bots.settle([OPS])
        seen = [await state.chats.get(CHAT)]
        for step in steps:
            match step:
                case "bind":
                    await state.chats.bind(CHAT, A, expected=seen[-1])
                case "unbind":
                    await state.chats.unbind(CHAT)
                case "switch":
                    await state.bots.switch_workspace(OPS, "/srv/b")
                case "pin":
                    await state.chats.pin_workspace(CHAT, "/srv/c")
                case "leave":
                    await state.bots.settle([])
                    await state.bots.settle([OPS])
            seen.append(await state.chats.get(CHAT))
        assert len(set(seen)) == len(seen)


# -- bots -------------------------------------------------------------------------------------------------------------


async def test_a_bot_that_left_keeps_nothing_but_its_claims(state: State) -> None:
    await state.bots.settle([OPS, OTHER])
    before = await state.chats.bind(CHAT, A, expected=await state.chats.get(CHAT))
    await state.claims.claim(OPS, EVENT, turn=turn())
    await state.cursors(OPS).save("offset", b"1")
    await state.pairings.approve(await state.pairings.ask(OPS, ANN) or "")
    await state.pairings.ask(OPS, BOB)
    await state.bots.switch_workspace(OPS, "/srv/b")
    await state.chats.bind(CHAT, A, expected=await state.chats.get(CHAT))

    await state.bots.settle([OTHER])
    await state.bots.settle([OPS, OTHER])
    after = await state.chats.get(CHAT)
    assert after.session is None
    assert after.incarnation > before.incarnation
    assert await state.turns.outstanding(OPS) == ()
    assert await state.cursors(OPS).load("offset") is None
    assert not await state.pairings.admitted(OPS, ANN)
    assert await state.pairings.waiting() == ()
    assert await state.bots.workspace(OPS) is None
    assert not await state.claims.claim(OPS, EVENT)


async def test_a_bot_that_stayed_keeps_all(state: State) -> None:
    await state.bots.settle([OPS])
    bound = await state.chats.bind(CHAT, A, expected=await state.chats.get(CHAT))
    await state.bots.settle([OPS, OTHER])
    assert await state.chats.get(CHAT) == bound


# -- claims -----------------------------------------------------------------------------------------------------------


async def test_of_many_claims_of_one_event_one_is_ours(state: State) -> None:
    claims = await asyncio.gather(*(state.claims.claim(OPS, EVENT) for _ in range(20)))
    assert sorted(claims) == [False] * 19 + [True]


async def test_events_of_two_bots_are_two_events(state: State) -> None:
    assert await state.claims.claim(OPS, EVENT)
    assert await state.claims.claim(OTHER, EVENT)
    assert await state.claims.claim(BotKey("slack", "ops"), EVENT)


async def test_claims_outlast_every_redelivery_and_are_forgotten_in_the_end(state: State, clock: FakeClock) -> None:
    await state.claims.claim(OPS, EVENT)
    await clock.advance(7 * 24 * 3600)
    assert not await state.claims.claim(OPS, EVENT)
    await clock.advance(2 * 24 * 3600)
    assert await state.claims.claim(OPS, EVENT)


async def test_a_claim_and_its_turn_are_one(state: State) -> None:
    assert await state.claims.claim(OPS, EVENT, turn=turn())
    assert await state.turns.outstanding(OPS) == (turn(),)
    assert not await state.claims.claim(OPS, EVENT, turn=replace(turn(), sender=BOB))
    assert await state.turns.outstanding(OPS) == (turn(),)


# -- turns ------------------------------------------------------------------------------------------------------------


async def test_a_turn_is_kept_whole(state: State) -> None:
    await state.claims.claim(OPS, EVENT, turn=turn())
    later = replace(
        turn(),
        phase=Phase.RUNNING,
        session=A,
        cwd="/srv/a",
        request=RequestId("r1"),
        binding=Binding(A, 3, 2, 1),
        carrier=SentId("m1"),
    )
    await state.turns.save(later)
    assert await state.turns.outstanding(OPS) == (later,)
    assert await state.turns.outstanding(OTHER) == ()


async def test_phases_only_grow(state: State) -> None:
    await state.claims.claim(OPS, EVENT, turn=turn())
    await state.turns.save(replace(turn(), phase=Phase.PROMPTING))
    with pytest.raises(ValueError, match="PROMPTING does not go back to CREATING"):
        await state.turns.save(replace(turn(), phase=Phase.CREATING))
    (only,) = await state.turns.outstanding(OPS)
    assert only.phase is Phase.PROMPTING


async def test_a_turn_that_ended_stays_ended(state: State) -> None:
    await state.claims.claim(OPS, EVENT, turn=turn())
    await state.turns.end(turn())
    await state.turns.end(turn())
    await state.turns.save(replace(turn(), phase=Phase.RUNNING))
    assert await state.turns.outstanding(OPS) == ()


async def test_turns_are_read_oldest_first(state: State) -> None:
    for event, began in (("x", 3.0), ("y", 1.0), ("z", 2.0)):
        await state.claims.claim(OPS, EventId(event), turn=turn(event, began=began))
    assert [turn.event for turn in await state.turns.outstanding(OPS)] == ["y", "z", "x"]


# -- cursors ----------------------------------------------------------------------------------------------------------


async def test_a_cursor_belongs_to_one_bot(state: State) -> None:
    await state.cursors(OPS).save("offset", b"\x00\xff")
    await state.cursors(OPS).save("offset", b"2")
    assert await state.cursors(OPS).load("offset") == b"2"
    assert await state.cursors(OTHER).load("offset") is None


async def test_a_large_cursor_is_refused(state: State) -> None:
    with pytest.raises(ValueError, match="65537 bytes"):
        await state.cursors(OPS).save("offset", bytes(64 * 1024 + 1))
    assert await state.cursors(OPS).load("offset") is None


async def test_of_many_cursors_the_ones_written_last_are_kept(state: State) -> None:
    cursors = state.cursors(OPS)
    await asyncio.gather(*(cursors.save(f"k{n}", b"v") for n in range(1024)))
    await cursors.save("k0", b"again")
    await cursors.save("one more", b"v")
    assert await cursors.load("k0") == b"again"
    assert await cursors.load("k1") is None
    assert await cursors.load("k2") == b"v"


# -- pairings ---------------------------------------------------------------------------------------------------------


async def test_a_stranger_with_an_approved_code_is_admitted(state: State) -> None:
    code = await state.pairings.ask(OPS, ANN)
    assert code is not None
    assert not await state.pairings.admitted(OPS, ANN)
    paired = await state.pairings.approve(f" {code.lower()} ")
    assert paired is not None
    assert (paired.bot, paired.sender) == (OPS, ANN)
    assert await state.pairings.admitted(OPS, ANN)
    assert not await state.pairings.admitted(OTHER, ANN)
    assert not await state.pairings.admitted(OPS, BOB)
    assert await state.pairings.approve(code) is None


async def test_one_code_in_ten_minutes(state: State, clock: FakeClock) -> None:
    first = await state.pairings.ask(OPS, ANN)
    await clock.advance(599)
    assert await state.pairings.ask(OPS, ANN) is None
    await clock.advance(1)
    second = await state.pairings.ask(OPS, ANN)
    assert second not in {None, first}
    assert await state.pairings.approve(first or "") is None
    assert await state.pairings.approve(second or "") is not None


async def test_a_code_lasts_one_hour(state: State, clock: FakeClock) -> None:
    code = await state.pairings.ask(OPS, ANN) or ""
    await clock.advance(3599)
    assert [pairing.code for pairing in await state.pairings.waiting()] == [code]
    await clock.advance(1)
    assert await state.pairings.waiting() == ()
    assert await state.pairings.approve(code) is None


async def test_a_crowd_of_strangers_does_not_grow_the_state(state: State, clock: FakeClock) -> None:
    codes = [await state.pairings.ask(OPS, SenderId(f"stranger-{n}")) for n in range(100)]
    assert len([code for code in codes if code]) == 20
    assert len(await state.pairings.waiting()) == 20
    assert await state.pairings.ask(OTHER, ANN) is not None
    await clock.advance(3600)
    assert await state.pairings.ask(OPS, ANN) is not None


async def test_an_owner_approves_for_the_own_bot_only(state: State) -> None:
    code = await state.pairings.ask(OPS, ANN) or ""
    assert await state.pairings.approve(code, bot=OTHER) is None
    assert await state.pairings.approve(code, bot=OPS) is not None


async def test_an_admission_can_be_taken_back(state: State) -> None:
    await state.pairings.approve(await state.pairings.ask(OPS, ANN) or "")
    await state.pairings.ask(OPS, BOB)
    assert await state.pairings.dismiss(OPS, ANN)
    assert not await state.pairings.admitted(OPS, ANN)
    assert await state.pairings.dismiss(OPS, BOB)
    assert await state.pairings.waiting() == ()
    assert not await state.pairings.dismiss(OPS, BOB)


async def test_two_strangers_never_hold_one_code(path: Path) -> None:
    async with open_state(path, clock=FakeClock(), code=lambda: "SAMECODE") as state:
        assert await state.pairings.ask(OPS, ANN) == "SAMECODE"
        assert await state.pairings.ask(OPS, BOB) is None
        assert [pairing.sender for pairing in await state.pairings.waiting()] == [ANN]


# -- across restarts --------------------------------------------------------------------------------------------------


async def test_everything_outlives_the_process(path: Path, clock: FakeClock) -> None:
    async with open_state(path, clock=clock) as state:
        bound = await state.chats.bind(CHAT, A, expected=await state.chats.get(CHAT))
        await state.chats.set_language(CHAT, Language.EN)
        await state.claims.claim(OPS, EVENT, turn=turn())
        await state.cursors(OPS).save("offset", b"7")
        await state.pairings.approve(await state.pairings.ask(OPS, ANN) or "")
    async with open_state(path, clock=clock) as state:
        assert state.set_aside is None
        assert await state.chats.get(CHAT) == bound
        assert (await state.chats.settings(CHAT)).language is Language.EN
        assert not await state.claims.claim(OPS, EVENT)
        assert await state.turns.outstanding(OPS) == (turn(),)
        assert await state.cursors(OPS).load("offset") == b"7"
        assert await state.pairings.admitted(OPS, ANN)
