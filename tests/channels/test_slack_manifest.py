"""The app manifest: what Slack takes, every command of ours, and nothing it keeps to itself."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from bridges.cli import main
from bridges.cli.slack_manifest import BUILT_IN, EVENTS, manifest
from bridges.text.slack_parse import SCOPES, with_slash
from commands.catalog import COMMANDS, KNOWN
from commands.model import Gate, MenuEntry
from commands.recognise import Recognised, recognise
from i18n import Language, Words

PUBLIC = [command for command in COMMANDS.values() if command.gate is not Gate.OWNER]


@pytest.mark.parametrize("language", Language)
def test_the_commands_are_those_of_the_table(language: Language) -> None:
    result = CliRunner().invoke(main, ["slack", "manifest", "--language", language.value, "--name", "Ops"])
    assert result.exit_code == 0, result.output
    words = Words(language)
    written = json.loads(result.output)
    slashes = {each["command"]: each for each in written["features"]["slash_commands"]}
    assert list(slashes) == [f"/{command.name}" for command in PUBLIC if command.name not in BUILT_IN]
    for command in PUBLIC:
        if command.name not in BUILT_IN:
            slash = slashes[f"/{command.name}"]
            assert slash["description"] == words(command.summary)
            assert slash.get("usage_hint") == (words(command.parameter) if command.parameter else None)
    assert written["display_information"]["name"] == written["features"]["bot_user"]["display_name"] == "Ops"


def test_history_is_registered() -> None:
    assert "/history" in json.dumps(manifest("x", [MenuEntry("history", "Show it", None)]))


def test_a_command_of_slacks_own_is_left_out_and_reached_by_its_mark() -> None:
    written = json.dumps(manifest("x", [MenuEntry("status", "Show it", None)]))
    assert "/status" not in written
    assert recognise(with_slash("!status", KNOWN), KNOWN) == Recognised("status")


def test_slack_takes_no_more_than_fifty_and_each_of_them() -> None:
    many = [MenuEntry(f"name{number}", "Words", None) for number in range(60)]
    slashes = manifest("x", many)["features"]["slash_commands"]
    assert isinstance(slashes, list)
    assert len(slashes) == 50
    assert len(PUBLIC) <= 50, "some commands of ours are no longer registered"
    assert all(re.fullmatch(r"[a-z0-9_-]{1,31}", command.name) for command in PUBLIC)


def test_what_the_app_must_be_allowed() -> None:
    written = manifest("x", [])
    assert written["settings"]["socket_mode_enabled"] is True
    assert {"app_mentions:read", "chat:write", "commands", "files:read", "im:history", "im:read"} <= set(SCOPES)
    for event in EVENTS[1:]:
        kind = event.removeprefix("message.")
        assert f"{kind}:history" in SCOPES, "Slack sends the event only with this scope"
