"""The life of one turn, event by event. Source: facts HARNESS 6 and the recorded logs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.fakes.harness import events
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.events import Result, draft
from tests.fakes.harness.model import Failure, Script, Step, Tool, say
from tests.fakes.harness.stream import Attempt

if TYPE_CHECKING:
    from tests.fakes.harness.live import LiveSession

MAX_RETRIES = 5
ASK_ERRORS = {
    "ASK_CANCELLED": "Error: the user cancelled ask_user_question",
    "ASK_ABORTED": "Error: ask_user_question was aborted before the user answered",
    "NO_PROVIDER": "Error: no user-questions answerer accepted the request",
}
LOST = Result(
    "The tool call was interrupted after it was recorded, but no result was recorded.",
    failed=True,
    error={"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"},
)


class Turn:
    """Runs one turn of a session; cancelling the task ends it as a person's stop does."""

    def __init__(self, session: LiveSession, number: int) -> None:
        self.session, self.number = session, number
        self.step = 0
        self.attempt: Attempt | None = None
        self._step_open = False
        self._tool: tuple[str, int] | None = None
        self._approval = False

    async def run(self) -> str:
        """Run to the end; return its kind, such as completed or aborted."""
        session = self.session
        session.write(draft("turn/start", turn=self.number))
        messages = session.take_for_turn()
        script = session.world.model.answer(_words(messages))
        try:
            reason = await self._steps(script, messages)
        except asyncio.CancelledError:
            if session.killed:
                raise
            reason = self._aborted()
        self.attempt = None
        session.write(draft("turn/end", turn=self.number, reason=reason))
        session.deliver_title()
        return str(reason["kind"])

    async def _steps(self, script: Script, messages: Sequence[Obj]) -> Obj:
        waiting = list(script)
        while True:
            self._open_step(messages)
            step = waiting.pop(0) if waiting else say("ok")
            end = await self._run_step(step)
            self._close_step()
            if end is not None:
                return end
            messages = self.session.take_steering()
            if not messages and not step.tools:
                return {"kind": "completed"}

    def _open_step(self, messages: Sequence[Obj]) -> None:
        session = self.session
        self.step += 1
        self._step_open = True
        session.write(draft("step/start", turn=self.number, step=self.step))
        session.open_request(self.number, self.step, messages)

    def _close_step(self) -> None:
        self._step_open = False
        self.session.write(draft("step/end", turn=self.number, step=self.step))

    async def _run_step(self, step: Step) -> Obj | None:
        """Run one step; return why the turn ends, None when the model may go on."""
        self.attempt = Attempt(self.session, self.number, self.step)
        self.session.begin_title()
        await asyncio.sleep(0)
        if step.failure is not None:
            if not await self._failed(step.failure):
                return {"kind": "error", "error": step.failure.wire}
            self.attempt = Attempt(self.session, self.number, self.step)
        calls = [(self.session.world.next_call(), tool) for tool in step.tools]
        await self.attempt.say(step, calls)
        self._commit_message()
        for call, tool in calls:
            await self._use(call, tool)
        return {"kind": "max-tokens"} if step.finish == "max-tokens" else None

    async def _failed(self, failure: Failure) -> bool:
        """Write the failed attempts; return whether the last retry is going to succeed."""
        session = self.session
        for retry in range(failure.retries + (0 if failure.recovers else 1)):
            attempt = self.attempt if retry == 0 else Attempt(session, self.number, self.step)
            assert attempt is not None
            await attempt.fail(failure.wire)
            if not session.world.dialect.chunks_in_log:
                seq = session.write(draft("assistant/attempt", turn=self.number, step=self.step, stream=attempt.packed))
                attempt.commit("assistant/attempt", seq)
            self.attempt = None
            if retry < failure.retries:
                self._write_retry(retry + 1, failure)
        return failure.recovers

    def _write_retry(self, retry: int, failure: Failure) -> None:
        where: Obj = {"retryId": self.session.world.mint.uuid(), "turn": self.number, "step": self.step}
        more: Obj = {"retry": retry, "maxRetries": MAX_RETRIES, "delayMs": 500, "failure": failure.wire}
        self.session.write({"type": "llm/retry", "data": {**where, **more}})
        self.session.write({"type": "llm/retry-started", "data": {**where, "retry": retry}})

    def _commit_message(self, *, interrupted: bool = False) -> None:
        attempt, session = self.attempt, self.session
        assert attempt is not None
        event = events.assistant_message(
            session.world.dialect,
            turn=self.number,
            step=self.step,
            id_=session.world.mint.uuid(),
            blocks=attempt.blocks,
            model=session.model,
            stream=attempt.packed,
            chunks=attempt.seqs,
            interrupted=interrupted,
        )
        seq = session.write(event)
        attempt.commit("assistant/message", seq)
        self.attempt = None

    async def _use(self, call: str, tool: Tool) -> None:
        session = self.session
        data: Obj = {
            "turn": self.number, "step": self.step, "callId": call, "name": tool.name, "arguments": tool.arguments
        }  # fmt: skip
        seq = session.write({"type": "tool/call", "data": data})
        self._tool = (call, seq)
        session.tool_names[call] = tool.name
        session.deliver_title()
        asks = tool.name == "ask_user_question"
        self._write_result(await (self._ask(tool) if asks else self._work(call, tool)))

    async def _work(self, call: str, tool: Tool) -> Result:
        if tool.approval is not None:
            refused = await self._approved(call, tool, tool.approval)
            if refused is not None:
                return refused
        job = self._register_job(call, tool)
        try:
            if tool.until is not None:
                await tool.until.wait()
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if not self.session.killed:
                self._settle_job(job, "killed")
            raise
        self._settle_job(job, "completed")
        if tool.name == "todo_write":
            self.session.write(draft("todo/write", todos=tool.args.get("todos", [])))
        return Result(tool.result, failed=tool.error)

    def _register_job(self, call: str, tool: Tool) -> Obj | None:
        """Write what 0.2 writes of a shell call that begins; None for any other call."""
        session = self.session
        if session.world.dialect.flavour != "0.2" or tool.name != "bash":
            return None
        job: Obj = {
            "jobId": f"bash-{session.world.mint.uuid()[-12:]}", "owner": session.id, "kind": "bash",
            "label": str(tool.args.get("command", "")), "startedAt": session.world.mint.now(),
            "toolCall": {"callId": call, "rootCallId": call},
        }  # fmt: skip
        session.write({"type": "job/registered", "data": job})
        return job

    def _settle_job(self, job: Obj | None, status: str) -> None:
        if job is not None:
            more: Obj = {"finishedAt": self.session.world.mint.now(), "status": status, "producerReported": True}
            self.session.write({"type": "job/settled", "data": {**job, **more}})

    async def _ask(self, tool: Tool) -> Result:
        outcome = await self.session.world.ask(self.session, "question", {"questions": tool.args["questions"]})
        if outcome.error is None:
            return Result(json.dumps(outcome.answers, separators=(",", ":"), ensure_ascii=False))
        return Result(ASK_ERRORS[outcome.error], True, {"name": "UserQuestionError", "code": outcome.error})

    async def _approved(self, call: str, tool: Tool, reason: str) -> Result | None:
        """Ask for approval; return None when it is given, else what the tool says instead."""
        session = self.session
        id_ = session.world.mint.uuid()
        asked: Obj = {"toolName": tool.name, "callId": call, "reason": reason}
        session.write(draft("approval/asked", id=id_, **asked))
        self._approval = True
        try:
            word = (await session.world.ask(session, "approval", asked, id_)).word
        except asyncio.CancelledError:
            if not session.killed:
                session.write(draft("approval/decided", id=id_, outcome="cancelled"))
            raise
        self._approval = False
        session.write(draft("approval/decided", id=id_, outcome=word))
        refusals = {"rejected": "Error: the user rejected this", "unavailable": "Error: this requires approval"}
        return None if word == "allowed-once" else Result(refusals[word], failed=True)

    def _write_result(self, result: Result) -> None:
        assert self._tool is not None
        self.session.write(self._result_event(result, self.session.world.mint.uuid()))
        self._tool = None

    def _result_event(self, result: Result, id_: str) -> Obj:
        assert self._tool is not None
        call, seq = self._tool
        return events.tool_result(
            self.session.world.dialect, result, turn=self.number, step=self.step, call=call, id_=id_, call_seq=seq
        )

    def _aborted(self) -> Obj:
        """Close what is open after a person's stop; return the reason the turn ends with."""
        if self._tool is not None:
            self._write_result(self._aborted_result(self._tool[0]))
        elif self.attempt is not None and self.attempt.blocks:
            self._commit_message(interrupted=True)
        elif self.attempt is not None and not self.session.world.dialect.chunks_in_log:
            data: Obj = {"turn": self.number, "step": self.step, "stream": []}
            self.attempt.commit("assistant/attempt", self.session.write({"type": "assistant/attempt", "data": data}))
        if self._step_open:
            self._close_step()
        return {"kind": "aborted", "reason": {"kind": "user"}}

    def _aborted_result(self, call: str) -> Result:
        if self._approval:
            return Result("Error: approval was cancelled", failed=True)
        if self.session.tool_names[call] == "ask_user_question":
            return Result(ASK_ERRORS["ASK_ABORTED"], True, {"name": "UserQuestionError", "code": "ASK_ABORTED"})
        return Result("Error: tool call aborted", True, {"name": "AbortError", "code": "ABORTED"})

    def closers(self) -> list[Obj]:
        """Return what a cold read adds to a log whose host died here."""
        out: list[Obj] = []
        if self._tool is not None:
            id_ = f"interrupted-tool-result-{self._tool[0]}-{self.session.log.cursor + 1}"
            out.append(self._result_event(LOST, id_))
        if self._step_open:
            out.append(draft("step/end", turn=self.number, step=self.step))
        out.append(draft("turn/end", turn=self.number, reason={"kind": "interrupted"}))
        return out


def _words(messages: Sequence[Obj]) -> str:
    """Return the text of the newest message: the one the model answers."""
    content = messages[-1]["content"] if messages else []
    assert isinstance(content, list)
    return "\n".join(str(part["text"]) for part in content if part.get("type") == "text")
