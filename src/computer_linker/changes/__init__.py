"""File changes of an operation: their preview for an approver, and the state an approval is bound to."""
