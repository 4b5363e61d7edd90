"""The agent host over HTTP: sessions, history, prompts, questions, for every host generation.

The lowest layer: imports nothing of ours. It speaks codes and data, never prose.

Start at :mod:`harness_client.client` (the one interface), then :mod:`harness_client.transcript` (what a person may
see of an event log) and :mod:`harness_client.window` (bounded backward reading). Every failure is a
:class:`harness_client.errors.HarnessError`.
"""
