"""MCP prompts: the usual workflows, written for the operations of this server."""

from dataclasses import dataclass
from typing import Any

from computer_linker.errors import InvalidRequest

_MAX_ARGUMENT = 4000


@dataclass(frozen=True, slots=True)
class Prompt:
    """One workflow: its arguments with what they are for, those that must be given, and its text."""

    title: str
    description: str
    arguments: dict[str, str]
    text: str
    required: tuple[str, ...] = ("scope",)


_SCOPE = {"scope": "The scope to work in, as get_computer_info lists it."}
PROMPTS: dict[str, Prompt] = {
    "plan": Prompt(
        "Plan a change",
        "Look at a project and plan a change without making it.",
        {**_SCOPE, "task": "What should be changed."},
        "Plan this change in scope {scope}: {task}\n\nRead first: code.context for the project, file.search and "
        "code.search_symbols for what is concerned, file.read for the places themselves. Change nothing. "
        "Answer with the files to "
        "change, in order, what changes in each, how it will be tested, and what is uncertain.",
        ("scope", "task"),
    ),
    "review": Prompt(
        "Review changes",
        "Review what has been changed in a repository.",
        {**_SCOPE, "path": "The repository's folder; the scope's root without it."},
        "Review the changes in scope {scope}, folder {path}. Use git.status and git.diff with that folder as "
        "target, and file.read for "
        "what surrounds a change. Change nothing. Name each problem with file and line, the worst first: "
        "what goes wrong, when, and "
        "what would be right. Say so if you find none.",
    ),
    "fix": Prompt(
        "Fix a problem",
        "Find the cause of a problem, change what is needed, and show that it works.",
        {**_SCOPE, "problem": "What goes wrong, with the error message if there is one."},
        "Fix this in scope {scope}: {problem}\n\nFind the cause with file.search and file.read before "
        "changing anything. Change with "
        "file.patch (ifSha256 from your reading). Run the project's own tests with package.run or "
        "command.run, and read the result. "
        "file.undo takes a change back. Answer with the cause, the change as a diff, and what you ran to check it.",
        ("scope", "problem"),
    ),
    "test": Prompt(
        "Run the tests",
        "Run a project's tests and explain what fails.",
        {**_SCOPE, "path": "The project's folder; the scope's root without it."},
        "Run the tests of scope {scope}, folder {path}. package.list shows the scripts, code.context the "
        "project. Use package.run or "
        "command.run with a fitting timeoutSeconds; command.start and command.read for long ones. Answer "
        "with what ran, how it ended, "
        "and for each failure its cause as far as file.read shows it. Change nothing.",
    ),
    "explain_refusal": Prompt(
        "Explain a refusal",
        "Explain why an operation was refused and what would work.",
        {**_SCOPE, "operationId": "The refused operation; the newest failed one without it."},
        "Explain why operation {operationId} in scope {scope} was refused. Look it up with "
        "history.failed_replay or history.last, and "
        "ask computer.explain about the same operation. Say in plain terms which rule refused it, what is "
        "allowed instead, and which "
        "command the owner could run to allow it. Do not try to get around the refusal.",
    ),
    "tidy_up": Prompt(
        "Tidy up",
        "End what was started and take back what is not needed.",
        dict(_SCOPE),
        "Tidy up scope {scope}. command.list shows what still runs: stop with command.stop what is no longer "
        "needed. git.status shows "
        "files that were left behind; list them and ask before deleting any. history.last shows what was "
        "changed; file.undo takes back "
        "what should not stay. Answer with what you ended, what you left, and why.",
    ),
}  # fmt: skip
_OTHERWISE = {"path": ".", "operationId": "that failed last"}


def listed() -> list[dict[str, Any]]:
    """Every prompt as the protocol lists it."""
    return [
        {
            "name": name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": [
                {"name": argument, "description": text, "required": argument in prompt.required}
                for argument, text in prompt.arguments.items()
            ],
        }
        for name, prompt in PROMPTS.items()
    ]


def filled(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One prompt with its arguments. Raises InvalidRequest for an unknown one, and for a missing or wrong argument."""
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise InvalidRequest(f"There is no prompt {name[:80]!r}. There are {', '.join(PROMPTS)}.")
    for argument, value in arguments.items():
        if argument not in prompt.arguments or type(value) is not str or len(value) > _MAX_ARGUMENT:
            raise InvalidRequest(
                f"The prompt {name} takes the texts {', '.join(prompt.arguments)}.", field=argument[:80]
            )
    missing = [argument for argument in prompt.required if not arguments.get(argument)]
    if missing:
        raise InvalidRequest(f"The prompt {name} needs {' and '.join(missing)}.", field=missing[0])
    values = {argument: arguments.get(argument) or _OTHERWISE.get(argument, "") for argument in prompt.arguments}
    return {
        "description": prompt.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt.text.format_map(values)}}],
    }
