"""References to elements: bound to an element's identity, never reused, refused when it has changed."""
