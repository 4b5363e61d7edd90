"""History pages recorded from real hosts, as bodies by name; the name begins with the generation."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "data" / "harness"

PAGES = {
    f"{path.parent.name}/{path.name.removesuffix('.json')}": path.read_bytes()
    for path in sorted(_FOLDER.glob("*/*.json"))
    if b'"hasMore"' in path.read_bytes()[-20_000:] and "transcript" not in path.name
}
