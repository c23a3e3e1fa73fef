"""package.run: run one of a project's scripts and wait for its end."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.operations.command.preview import show_script
from computer_linker.operations.command.run import CommandOutcome, RunOptions, run_prepared
from computer_linker.operations.command.view import view_for
from computer_linker.providers.packages.manifests import with_arguments
from computer_linker.providers.packages.project import read_project
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.processes.request import request_of
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

RUN_SCRIPTS = frozenset({Capability.COMMAND_RUN, Capability.PACKAGE_RUN})


class ScriptInput(Model):
    script: Annotated[str, Field(min_length=1, max_length=100, description="A name that package.list shows.")]
    args: Annotated[list[str], Field(max_length=256, description="Arguments for the script itself.")] = []
    source: Annotated[
        Literal["package.json", "pyproject.toml", "Makefile", "justfile"] | None,
        Field(description="Which manifest, when several define the name."),
    ] = None
    env: Annotated[dict[str, str], Field(max_length=64)] = {}


async def script_line(ctx: Context, input: ScriptInput, target: str = ".", options: object = None) -> list[str]:
    """The command line that runs the script, by the manager of its manifest."""
    project = await read_project(ctx.computer, ctx.path(target))
    return with_arguments(project.script(input.script, input.source), input.args)


@operation(
    "package.run",
    did="ran",
    needs={Capability.FS_READ},
    needs_any=RUN_SCRIPTS,
    effect=Effect.CHANGE,
    text=shapes.OUTPUT,
    boundary="sandboxed",
    deadline_s=None,
    destructive=True,
    awaits_intent=True,
    shows=show_script,
    runs=lambda input: [input.script, *input.args],
    resolves=script_line,
    examples=[Example("Run the tests.", {"target": ".", "input": {"script": "test"}}, runs=False)],
)
async def package_run(
    ctx: Context, input: ScriptInput, target: str = ".", options: RunOptions = RunOptions()
) -> CommandOutcome:
    """Run a script the folder's own manifest defines, by its manager, under the scope's command policy."""
    ctx.note(script=input.script, scriptArguments=len(input.args))
    argv = await script_line(ctx, input, target)
    view = view_for(ctx, options.view, argv)
    prepared = await ctx.use(Preparation).prepare(
        request_of(ctx, target, argv, input.env, view=view, any_of=RUN_SCRIPTS)
    )
    return await run_prepared(ctx, prepared, options, None, view)
