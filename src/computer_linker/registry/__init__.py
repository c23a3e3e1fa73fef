"""What an operation is, and everything derived from that one definition. Operations import what they are made of from here."""

from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.registry import shapes
from computer_linker.registry.context import Context
from computer_linker.registry.operation import Example, Operation, operation

__all__ = ["Capability", "Context", "Effect", "Example", "Model", "Operation", "operation", "shapes"]
