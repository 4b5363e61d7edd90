"""``/status``, ``/stop``, ``/steer``: the turn this chat waits for. They run outside its queue and answer at once."""

from __future__ import annotations

from commands.budget import split
from commands.model import CommandRequest, CommandResult, Outcome, Services, StopOutcome
from harness_client.errors import HarnessError
from i18n import Key

DEADLINE_SECONDS = 10.0

_STOPPED = {
    StopOutcome.IDLE: Key.STOP_IDLE,
    StopOutcome.STOPPED: Key.STOP_DONE,
    StopOutcome.WITHDRAWN: Key.STOP_WITHDRAWN,
    StopOutcome.NOT_BEGUN: Key.STOP_NOT_BEGUN,
}


async def status(request: CommandRequest, services: Services) -> CommandResult:
    """Say which host and session the chat talks to, and what it waits for."""
    words = services.words
    try:
        async with services.clock.timeout(DEADLINE_SECONDS):
            health = await services.harness.health()
    except (HarnessError, TimeoutError) as error:
        reference = services.references.record(error, actor=request.sender, session=None)
        return CommandResult((words(Key.STATUS_FAILED, reference=reference),), Outcome.FAILED, reference)
    binding = await services.bindings.get(request.chat)
    turn = services.turns.current(request.chat)
    lines = [
        words(Key.STATUS_HOST, generation=health.generation, version=health.version or "-"),
        words(Key.STATUS_SESSION, session=binding.session) if binding.session else words(Key.STATUS_UNBOUND),
        words(Key.STATUS_RUNNING, seconds=int(turn.age), queued=turn.queued) if turn else words(Key.STATUS_IDLE),
    ]
    return CommandResult(split("\n".join(lines)))


async def stop(request: CommandRequest, services: Services) -> CommandResult:
    """Stop the turn this chat started, and nobody else's; again is no error."""
    words = services.words
    try:
        async with services.clock.timeout(DEADLINE_SECONDS):
            outcome = await services.turns.stop(request.chat)
    except (HarnessError, TimeoutError) as error:
        reference = services.references.record(error, actor=request.sender, session=None)
        return CommandResult((words(Key.STOP_FAILED, reference=reference),), Outcome.FAILED, reference)
    return CommandResult((words(_STOPPED[outcome]),))


async def steer(request: CommandRequest, services: Services) -> CommandResult:
    """Add an instruction to the turn this chat started."""
    words = services.words
    try:
        async with services.clock.timeout(DEADLINE_SECONDS):
            taken = await services.turns.steer(request.chat, request.argument)
    except (HarnessError, TimeoutError) as error:
        reference = services.references.record(error, actor=request.sender, session=None)
        return CommandResult((words(Key.STEER_FAILED, reference=reference),), Outcome.FAILED, reference)
    if not taken:
        return CommandResult((words(Key.STEER_IDLE),), Outcome.REFUSED)
    return CommandResult((words(Key.STEER_DONE),))
