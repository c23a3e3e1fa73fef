"""Languages of a workspace by file count, and its configuration files."""

from collections import Counter

from computer_linker.providers.symbols.languages import language_of

_OTHER = {
    ".md": "markdown", ".rst": "restructuredtext", ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml":
    "toml", ".html": "html", ".css": "css", ".scss": "css", ".sql": "sql", ".vue": "vue", ".svelte": "svelte",
    ".dart": "dart", ".ex": "elixir", ".exs": "elixir", ".hs": "haskell", ".clj": "clojure", ".r": "r", ".jl":
    "julia", ".zig": "zig", ".tf": "terraform", ".proto": "protobuf", ".ipynb": "notebook", ".m":
    "objective-c", ".pl": "perl",
}  # fmt: skip

CONFIG_NAMES = frozenset(
    """
    package.json pnpm-workspace.yaml tsconfig.json jsconfig.json vite.config.ts vite.config.js
    webpack.config.js next.config.js eslint.config.js .eslintrc.json .prettierrc pyproject.toml setup.py
    setup.cfg requirements.txt tox.ini pytest.ini mypy.ini ruff.toml uv.lock poetry.lock Pipfile Cargo.toml
    go.mod go.work pom.xml build.gradle build.gradle.kts settings.gradle CMakeLists.txt Makefile meson.build
    justfile Taskfile.yml Gemfile Rakefile composer.json Package.swift build.sbt mix.exs Dockerfile
    docker-compose.yml compose.yaml .editorconfig .pre-commit-config.yaml .gitlab-ci.yml Jenkinsfile
    turbo.json nx.json lerna.json deno.json bunfig.toml
    """.split()
)


def languages(paths: list[bytes]) -> list[tuple[str, int]]:
    """Languages with their file counts, the most frequent first."""
    counts: Counter[str] = Counter()
    for raw in paths:
        path = raw.decode("utf-8", "replace")
        language = language_of(path)
        dot = path.rfind(".")
        name = language.name if language is not None else _OTHER.get(path[dot:].lower()) if dot >= 0 else None
        if name is not None:
            counts[name] += 1
    return counts.most_common(12)


def config_files(paths: list[bytes]) -> list[str]:
    """Known configuration files at the top and one folder below."""
    shown = [path.decode("utf-8", "replace") for path in paths if path.count(b"/") <= 1]
    return sorted(
        (path for path in shown if path.rsplit("/", 1)[-1] in CONFIG_NAMES), key=lambda path: (path.count("/"), path)
    )[:50]
