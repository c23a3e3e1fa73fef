"""What differs by system below everything else: peers of sockets, processes by id, paths of descriptors, syncing.

`linux.py` and `macos.py` have the same functions. The stdio shim imports this while a client waits, so they import no more than
they need. What a computer can do, by contrast, is in `computer/local/`.
"""

import sys

if sys.platform == "darwin":
    from computer_linker.system.macos import (
        attributes,
        comes_from_below,
        copy_range,
        descriptor_path,
        is_running,
        link_descriptor,
        peer_ids,
        process_name,
        remove_attribute,
        set_attribute,
        started_at,
        sync,
        sync_data,
        wait_unreaped,
    )
else:
    from computer_linker.system.linux import (
        attributes,
        comes_from_below,
        copy_range,
        descriptor_path,
        is_running,
        link_descriptor,
        peer_ids,
        process_name,
        remove_attribute,
        set_attribute,
        started_at,
        sync,
        sync_data,
        wait_unreaped,
    )

__all__ = [
    "attributes", "comes_from_below", "copy_range", "descriptor_path", "is_running", "link_descriptor", "peer_ids",
    "process_name", "remove_attribute", "set_attribute", "started_at", "sync", "sync_data", "user_name", "wait_unreaped",
]  # fmt: skip


def user_name(uid: int) -> str:
    """The name of a user; the number where it has none, or where the system has no table of users."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)
