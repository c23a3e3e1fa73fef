"""One file an operation of the computer's owner: scope.add is owner/scope/add.py, and `computer-linker scope add`."""
