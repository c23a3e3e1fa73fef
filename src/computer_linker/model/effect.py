"""The kind of side effect of an operation, and what is known of it afterwards."""

from enum import StrEnum
from typing import Literal


class Effect(StrEnum):
    """`observe` changes nothing, `change` changes files, processes or state, `act` uses the person's desktop."""

    OBSERVE = "observe"
    CHANGE = "change"
    ACT = "act"


Known = Literal["confirmed", "partial", "unverifiable", "suspected_noop"]
"""What is known of a side effect; `confirmed` only after reading it back."""
