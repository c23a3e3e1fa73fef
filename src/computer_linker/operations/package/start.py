"""package.start: start one of a project's scripts and let it run."""

from computer_linker.operations.command.preview import show_script
from computer_linker.operations.command.start import StartedProcess, StartOptions, start_prepared
from computer_linker.operations.command.view import view_for
from computer_linker.operations.package.run import RUN_SCRIPTS, ScriptInput, script_line
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.processes.request import request_of
from computer_linker.registry import Capability, Context, Effect, Example, operation


@operation(
    "package.start",
    did="started",
    needs={Capability.FS_READ},
    needs_any=RUN_SCRIPTS,
    effect=Effect.CHANGE,
    boundary="sandboxed",
    destructive=True,
    awaits_intent=True,
    shows=show_script,
    runs=lambda input: [input.script, *input.args],
    resolves=script_line,
    examples=[Example("Start the development server.", {"target": ".", "input": {"script": "dev"}}, runs=False)],
)
async def package_start(
    ctx: Context, input: ScriptInput, target: str = ".", options: StartOptions = StartOptions()
) -> StartedProcess:
    """Start a script the folder's own manifest defines and return at once; read and stop it as with command.start."""
    ctx.note(script=input.script, scriptArguments=len(input.args))
    argv = await script_line(ctx, input, target)
    view = view_for(ctx, options.view, argv)
    request = request_of(ctx, target, argv, input.env, pty=options.pty, view=view, any_of=RUN_SCRIPTS)
    prepared = await ctx.use(Preparation).prepare(request)
    return await start_prepared(ctx, prepared, options, view)
