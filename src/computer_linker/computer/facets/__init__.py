"""The facets of a computer, one Protocol per file."""
