"""Views: a program's changes of a scope's folders, held apart until they are kept or dropped."""
