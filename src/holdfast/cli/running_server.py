"""The running server that a command may ask: one that uses the database that the settings name."""

from typing import TYPE_CHECKING

from holdfast.cli.invocation import Invocation
from holdfast.core.config import Config
from holdfast.core.errors import BadSetting, Unavailable

if TYPE_CHECKING:
    from holdfast.server.server_file import ServerFile


def find_server(config: Config) -> "ServerFile | None":
    """The server on the data folder; None where none runs, or where the settings name another database than it uses.

    A server that uses a database of its own is refused where the settings name none: an embedded one would be opened
    beside it, and nobody wants to be told of that.
    """
    from holdfast.server.server_file import ServerFile

    server = ServerFile.read(config.data)
    if server is None or server.database == named_database(config):
        return server
    if config.database.url is None:
        raise BadSetting(
            f"the server on {config.data} uses the database {server.database}, and the settings name none",
            why="without HOLDFAST_DATABASE_URL the database in the data folder is meant",
            next="Set HOLDFAST_DATABASE_URL as the server has it, or choose another folder with --data DIR.",
        )
    return None


def named_database(config: Config) -> str | None:
    """The database that the settings name; None: the one in the data folder."""
    from holdfast.postgres.address import place_of

    return None if config.database.url is None else place_of(config.database.url.get_secret_value())


def say_where(invocation: Invocation, config: Config) -> None:
    """Tell a person that no server is asked, and which database answers instead."""
    named = named_database(config)
    if named is None:
        invocation.output.hint(f"No server runs on {config.data}: asking its database.")
    else:
        invocation.output.hint(f"No server for the database {named} runs on {config.data}: asking the database.")


def no_server(config: Config) -> Unavailable:
    """No server runs that could be asked."""
    named = named_database(config)
    beside = "" if named is None else f" with the database {named}"
    return Unavailable(f"no server runs on {config.data}{beside}", next="Start one with `holdfast up`.")
