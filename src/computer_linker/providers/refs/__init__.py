"""References to elements: bound to what an element is, never reused, refused when it is something else by now."""
