"""``/status``, ``/stop``, ``/steer``: the turn this chat waits for. They run outside its queue and answer at once."""

from __future__ import annotations

from commands.batch import LIMIT, Stage
from commands.budget import split
from commands.model import CommandRequest, CommandResult, Outcome, Services, SteerOutcome, StopOutcome
from harness_client.errors import HarnessError
from i18n import Key

DEADLINE_SECONDS = 10.0

_STOPPED = {
    StopOutcome.IDLE: Key.STOP_IDLE,
    StopOutcome.STOPPED: Key.STOP_DONE,
    StopOutcome.WITHDRAWN: Key.STOP_WITHDRAWN,
    StopOutcome.NOT_BEGUN: Key.STOP_NOT_BEGUN,
}

_STEERED = {
    SteerOutcome.IDLE: (Key.STEER_IDLE, Outcome.REFUSED),
    SteerOutcome.ASKED: (Key.STEER_ASKED, Outcome.REFUSED),
    SteerOutcome.TAKEN: (Key.STEER_DONE, Outcome.OK),
}


async def status(request: CommandRequest, services: Services) -> CommandResult:
    """Say which host and session the chat talks to, and what it waits for; also when the host does not answer."""
    words, chat = services.words, request.chat
    binding, turn = await services.bindings.get(chat), services.turns.current(chat)
    reference: str | None = None
    try:
        async with services.clock.timeout(DEADLINE_SECONDS):
            health = await services.harness.health()
        host = words(Key.STATUS_HOST, generation=health.generation, version=health.version or "-")
    except (HarnessError, TimeoutError) as error:
        reference = services.references.record(error, actor=request.sender, session=None)
        host = words(Key.STATUS_FAILED, reference=reference)
    lines = [
        host,
        words(Key.STATUS_SESSION, session=binding.session) if binding.session else words(Key.STATUS_UNBOUND),
        words(Key.STATUS_RUNNING, seconds=int(turn.age), queued=turn.queued) if turn else words(Key.STATUS_IDLE),
    ]
    if turn is not None and turn.asked:
        lines.append(words(Key.STATUS_ASKED))
    if services.batches.stage(chat) is Stage.COLLECTING:
        lines.append(words(Key.STATUS_BATCH, count=services.batches.count(chat), limit=LIMIT))
    outcome = Outcome.OK if reference is None else Outcome.FAILED
    return CommandResult(split("\n".join(lines)), outcome, reference)


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
            outcome = await services.turns.steer(request.chat, request.argument)
    except (HarnessError, TimeoutError) as error:
        reference = services.references.record(error, actor=request.sender, session=None)
        return CommandResult((words(Key.STEER_FAILED, reference=reference),), Outcome.FAILED, reference)
    key, end = _STEERED[outcome]
    return CommandResult((words(key),), end)
