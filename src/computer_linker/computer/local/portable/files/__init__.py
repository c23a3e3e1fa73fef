"""The files facet of this machine, by descriptors beneath held roots."""

from computer_linker.computer.local.portable.files.facet import LocalFiles

__all__ = ["LocalFiles"]
