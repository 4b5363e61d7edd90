"""Writing a past into a session, event by event or by the thousand, without running anything."""

from __future__ import annotations

from tests.fakes.harness import events
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.events import draft
from tests.fakes.harness.live import NEXT_TURN, LiveSession
from tests.fakes.harness.log import Cut, Generated, Log

DIALOGUE_EVENTS = 8


class Session(LiveSession):
    """A session of the fake host, as tests hold it."""

    def user(self, words: str, *, seq: int | None = None, request: str | None = None, **source: object) -> int:
        """Append a human message; ``source`` replaces its source."""
        said: Obj = dict(source) or {"kind": "user", "rpcId": request or self.world.mint.uuid()}
        return self.raw(
            seq=seq, **events.user_message(events.message(self.world.mint.uuid(), [events.text(words)], said))
        )

    def assistant(
        self, *words: str, turn: int, step: int = 1, seq: int | None = None, interrupted: bool = False
    ) -> int:
        """Append an assistant message with these text blocks."""
        event = events.assistant_message(
            self.world.dialect,
            turn=turn,
            step=step,
            id_=self.world.mint.uuid(),
            blocks=[events.text(w) for w in words],
            model=self.model,
            interrupted=interrupted,
        )
        return self.raw(seq=seq, **event)

    def end(self, reason: str = "completed", *, turn: int | None = None, seq: int | None = None) -> int:
        """Append the end of a turn, the latest by default."""
        kind: Obj = {"kind": reason}
        if reason == "aborted":
            kind["reason"] = {"kind": "user"}
        if reason == "error":
            kind["error"] = {"message": "fake: bad request shape", "code": "INVALID_REQUEST", "status": 400}
        return self.raw(seq=seq, **draft("turn/end", turn=self.turns if turn is None else turn, reason=kind))

    def start(self) -> int:
        """Append the start of the next turn; return its number."""
        self.turns += 1
        self.raw(**draft("turn/start", turn=self.turns))
        return self.turns

    def raw(self, *, seq: object = None, **event: object) -> int:
        """Append an event as it stands; ``seq`` may be anything a hostile host would send."""
        if seq is None:
            return self.write(dict(event))
        self._append({**event, "seq": seq, "time": self.world.mint.now()})
        return seq if isinstance(seq, int) else -1

    def script_pages(self, *pages: Cut) -> None:
        """Answer the coming reads with these pages, whatever they ask; the first holds the cursor."""
        self._pages = list(pages)
        seqs = [event.get("seq") for event in pages[0].events]
        self._scripted_cursor = max(0, *(seq for seq in seqs if isinstance(seq, int)), 0)

    def forget(self) -> None:
        """Empty the log to make room for a recorded one, which brings its own views."""
        self.log, self.views = Log(), {}

    def dialogue(self, turns: int) -> None:
        """Append completed turns: turn k has prompt ``u<k>`` and answer ``a<k>``. Costs nothing until it is read."""
        first_seq, first_turn = self.log.cursor + 1, self.turns + 1

        def block(k: int) -> list[Obj]:
            return self._dialogue_turn(first_seq + k * DIALOGUE_EVENTS, first_turn + k)

        self.log.extend_lazily(Generated(turns, DIALOGUE_EVENTS, block))
        self.turns += turns
        self.requests += turns

    def _dialogue_turn(self, seq: int, turn: int) -> list[Obj]:
        prompt = events.message(f"{self.id}-u{turn}", [events.text(f"u{turn}")], {"kind": "user", "rpcId": f"r{turn}"})
        answer = events.assistant_message(
            self.world.dialect, turn=turn, step=1, id_=f"{self.id}-a{turn}", blocks=[events.text(f"a{turn}")],
            model=self.model,
        )  # fmt: skip
        drafts = [
            events.spliced(NEXT_TURN, 0, inserted=[prompt]),
            draft("turn/start", turn=turn),
            events.spliced(NEXT_TURN, 0, removed=1),
            draft("step/start", turn=turn, step=1),
            events.user_message(prompt),
            answer,
            draft("step/end", turn=turn, step=1),
            draft("turn/end", turn=turn, reason={"kind": "completed"}),
        ]
        base = self.created_at
        return [{"type": d["type"], "seq": seq + i, "time": base + seq + i, **d} for i, d in enumerate(drafts)]
