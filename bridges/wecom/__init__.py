"""The WeCom AI bot: one WebSocket for messages, replies that grow, and messages of the bot's own accord."""
