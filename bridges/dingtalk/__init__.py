"""The DingTalk bot in stream mode: the SDK's frames and handlers, a connection and calls of our own."""
