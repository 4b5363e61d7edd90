"""Every word a person reads, in Chinese and English, by key. A leaf: imports nothing of ours.

Texts live in ``zh.toml`` and ``en.toml``; :class:`Key` names each of them. Parity of keys and placeholders is a test.
"""

from i18n.catalog import Language, Words
from i18n.keys import Key

__all__ = ["Key", "Language", "Words"]
