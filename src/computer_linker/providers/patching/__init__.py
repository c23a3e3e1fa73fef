"""Patches as text: strict unified diffs and literal edits. No file is touched here."""
