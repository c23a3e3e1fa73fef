"""The backends of other systems: they load anywhere, do nothing until used, and say that they are unproven."""

import importlib
import pkgutil

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local import macos, windows
from computer_linker.computer.local.macos.desktop import provide_macos
from computer_linker.computer.local.windows.desktop import provide_windows


@pytest.mark.parametrize("package", [macos, windows])
def test_every_module_loads_without_its_system(package: object) -> None:
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):  # type: ignore[attr-defined]  # a package
        importlib.import_module(module.name)


@pytest.mark.parametrize("provide", [provide_macos, provide_windows])
def test_nothing_is_claimed_to_be_proven(provide: object) -> None:
    computer = Computer()
    provide(computer)  # type: ignore[operator]  # one of the two functions
    states = computer.capabilities().facets
    present = {name for name, state in states.items() if state.state == "present"}
    assert present - {"facts"} == {"screen", "pointer", "keyboard", "windows", "clipboard"}
    assert not any(states[name].is_proven for name in present)
    assert all(state.reason for state in states.values() if state.state != "present")
