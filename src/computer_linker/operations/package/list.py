"""package.list: the scripts a project defines."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.providers.packages.project import read_project
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class PackageScript(Model):
    name: str
    source: Literal["package.json", "pyproject.toml", "Makefile", "justfile"]
    manager: str
    command: Annotated[str | None, Field(description="What the manifest says it stands for.")]


class PackageScripts(Model):
    manager: Annotated[str | None, Field(description="The manager of the first manifest, as its lock file says.")]
    scripts: list[PackageScript]


@operation(
    "package.list",
    did="listed scripts of",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    examples=[Example("List the project's scripts.", {"target": "."}, runs=False)],
)
async def package_list(ctx: Context, target: str = ".") -> PackageScripts:
    """List the scripts that a folder's package.json, pyproject.toml, Makefile and justfile define."""
    project = await read_project(ctx.computer, ctx.path(target))
    ctx.note(scripts=len(project.scripts))
    return PackageScripts(
        manager=project.manager,
        scripts=[
            PackageScript(name=script.name, source=script.source, manager=script.manager, command=script.command)
            for script in project.scripts
        ],
    )
