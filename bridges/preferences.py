"""What a chat chose for itself or its bot, as commands see it."""

from __future__ import annotations

from bridges.bot import RunningBot
from commands.model import ChatKey, Place, SenderId
from i18n import Language


class StoredPreferences:
    """See :class:`commands.model.Preferences`."""

    def __init__(self, bot: RunningBot) -> None:
        self._bot = bot

    async def place(self, chat: ChatKey) -> Place:
        """See :meth:`Preferences.place`."""
        return await self._bot.place(chat)

    async def switch(self, chat: ChatKey, folder: str) -> None:
        """See :meth:`Preferences.switch`."""
        await self._bot.state.bots.switch_workspace(self._bot.key, folder, unpin=chat)

    async def pin(self, chat: ChatKey, folder: str | None) -> None:
        """See :meth:`Preferences.pin`."""
        await self._bot.state.chats.pin_workspace(chat, folder)

    async def preset(self, chat: ChatKey) -> str | None:
        """See :meth:`Preferences.preset`."""
        return (await self._bot.state.chats.settings(chat)).preset

    async def choose_preset(self, chat: ChatKey, preset: str | None) -> None:
        """See :meth:`Preferences.choose_preset`."""
        await self._bot.state.chats.set_preset(chat, preset)

    async def choose_language(self, chat: ChatKey, language: Language) -> None:
        """See :meth:`Preferences.choose_language`."""
        await self._bot.state.chats.set_language(chat, language)


class StoredAdmissions:
    """See :class:`commands.model.Admissions`."""

    def __init__(self, bot: RunningBot) -> None:
        self._bot = bot

    async def approve(self, code: str) -> SenderId | None:
        """See :meth:`Admissions.approve`."""
        pairing = await self._bot.state.pairings.approve(code, bot=self._bot.key)
        return None if pairing is None else pairing.sender
