"""What plain SQL has to know of the settings: how long memories of a session live whose writer does not say.

It holds for the installation, and comes from the process that opened last: a view has no settings of its own.
"""

import logging

from holdfast.core.errors import HoldfastError
from holdfast.core.settings import MemorySettings
from holdfast.postgres.database import Statements
from holdfast.postgres.sql import statements

sql = statements(__name__)
log = logging.getLogger(__name__)


async def tell_settings(system: Statements, settings: MemorySettings) -> None:
    """Write the settings where the views of `functions/spec_names.sql` read them; without them the defaults hold."""
    try:
        await system.run(sql("tell_setting"), "session_lifetime", f"{settings.short_term.ttl_minutes} minutes")
    except HoldfastError as error:  # a server that only reads takes no plain SQL either
        log.warning("plain SQL is not told how long memories of sessions live: %s", error)
