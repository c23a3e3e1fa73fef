"""What an operation is, and everything derived from that one definition."""

from computer_linker.registry import shapes
from computer_linker.registry.context import Context
from computer_linker.registry.operation import Example, Operation, operation

__all__ = ["Context", "Example", "Operation", "operation", "shapes"]
