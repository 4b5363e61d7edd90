"""The sixth bridge: one entry, four channels whose replies are plain text.

``NAME.py`` is the channel, ``NAME_*.py`` are its parts: what speaks to the platform, what its events mean, and so on.
"""
