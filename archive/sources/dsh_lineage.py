"""Which dsh sessions belong to a workspace (spec ARCHIVE 3.5).

A root and an ordinary fork belong where they ran. A subagent belongs where its chain of parents ends, whatever
directory it worked in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from archive.model import Code, Lineage, Notice, Parentage
from archive.sources.native import same_directory
from harness_client.types import SessionId


@dataclass(frozen=True, slots=True)
class Kin:
    """One session among its relatives."""

    session: SessionId
    parent: SessionId | None
    subagent: bool
    cwd: str

    @property
    def lineage(self) -> Lineage:
        """What the archive keeps of this."""
        if self.subagent:
            return Lineage(self.parent, Parentage.SUBAGENT)
        return Lineage(self.parent, Parentage.FORK if self.parent else None)


def members(kin: Iterable[Kin], workspace: Path) -> tuple[set[SessionId], tuple[Notice, ...]]:
    """Return the sessions of a workspace, and a notice for each of its subagents without a traceable root."""
    family = {one.session: one for one in kin}
    verdicts: dict[SessionId, bool | None] = {}
    for session in family:
        _settle(session, family, verdicts, workspace)
    inside = {session for session, verdict in verdicts.items() if verdict}
    lost = [one for session, one in family.items() if verdicts[session] is None and same_directory(one.cwd, workspace)]
    return inside, tuple(Notice(Code.LINEAGE_BROKEN, one.session) for one in lost)


def _settle(
    session: SessionId, family: dict[SessionId, Kin], verdicts: dict[SessionId, bool | None], workspace: Path
) -> None:
    """Climb from a session to the first relative whose place is known; all passed on the way share it.

    True: inside, False: elsewhere, None: the chain leads nowhere or in a circle.
    """
    path: list[SessionId] = []
    here: SessionId | None = session
    verdict: bool | None = None
    while here in family:
        if here in verdicts:
            verdict = verdicts[here]
            break
        verdicts[here] = None  # until we know better; a circle comes back to it
        path.append(here)
        relative = family[here]
        if not relative.subagent:
            verdict = same_directory(relative.cwd, workspace)
            break
        here = relative.parent
    verdicts.update(dict.fromkeys(path, verdict))
