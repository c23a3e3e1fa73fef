"""Another machine as a computer: every facet call goes over a link, and that machine has the last word."""

from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.computer.remote.link import Answer, Link, Offer, OfferedScope

__all__ = ["Answer", "Link", "Offer", "OfferedScope", "RemoteComputer"]
