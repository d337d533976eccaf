"""Loads the app that a command names: `shop.py`, `shop` or `shop:app`."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast.app import App
from holdfast.core.errors import HoldfastError, InvalidInput

NAMES = "file.py, module or module:name"
SUFFIX = ".py"


def load_app(name: str) -> App:
    """Load the app of a file or of a module. Modules in the current folder take precedence."""
    module, colon, attribute = name.partition(":")
    if not module or (colon and not attribute):
        raise InvalidInput(f"{name!r} names no app", next="Write shop.py, shop, or shop:app for `app` in shop.py.")
    loaded = _load_file(Path(module)) if module.endswith(SUFFIX) else _load_module(module)
    return _app_attribute(loaded, module, attribute) if attribute else _only_app(loaded, module)


def _app_attribute(module: ModuleType, name: str, attribute: str) -> App:
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InvalidInput(f"{name} has no {attribute}", next=f"Declare it there: `{attribute} = holdfast.App()`.")
        found = getattr(found, part)
    if not isinstance(found, App):
        raise InvalidInput(f"{name}:{attribute} is not a holdfast.App", why=f"it is a {type(found).__name__}")
    return found


def _only_app(module: ModuleType, name: str) -> App:
    apps = {attribute: value for attribute, value in vars(module).items() if isinstance(value, App)}
    if not apps:
        raise InvalidInput(f"{name} has no app", next="Declare one there: `app = holdfast.App()`.")
    if len({id(app) for app in apps.values()}) > 1:
        raise InvalidInput(
            f"{name} has {len(apps)} apps",
            why=f"they are {', '.join(sorted(apps))}",
            next=f"Name one, such as {name}:{min(apps)}.",
        )
    return next(iter(apps.values()))


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    return _load(name, lambda: importlib.import_module(name))


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}", next="Give its path from the current folder, or its full path.")
    sys.path.insert(0, str(path.parent.absolute()))  # as `python FILE` does

    def load() -> ModuleType:
        # Use the name of the file, so that modules which it imports can import it, unless that name is taken.
        name = path.stem if path.stem not in sys.modules else f"{path.stem} of the app"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return _load(str(path), load)


def _load(name: str, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return load()
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise _load_error(name, error) from error
        raise InvalidInput(
            f"there is no module {name}",
            why="it is neither in the current folder nor installed",
            next="Name a module as an import statement would, or a file with its `.py`.",
        ) from None
    except SystemExit as error:
        raise HoldfastError(
            f"{name} ends the program when it is loaded",
            why=f"it calls sys.exit({error.code!r:.100})",
            next='Move that call below `if __name__ == "__main__":`.',
        ) from error
    except Exception as error:
        raise _load_error(name, error) from error


def _load_error(name: str, error: Exception) -> InvalidInput:
    why = f"{type(error).__name__}: {error}"
    return InvalidInput(f"{name} cannot be loaded", why=why, next="--debug shows where it failed.")
