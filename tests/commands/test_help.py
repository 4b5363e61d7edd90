"""``/help`` derives from the one table."""

from __future__ import annotations

import re

import pytest

from commands.catalog import COMMANDS
from i18n import Language
from tests.commands.rig import Rig, ScriptedHost


@pytest.mark.parametrize("language", Language)
async def test_help_has_a_line_for_every_command(language: Language) -> None:
    result = await Rig(ScriptedHost([]), language=language, session=None).ask("/help")
    lines = "".join(result.segments).splitlines()[2:]
    assert [re.match(r"/(\w+)", line)[1] for line in lines] == list(COMMANDS)  # type: ignore[index] # no match: a failure
    assert re.search(r"/history .*3.*5", lines[0])
