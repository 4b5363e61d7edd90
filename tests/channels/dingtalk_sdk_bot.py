"""The SDK as its vendor ships it, as a bot that echoes; it blocks its loop, so it has a process of its own."""

from __future__ import annotations

import os

import dingtalk_stream  # type: ignore[import-untyped]  # has no types


class Echo(dingtalk_stream.ChatbotHandler):  # type: ignore[misc]  # has no types
    async def process(self, message: dingtalk_stream.CallbackMessage) -> tuple[int, str]:
        incoming = dingtalk_stream.ChatbotMessage.from_dict(message.data)
        self.reply_text(f"echo {incoming.text.content.strip()}", incoming)
        return dingtalk_stream.AckMessage.STATUS_OK, "OK"


credential = dingtalk_stream.Credential(os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"])
client = dingtalk_stream.DingTalkStreamClient(credential)
client.register_callback_handler(dingtalk_stream.ChatbotMessage.TOPIC, Echo())
client.start_forever()
