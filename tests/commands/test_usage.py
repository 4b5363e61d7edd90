"""What makes no sense is answered with the usage, in the chat's language, and reaches nobody else."""

from __future__ import annotations

import pytest

from commands.catalog import COMMANDS, KNOWN
from commands.model import SenderId, anything
from i18n import Language, Words
from tests.bridges.bench import CHAT, OPEN, Bench
from tests.fakes.harness import FakeHarness

NONSENSE = ("", "x", "one two three", "-1", "１", "/e\u202etc", "--limit")
"""Each command refuses at least one of these, or says itself what is wrong with it."""

OWNER = SenderId(next(iter(OPEN.owners)))


def refused(name: str) -> list[str]:
    return [argument for argument in NONSENSE if not COMMANDS[name].accepts(argument)]


@pytest.mark.parametrize("language", Language)
async def test_every_name_of_every_command_answers_nonsense_with_its_usage(desk: Bench, language: Language) -> None:
    words = Words(language)
    await desk.state.chats.set_language(CHAT, language)
    before = await desk.state.chats.get(CHAT)
    for alias, name in KNOWN.items():
        assert refused(name) or COMMANDS[name].accepts is anything, name
        for argument in refused(name):
            sent = len(desk.channel.sent)
            await desk.say(f"/{alias} {argument}", sender=OWNER)
            assert (await desk.channel.until_sent(sent + 1))[sent] == words(COMMANDS[name].usage)
    assert desk.host.calls == []
    assert await desk.state.chats.get(CHAT) == before


@pytest.mark.parametrize("language", Language)
def test_a_usage_shows_the_command_and_is_its_own(language: Language) -> None:
    words = Words(language)
    usages = [words(command.usage) for command in COMMANDS.values()]
    assert len(set(usages)) == len(COMMANDS)
    assert all(f"/{command.name}" in words(command.usage) for command in COMMANDS.values())


async def test_a_number_waits_for_the_list_it_counts_in(desk: Bench, host: FakeHarness) -> None:
    session = host.session("session-a")
    for text in ("/sessions", "/session 1", "/presets", "/preset 1", "/models", "/model 1", "hello"):
        await desk.say(text)
    texts = await desk.channel.until_sent(7)
    assert "session-a" in texts[1]
    assert not [text for text in texts if "No such list" in text]
    assert "hello" in str(list(session.log))
