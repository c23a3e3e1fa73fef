"""The small project that the examples of operations speak of."""

import json
import subprocess
from pathlib import Path


def make_project(root: Path) -> None:
    """The small project that examples speak of."""
    files = {
        "notes.txt": "first line\nsecond line\nthird line\n",
        "README.md": "# Example\n\nA small project.\n",
        "config.json": '{"debug": false}\n',
        "src/main.py": "from greet import greet\n\n\ndef main() -> None:\n    print(greet('world'))  # TODO: more\n",
        "src/greet.py": "def greet(name: str) -> str:\n    return f'Hello, {name}!'\n",
        "src/app.py": "class App:\n    def run(self) -> None:\n        print('TODO')\n",
        "docs/guide.md": "# Guide\n",
        "drafts/idea.txt": "an idea\n",
        "drafts/old.txt": "an old idea\n",
        "old.txt": "old\n",
        "package.json": json.dumps({"name": "example", "scripts": {"test": "echo ok", "build": "echo built"}}),
        ".gitignore": "build/\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-c", "user.name=Example", "-c", "user.email=example@example.com", "-C", str(root)]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, *words], check=True, timeout=30)
    for key, value in (("user.name", "Example"), ("user.email", "example@example.com")):
        subprocess.run([*git, "config", key, value], check=True, timeout=30)
    (root / "notes.txt").write_text("first line\nsecond line\nthird line\nfourth line\n")
