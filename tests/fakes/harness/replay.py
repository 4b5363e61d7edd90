"""Recorded logs of real hosts, served by the fake over a real socket under the names of their recordings."""

from __future__ import annotations

import json
from pathlib import Path

from harness_client.types import Generation
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.host import FakeHarness
from tests.fakes.harness.session import Session

RECORDINGS = Path(__file__).parents[2] / "data" / "harness"


def recorded(generation: Generation, name: str) -> object:
    """Return one recorded file, such as ``01-simple-qa.page1`` or ``frames/session-queue``."""
    value: object = json.loads((RECORDINGS / generation.value / f"{name}.json").read_text(encoding="utf-8"))
    return value


def names(generation: Generation) -> list[str]:
    """Return the names of the recorded sessions."""
    files = (RECORDINGS / generation.value).glob("*.json")
    return sorted({file.name.split(".page")[0].removesuffix(".json") for file in files} - {"rpc-transcript"})


def pages(generation: Generation, name: str) -> list[Obj]:
    """Return the recorded values of a session's pages, newest first."""
    folder = RECORDINGS / generation.value
    files = sorted(folder.glob(f"{name}.page*.json")) or [folder / f"{name}.json"]
    return [json.loads(file.read_text(encoding="utf-8"))["result"]["value"] for file in files]


def load(host: FakeHarness, name: str) -> Session:
    """Give the host a session that holds a recorded log as it was, views included; the session's id is its name."""
    generation = host.dialect.generation
    session = host.session(name)
    session.forget()
    for page in reversed(pages(generation, name)):
        rows = page["events" if generation is Generation.LEGACY else "records"]
        assert isinstance(rows, list)
        for row in rows:
            session.replay(row["event"], row.get("view"))
    return session


class ReplayHost(FakeHarness):
    """A host that holds every recorded session of its generation, by name, and plays recorded frames."""

    def __init__(self, generation: Generation = Generation.LEGACY) -> None:
        super().__init__(generation)
        for name in names(generation):
            load(self, name)

    def play(self, name: str) -> None:
        """Send one recorded file of frames to whoever opens ``events.mux`` from now on (legacy)."""
        frames = recorded(self.dialect.generation, f"frames/{name}")
        if isinstance(frames, dict):
            frames = [frames]
        assert isinstance(frames, list)
        self.recorded_frames.extend(frames)
