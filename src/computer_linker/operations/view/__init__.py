"""view.*: what a command changed, held apart until it is kept or dropped."""
