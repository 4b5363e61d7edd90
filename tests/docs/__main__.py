"""Write the generated parts of the pages anew: ``python -m tests.docs``."""

from __future__ import annotations

from i18n import Language
from tests.docs.pages import folder, names
from tests.docs.parts import renewed


def main() -> None:
    for language in Language:
        for name in names(language):
            page = folder(language) / name
            page.write_text(renewed(page.read_text("utf-8"), language), "utf-8")


if __name__ == "__main__":
    main()
