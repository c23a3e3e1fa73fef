"""Documents as their readers see them: recognised by content, decoded in a sandboxed process, cached by digest."""
