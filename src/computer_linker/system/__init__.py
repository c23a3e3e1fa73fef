"""What differs by system below everything else: descriptors, peers of the private channel, processes by id, locks, syncing.

`linux.py`, `macos.py` and `windows/` have the same functions. The stdio shim imports this while a client waits, so they import
no more than they need. What a computer can do, by contrast, is in `computer/local/`.

`os` is the standard library's module, on Windows with what it lacks there (`windows/calls.py`): code that works by descriptors
imports it from here and is the same on every system.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    SystemName = Literal["linux", "darwin", "windows"]

if sys.platform == "win32":
    from computer_linker.system import windows as _this
    from computer_linker.system.windows import calls as os
else:
    import os

    if sys.platform == "darwin":
        from computer_linker.system import macos as _this
    else:
        from computer_linker.system import linux as _this

NAME: "SystemName" = "windows" if sys.platform == "win32" else "darwin" if sys.platform == "darwin" else "linux"
"""The name of this system, for what is chosen by a table or told to others."""
KEPT_VARIABLES = _this.KEPT_VARIABLES
Detached = _this.Detached
Output = _this.Output
attributes = _this.attributes
boot_id = _this.boot_id
channel = _this.channel
comes_from_below = _this.comes_from_below
copy_range = _this.copy_range
cwd_of = _this.cwd_of
descriptor_path = _this.descriptor_path
end_group = _this.end_group
is_elevated = _this.is_elevated
is_program_name = _this.is_program_name
is_running = _this.is_running
link_descriptor = _this.link_descriptor
lock = _this.lock
make_private_folders = _this.make_private_folders
peer_ids = _this.peer_ids
process_name = _this.process_name
program_names = _this.program_names
refused_name = _this.refused_name
relay = _this.relay
remove_attribute = _this.remove_attribute
rename_new = _this.rename_new
set_attribute = _this.set_attribute
slashed = _this.slashed
started_at = _this.started_at
sync = _this.sync
sync_data = _this.sync_data
try_lock = _this.try_lock
unlock = _this.unlock
wait_unreaped = _this.wait_unreaped
write_all = _this.write_all

__all__ = [
    "KEPT_VARIABLES", "NAME", "Detached", "Output", "attributes", "boot_id", "channel", "comes_from_below", "copy_range",
    "cwd_of", "descriptor_path", "end_group", "is_elevated", "is_program_name", "is_running", "link_descriptor", "lock",
    "make_private_folders", "os", "peer_ids", "process_name", "program_names", "refused_name", "relay",
    "remove_attribute", "rename_new", "set_attribute", "slashed", "started_at", "sync", "sync_data", "try_lock",
    "unlock", "user_name", "wait_unreaped", "write_all",
]  # fmt: skip


def user_name(uid: int) -> str:
    """The name of a user; the number where it has none, or where the system has no table of users."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return os.environ.get("USERNAME") or str(uid)
