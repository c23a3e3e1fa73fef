"""Cache of the trees of recently used roots, so that a further scan costs only what changed."""

from collections import OrderedDict

from computer_linker.providers.sandbox.boundary import Folder
from computer_linker.providers.sandbox.tree import MAX_FOLDERS, Tree
from computer_linker.system import os

_MAX_ROOTS = 16


class TreeCache:
    """The trees of recently used roots."""

    def __init__(self, max_folders: int = MAX_FOLDERS) -> None:
        self._max_folders = max_folders
        self._trees: OrderedDict[object, Tree] = OrderedDict()
        self._forgotten: list[Tree] = []

    def tree(self, folder: Folder) -> Tree:
        """The folder's tree; a new one is empty until its first scan."""
        root = os.fstat(folder.fd)
        key = (root.st_dev, root.st_ino, folder.rules, folder.above)
        tree = self._trees.get(key)
        if tree is None:
            tree = self._trees[key] = Tree(folder, self._max_folders)
            self._make_room(key)
        self._trees.move_to_end(key)
        return tree

    def sweep(self) -> None:
        """Close evicted trees, which takes milliseconds each."""
        while self._forgotten:
            self._forgotten.pop().close()

    def close(self) -> None:
        """Evict and close everything."""
        self._forgotten.extend(self._trees.values())
        self._trees.clear()
        self.sweep()

    def _make_room(self, newest: object) -> None:
        idle = [
            key for key, tree in self._trees.items() if not tree.running and not tree.lock.locked() and key != newest
        ]
        for key in idle[: max(0, len(self._trees) - _MAX_ROOTS)]:
            self._forgotten.append(self._trees.pop(key))
