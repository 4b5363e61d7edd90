"""State that a host keeps beside the log, and the rows of its session list. Source: facts HARNESS 3.2, 4.3."""

from __future__ import annotations

from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.live import LiveSession
from tests.fakes.harness.world import PERMISSIONS

IMAGE_LIMITS: Obj = {
    "maxImageBytes": 20971520,
    "maxImagesPerMessage": 20,
    "maxMessageImageBytes": 209715200,
    "maxImagePixels": 64000000,
    "maxImageDimension": 8192,
    "mediaTypes": ["image/png", "image/jpeg", "image/webp", "image/gif"],
}


def header(session: LiveSession) -> Obj:
    """Return the first line of the session's log."""
    head: Obj = {
        "version": session.world.dialect.log_version,
        "id": session.id,
        "createdAt": session.created_at,
        "cwd": session.cwd,
        "agentPreset": session.preset,
    }
    if session.world.dialect.log_version == 0:
        head["seedLength"] = session.seeded
    else:
        head["isSeeded"] = session.seeded > 0
    if session.parent is not None:
        head["parentSession"] = session.parent
    if session.origin is not None:
        head["origin"] = session.origin
    return head


def values(session: LiveSession) -> Obj:
    """Return the projections of a session."""
    common: Obj = {
        "title": session.title,
        "goal": None,
        "tokenUsage": {"uncachedInputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0},
        "contextPressure": {},
        "contextBreakdown": {"systemTokens": 0, "toolsTokens": 0, "messageTokens": 0},
        "sessionStats": {
            "turns": session.turns, "steps": session.requests, "llmMs": 0, "toolMs": 0, "ttftMs": 0, "ttftSteps": 0,
            "decodeMs": 0, "decodeTokens": 0,
        },
        "subagentTiming": {"settledMs": 0},
        "subagent": None,
        "todos": None,
        "plan": {"active": False, "pending": False},
        "sessionListMetadata": {"blank": session.blank, "lastPromptAt": session.last_prompt_at},
        "imageLimits": IMAGE_LIMITS,
    }  # fmt: skip
    if session.world.dialect.log_version == 0:
        options = [{"value": name, "name": name} for name in PERMISSIONS]
        return common | {"permissions": {"options": options, "currentValue": "workspace-write"}}
    return common | {
        "permissions": {"currentValue": "workspace-write"},
        "inbox": session.inbox,
        "turnOutline": [],
        "agentPreset": session.preset,
        "userQuestions": {"active": [], "settled": []},
        "workingDirectory": session.cwd,
        "subagentCatalog": [],
        "modelSelection": session.model_selection,
    }


def projections(session: LiveSession) -> Obj:
    """Return the projections with the seq they stand for: exact for an attached session, stale for a cold one."""
    as_of = session.cursor if session.attached else session.cached_as_of
    dated: Obj = {"asOfSeq": as_of, "values": values(session)}
    if session.world.dialect.has_projections:
        return {"kind": "sequenced" if session.attached else "cached", **dated}
    return dated


def summary(session: LiveSession) -> Obj:
    """Return the session's row of the list."""
    row: Obj = {"sessionId": session.id, "updatedAt": session.updated_at}
    if session.world.dialect.has_projections:
        row |= {"agentAvailable": session.attached, "formatStatus": "current"}
    row |= {"running": session.running, "blank": session.blank}
    if session.parent is not None:
        row["parentSessionId"] = session.parent
    if session.origin is not None:
        row["origin"] = session.origin
    row["cwd"] = session.cwd
    if not session.world.dialect.has_projections:
        row["agentPreset"] = session.preset
    return row | {"projections": projections(session)}
