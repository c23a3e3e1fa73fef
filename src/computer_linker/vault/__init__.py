"""Secrets that programs use and never read: their storage, their encodings, and the masking of text by them."""
