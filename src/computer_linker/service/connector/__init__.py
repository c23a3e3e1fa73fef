"""Runs a connector's steps one by one, to find the hop that fails."""
