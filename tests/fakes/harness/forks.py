"""Forks, which three release lines cut in three ways. Source: facts HARNESS 6."""

from __future__ import annotations

from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.events import draft
from tests.fakes.harness.live import NEXT_TURN
from tests.fakes.harness.notices import Added, Refused
from tests.fakes.harness.session import Session


def fork(source: Session, at: int | None) -> Session:
    """Make a child that begins with a copy of the source's log up to a cut."""
    ends = [_seq(event) for event in source.log if event.get("type") == "turn/end"]
    if at is None or source.world.dialect.flavour != "0.2":
        ends = ends[-1:] if at is None else [seq for seq in ends if seq >= at][:1]
        if not ends:
            message = f'session "{source.id}" has no completed turn to fork from'
            raise Refused("fork-unavailable", message, {"sessionId": source.id})
        at = ends[0]
    if at > source.log.cursor:
        message = f'event {at} does not exist in session "{source.id}" (last seq: {source.log.cursor})'
        raise Refused("fork-unavailable", message, {"sessionId": source.id})
    prefix = [event for event in source.log if _seq(event) <= at]
    child = _child(source)
    for event in prefix:
        child.replay(event)
    if source.world.dialect.flavour == "0.1.5":
        _take_next_prompt(source, child, at)
    child.seeded = len(child.log)
    child.write(draft("session/end-seed", inherited=True))
    if child.step_open:
        child.write(draft("step/end", turn=child.turns, step=child.step_open))
    if child.turn_open:
        child.write(draft("turn/end", turn=child.turns, reason={"kind": "forked"}))
    source.world.publish(Added(child))
    return child


def _child(source: Session) -> Session:
    world = source.world
    child = Session(world, f"session-{world.mint.uuid()}", source.cwd, source.preset, parent=source.id)
    world.sessions[child.id] = child
    child.title, child.model, child.effort = source.title, source.model, source.effort
    return child


def _take_next_prompt(source: Session, child: Session, at: int) -> None:
    """Copy the prompt that followed the cut as well, which the child then runs again: a habit of 0.1.5."""
    following = next((event for event in source.log if _seq(event) == at + 1), None)
    if following is None or following.get("type") != "agent/inbox/spliced":
        return
    child.log.append(following)
    data = following["data"]
    assert isinstance(data, dict)
    child.queues[NEXT_TURN].extend(data["inserted"])


def _seq(event: Obj) -> int:
    seq = event.get("seq")
    return seq if isinstance(seq, int) else -1
