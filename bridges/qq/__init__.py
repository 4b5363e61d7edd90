"""The official QQ bot: private chats, groups and guilds, with a few counted replies to every message."""
