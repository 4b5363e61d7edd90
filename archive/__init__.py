"""The archive of past questions and answers: native session logs in, pairs, search and summaries out.

May import ``harness_client``. Native sessions are read, never written, migrated or resumed. It speaks codes and data,
never prose.

From a log to a file: :mod:`archive.sources` finds sessions and reads them as moments, :mod:`archive.pairs` projects
moments into pairs, :mod:`archive.merge` joins pairs with what is archived, :mod:`archive.files` publishes that in the
form of :mod:`archive.schema`; :mod:`archive.refresh` drives all of it. :mod:`archive.model` names the data.
"""
