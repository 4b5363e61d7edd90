"""The tenth bridge: a private chat in the operator's terminal, or with a script over pipes.

:mod:`.screen` is for a person, :mod:`.script` for one message or one message a line. Both are ordinary channels: what
they accept and send goes through the same intake and delivery as every platform's.
"""
