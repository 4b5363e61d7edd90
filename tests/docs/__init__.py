"""The pages in ``docs/``: what of them is generated, that both languages agree, and that every command in them runs."""
