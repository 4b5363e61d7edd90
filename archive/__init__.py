"""The archive of past questions and answers: native session logs in, pairs, search and summaries out.

May import ``harness_client``. Native sessions are read, never written, migrated or resumed. It speaks codes and data,
never prose.
"""
