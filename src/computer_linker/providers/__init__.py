"""Know-how built on facets or on programs."""
