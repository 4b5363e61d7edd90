"""Weixin over the iLink bot API: private chats only, long polling, nine replies to a message."""
