"""Scripted models on loopback, in place of the ones that real agent programs talk to."""
