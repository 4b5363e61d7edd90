"""What a person can ask of the bot. Knows no platform and does no I/O but through what it is handed.

May import ``archive``, ``harness_client`` and ``i18n``. Start at :mod:`commands.catalog` (the one table), then
:mod:`commands.history` (the signature command).
"""
