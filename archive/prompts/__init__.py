"""Prompts, each a page of its own."""
