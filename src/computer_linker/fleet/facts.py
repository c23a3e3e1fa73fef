"""What a machine tells of itself to its fleet: system, architecture and which well-known programs it has."""

import platform
import shutil

from computer_linker.fleet.settings import Facts

PROGRAMS = (
    "ansible", "bash", "bwrap", "cargo", "clang", "claude", "cmake", "codex", "curl", "docker", "dotnet", "ffmpeg", "gcc",
    "git", "go", "gradle", "helm", "java", "kubectl", "make", "mvn", "node", "npm", "nvidia-smi", "php", "pnpm", "podman",
    "psql", "python3", "rg", "ruby", "rustc", "rsync", "sqlite3", "ssh", "systemctl", "terraform", "tesseract", "tmux", "uv",
    "yarn",
)  # fmt: skip


def machine_facts() -> Facts:
    """The facts, as queries ask for them."""
    return Facts(
        os=platform.system().lower(),
        arch=platform.machine().lower(),
        has=[name for name in PROGRAMS if shutil.which(name) is not None],
    )
