"""The host's own slash commands. Source: facts HARNESS 3.2 and the recorded transcripts."""

from __future__ import annotations

from tests.fakes.harness import events
from tests.fakes.harness.dialect import Dialect, Obj
from tests.fakes.harness.events import draft
from tests.fakes.harness.live import LiveSession
from tests.fakes.harness.log import counts
from tests.fakes.harness.world import PERMISSIONS

COMMANDS = (
    ("@deepseek-ai/dsh-command-compact", "compact", "Compact older conversation history", None),
    ("@deepseek-ai/dsh-session-log-export", "export", "Download this Session log as a ZIP archive", None),
    ("@deepseek-ai/dsh-command-feedback", "feedback", "Record feedback about this session", "<text>"),
    ("@deepseek-ai/dsh-command-goal", "goal", "Set or view the goal for a long-running task", "[<objective>|clear]"),
    ("@deepseek-ai/dsh-permission-presets", "permission", "Switch the permission preset", "<preset>"),
    ("@deepseek-ai/dsh-plan-mode", "plan", "Enter or leave plan mode", "[off|message]"),
)


def listed(dialect: Dialect) -> list[Obj]:
    """Return the commands as the list method spells them."""
    rows: list[Obj] = []
    for definition, name, description, hint in COMMANDS:
        row: Obj = {"definitionId": definition} if dialect.has_projections else {}
        row |= {"name": name, "description": description}
        rows.append(row | ({"input": {"hint": hint}} if hint else {}))
    return rows


def run_command(session: LiveSession, line: str) -> Obj | None:
    """Run one line; None when it names no command of the host."""
    name = line.removeprefix("/").split(" ", 1)[0]
    args = line.removeprefix(f"/{name}")
    if not line.startswith("/") or name not in {command[1] for command in COMMANDS}:
        return None
    id_ = session.world.next_command()
    session.write(draft("command/run", commandId=id_, name=name, args=args, source={"kind": "user"}))
    result = _result(session, id_, name, args)
    session.write({"type": "command/done", "data": {"commandId": id_, **result}})
    return {"commandId": id_, "result": result}


def _result(session: LiveSession, id_: str, name: str, args: str) -> Obj:
    if name == "compact":
        return compact(session, id_)
    if name == "permission":
        args = args.strip()
        if args not in PERMISSIONS:
            text = f'unknown preset "{args}" (available: {", ".join(PERMISSIONS)})'
            return {"kind": "error", "text": text}
        policy = "never" if args == "danger-full-access" else "ask"
        session.write(draft("permission/preset", preset=args))
        session.write(draft("sandbox/mode", mode=args))
        session.write(draft("approval/policy", policy=policy))
        return {"kind": "success", "text": f"preset {args}"}
    if name == "plan":
        session.write(draft("plan/mode", active=args.strip() != "off"))
        text = "Plan mode off." if args.strip() == "off" else "Plan mode on. Use /plan off to leave."
        return {"kind": "success", "text": text}
    return {"kind": "success", "text": "done"}


def compact(session: LiveSession, command: str) -> Obj:
    """Replace what the model sees by a summary; the log keeps everything."""
    seqs = [event["seq"] for event in session.log if counts(event)]
    id_ = session.world.mint.uuid()
    about: Obj = {"compactionId": id_, "sourceCommandId": command}
    started = session.write(draft("compaction/start", **about, turn=None))
    if not seqs:
        session.write(draft("compaction/end", **about, turn=None))
        return {"kind": "success", "text": "No compactable history yet."}
    summary = [events.text("SUMMARY: the earlier conversation, in short.")]
    first, last = int(str(seqs[0])), int(str(seqs[-1]))
    shadowed: Obj = {"shadowedRange": {"start": first, "end": last}, "shadowedSeqs": seqs, "shadowedTokenCount": 3712}
    seq = session.write({"type": "compaction/summary", "data": {**about, "summary": summary, **shadowed}})
    source = events.injected_source(session.world.dialect, "compact-checkpoint", **about)
    body = events.message(session.world.mint.uuid(), [events.text("…"), *summary], source)
    event = events.user_message(body, events.replaced(session.world.dialect, first, last))
    session.write({**event, "sourceEventSeqs": [started, seq, *seqs]})
    session.write(draft("compaction/end", **about, turn=None))
    text = f"Compacted {len(seqs)} history items (~3712 tokens)."
    return {"kind": "success", "text": text, "sourceEventSeq": seq}
