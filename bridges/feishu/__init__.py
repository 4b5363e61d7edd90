"""Feishu and Lark: one bot of a self-built app, over the vendor's long connection. Answers grow in cards."""
