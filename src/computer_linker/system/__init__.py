"""What differs by system below everything else: peers of sockets, processes by id, paths of descriptors, syncing.

`linux.py` and `macos.py` have the same functions. The stdio shim imports this while a client waits, so they import no more than
they need. What a computer can do, by contrast, is in `computer/local/`.
"""

import sys

if sys.platform == "darwin":
    from computer_linker.system.macos import (
        comes_from_below,
        descriptor_path,
        is_running,
        peer_ids,
        process_name,
        started_at,
        sync,
        sync_data,
    )
else:
    from computer_linker.system.linux import (
        comes_from_below,
        descriptor_path,
        is_running,
        peer_ids,
        process_name,
        started_at,
        sync,
        sync_data,
    )

__all__ = [
    "comes_from_below", "descriptor_path", "is_running", "peer_ids", "process_name", "started_at", "sync", "sync_data",
]  # fmt: skip
