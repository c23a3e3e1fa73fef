"""Which system this is, asked once; each system's folder may then assume its own."""

from computer_linker.computer.base import Computer


def this_computer() -> Computer:
    """The computer this service runs on, with the facets that work here."""
    from computer_linker.computer.local.portable.files import LocalFiles

    computer = Computer()
    computer.files = LocalFiles()
    return computer
