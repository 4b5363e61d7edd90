"""One running session: its log, its queue and its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.fakes.harness import events
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.events import draft
from tests.fakes.harness.log import Cut, Log
from tests.fakes.harness.notices import Appended, Projected, Running, no_such_item
from tests.fakes.harness.turn import Turn

if TYPE_CHECKING:
    from tests.fakes.harness.world import World

NEXT_TURN, NEXT_STEP = "next-turn", "next-step"


class LiveSession:
    """A session as its host runs it: first what a client may do, then what its turns do."""

    def __init__(
        self, world: World, id_: str, cwd: str, preset: str, parent: str | None = None, origin: str | None = None
    ) -> None:
        self.world, self.id, self.cwd, self.preset, self.parent, self.origin = world, id_, cwd, preset, parent, origin
        self.log = Log()
        self.created_at = self.updated_at = world.mint.now()
        self.last_prompt_at: int | None = None
        self.title: str | None = None
        self.model, self.effort, self.model_chosen = world.default_model, "high", False
        self.queues: dict[str, list[Obj]] = {NEXT_TURN: [], NEXT_STEP: []}
        self.attached, self.killed, self.seeded = True, False, 0
        self.turn: Turn | None = None
        self.turn_open, self.step_open = False, 0
        self.turns = self.requests = self.attempts = self.revision = 0
        self.cached_as_of, self.cached_turns = 2, 0
        self.tool_names: dict[str, str] = {}
        self.views: dict[int, Obj] | None = None
        self.attachments: dict[str, Obj] = {}
        self._pages: list[Cut] = []
        self._scripted_cursor = -1
        self._task: asyncio.Task[None] | None = None
        self._title_for: list[int] | None = None
        self._context_due = self._title_asked = self._named = False
        self._untitled: Sequence[Obj] = ()
        self.last_used: Obj | None = None

    # -- what a client may do ---------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a turn runs now."""
        return self._task is not None

    @property
    def partial(self) -> str:
        """The text that has streamed of the running step so far."""
        attempt = self.turn.attempt if self.turn is not None else None
        blocks = attempt.blocks if attempt is not None else []
        return "".join(str(block["text"]) for block in blocks if block["type"] == "text")

    @property
    def blank(self) -> bool:
        """Whether no turn has begun yet, as far as the host knows: of a cold session it may know less than the log."""
        return (self.turns if self.attached else self.cached_turns) == 0

    def prompt(self, content: Sequence[Obj], request: str | None, mode: str) -> str:
        """Queue a prompt, or steer it into the running turn; start the turn when none runs."""
        self.wake()
        source: Obj = {"kind": "user"} if request is None else {"kind": "user", "rpcId": request}
        target = NEXT_STEP if mode == "steer" else NEXT_TURN
        queued = events.message(self.world.mint.uuid(), content, source)
        self._splice(target, len(self.queues[target]), inserted=[queued])
        self.last_prompt_at = self.world.mint.now()
        self._start()
        return str(queued["id"])

    def cancel(self) -> None:
        """Stop the running turn; what waits in the queue stays there until the next prompt."""
        if self._task is not None:
            # after the task's own first step: a turn that has been asked for always begins
            asyncio.get_running_loop().call_soon(self._task.cancel)

    def rename(self, words: str) -> int:
        """Set the title a person chose, which no other follows; return the seq of the event."""
        self._named = True
        return self._entitle(" ".join(words.split()), "user", [])

    def update_queue(self, item: str, action: str, content: Sequence[Obj] = ()) -> None:
        """Edit, remove or steer a queued prompt."""
        for target, queue in self.queues.items():
            for index, queued in enumerate(queue):
                if queued["id"] != item:
                    continue
                edited = [{**queued, "content": list(content)}] if action == "edit" else []
                self._splice(target, index, removed=1, inserted=edited, canceled=True)
                if action == "steer":
                    self._splice(NEXT_STEP, len(self.queues[NEXT_STEP]), inserted=[queued])
                return
        raise no_such_item(item)

    def wake(self) -> None:
        """Attach a cold session; a resume after a restart leaves its mark in the log."""
        if not self.attached:
            self.attached, self.killed, self._context_due = True, False, True
            self.write(draft("session/end-seed"))

    def page(self, *, limit: int, before: int | None = None, through: int | None = None) -> Cut:
        """Cut a page, or hand out the next scripted one; the last of them again and again."""
        if self._pages:
            return self._pages.pop(0) if len(self._pages) > 1 else self._pages[0]
        return self.log.cut(limit=limit, before=before, through=through)

    @property
    def cursor(self) -> int:
        """The newest seq a page may be asked for."""
        return self._scripted_cursor if self._pages else self.log.cursor

    # -- what a turn does -------------------------------------------------------------------------------------------

    def write(self, event: Obj) -> int:
        """Append an event with the next seq and the time; tell every follower."""
        seq = self.log.cursor + 1
        stamped: Obj = {"type": event["type"], "seq": seq, "time": self.world.mint.now(), **event}
        self._append(stamped)
        return seq

    def _append(self, event: Obj) -> None:
        self.log.append(event)
        time = event.get("time")
        self.updated_at = time if isinstance(time, int) else self.updated_at
        self.world.publish(Appended(self, event))

    def take_for_turn(self) -> list[Obj]:
        """Take everything steered and the oldest queued prompt out of the queue."""
        taken = self.take_steering()
        if self.queues[NEXT_TURN]:
            taken.append(self.queues[NEXT_TURN][0])
            self._splice(NEXT_TURN, 0, removed=1)
        return taken

    def take_steering(self) -> list[Obj]:
        """Take everything steered."""
        taken = list(self.queues[NEXT_STEP])
        if taken:
            self._splice(NEXT_STEP, 0, removed=len(taken))
        return taken

    def open_request(self, turn: int, step: int, messages: Sequence[Obj]) -> None:
        """Write what goes to the model: the prompts, the context, and at first the settings."""
        dialect, first = self.world.dialect, self.requests == 0
        self.requests += 1
        if first and not dialect.chunks_in_log:
            system: Obj = {
                "role": "system", "content": [events.text("…")], "source": {"kind": "system-prompt"},
                "id": self.world.mint.uuid(),
            }  # fmt: skip
            self.write({**draft("system/message", turn=turn, step=step, message=system), "surfaceOp": "append"})
        seqs = [self.write(events.user_message(data)) for data in messages]
        if first:
            for kind in ("runtime-context", "time-context") if dialect.log_version == 4 else ("runtime-context",):
                self.inject(kind, "…")
        elif self._context_due:
            self.inject("runtime-context", "…")
        if first and dialect.chunks_in_log:
            self._first_title(messages, seqs)
        if (
            first
            or self._context_due
            or (self.requests == 2 and dialect.chunks_in_log and not self.world.model_selected)
        ):
            self.write(draft("request/header", header={"config": self._chosen(), "tools": []}))
        self._context_due = False
        if first:
            self.write(draft("request/context", provider="deepseek-official", model=self.model, contextWindow=10**6))
            self._title_for = seqs[:1]
            if not dialect.chunks_in_log:
                self._untitled = messages
        self.last_used = self._chosen()

    def begin_title(self) -> None:
        """Ask the model for a title beside the first request."""
        if self._title_for is None or self._title_asked or self._named:
            return
        self._title_asked = True
        self._first_title(self._untitled, self._title_for)
        self.write(draft("session/title-llm-request", messageSeqs=self._title_for, messages=[], maxTokens=64))

    def deliver_title(self) -> None:
        """Let the title the model made arrive, once, some time after the first prompt."""
        if self._title_for is not None and self.world.model.title and not self._named:
            self.deliver_log()
            self._entitle(self.world.model.title, "provider", self._title_for)
        self._title_for = None

    def deliver_log(self) -> None:
        """Note that the model's provider has taken the log along with a request, as 0.2 does."""
        if self.world.dialect.flavour == "0.2":
            about: Obj = {"sessionId": self.id, "sessionFormatVersion": 4, "throughSeq": self.log.cursor}
            self.write({"type": "session-log-deepseek/delivery-accepted", "data": about})

    def choose_model(self, model: str, effort: str) -> Obj:
        """Let the coming requests go to this model."""
        self.model, self.effort, self.model_chosen = model, effort, True
        if not self.world.dialect.chunks_in_log:
            seq = self.write({"type": "model/selection", "data": self._chosen()})
            self.world.publish(Projected(self, "modelSelection", self.model_selection, seq))
        return self._chosen()

    @property
    def model_selection(self) -> Obj:
        """The model as a projection: that of the last request and that of the next."""
        return {"lastUsed": self.last_used, "next": self._chosen() if self.model_chosen else self.last_used}

    def _chosen(self) -> Obj:
        return {"provider": "deepseek-official", "model": self.model, "reasoningEffort": self.effort}

    def _first_title(self, messages: Sequence[Obj], seqs: Sequence[int]) -> None:
        words = str(_first_text(messages))[:40].strip()
        if words and not self._named:
            self._entitle(words, "fallback", seqs[:1])

    def _entitle(self, words: str, kind: str, seqs: Sequence[int]) -> int:
        self.title = words
        seq = self.write(events.title(words, kind, seqs, self.model))
        self.world.publish(Projected(self, "title", words, seq))
        return seq

    def _splice(
        self, target: str, start: int, *, removed: int = 0, inserted: Sequence[Obj] = (), canceled: bool = False
    ) -> None:
        self.queues[target][start : start + removed] = inserted
        seq = self.write(events.spliced(target, start, removed=removed, inserted=inserted, canceled=canceled))
        self.world.publish(Projected(self, "inbox", self.inbox, seq))

    def inject(self, kind: str, words: str, **extra: object) -> int:
        """Append a message no human wrote, by its source name in format 4."""
        source = events.injected_source(self.world.dialect, kind, **extra)
        return self.write(events.user_message(events.message(self.world.mint.uuid(), [events.text(words)], source)))

    def replay(self, event: Obj, view: Obj | None = None) -> None:
        """Append a recorded event as it is, and follow the state it tells of."""
        if view is not None and self.views is not None:
            self.views[int(str(event["seq"]))] = view
        data = event["data"]
        assert isinstance(data, dict)
        self._append(event)
        if event["type"] == "turn/start":
            self.turns, self.turn_open = int(data["turn"]), True
        elif event["type"] == "turn/end":
            self.turn_open, self.step_open = False, 0
        elif event["type"] == "step/start":
            self.step_open = int(data["step"])
            self.requests += 1
        elif event["type"] == "step/end":
            self.step_open = 0
        elif event["type"] == "session/title":
            self.title = str(data["title"])

    def notice(self, words: str, kind: str = "tool-jobs") -> None:
        """Let the host open a turn of its own, as a finished background job does."""
        source = events.injected_source(self.world.dialect, kind, summary=words)
        queued = events.message(self.world.mint.uuid(), [events.text(words)], source)
        self._splice(NEXT_TURN, len(self.queues[NEXT_TURN]), inserted=[queued])
        self._start()

    @property
    def inbox(self) -> Obj:
        """The queue as a projection."""
        return {target: list(queue) for target, queue in self.queues.items()}

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"turns of {self.id}")
            self._task.add_done_callback(self._remember_failure)
            self.world.publish(Running(self, True))

    def _remember_failure(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.world.failures.append(error)

    async def _run(self) -> None:
        try:
            while any(self.queues.values()):
                self.turns += 1
                self.turn = Turn(self, self.turns)
                kind = await self.turn.run()
                self._cache()
                if kind == "aborted":
                    break  # what is queued stays parked
        finally:
            self._task = None
            self.turn = None if not self.killed else self.turn
            if not self.killed:
                self.world.publish(Running(self, False))

    def _cache(self) -> None:
        """Put aside what the list of a later, cold host will say."""
        self.cached_as_of, self.cached_turns = self.log.cursor, self.turns

    async def kill(self) -> None:
        """Let the host die here: the running turn stops where it is and the session turns cold."""
        self.killed, task = True, self._task
        if task is None:
            self._cache()
        else:
            task.cancel()
            await asyncio.wait([task])
            assert self.turn is not None
            # what a cold read makes up in memory and the next resume writes with these same seqs
            for event in self.turn.closers():
                self.write(event)
            self.turn = None
        self.attached = False

    async def settle(self) -> None:
        """Wait until no turn runs."""
        while self._task is not None:
            await asyncio.wait([self._task])


def _first_text(messages: Sequence[Obj]) -> object:
    content = messages[0]["content"] if messages else []
    assert isinstance(content, list)
    return next((part["text"] for part in content if part.get("type") == "text"), "")
