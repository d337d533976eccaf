"""Stores settings for plain SQL: the default lifetime of session memories.

The views of plain SQL read it from a table, because SQL has no access to the settings. It is one value for the
installation, from the process that opened last.
"""

import logging

from holdfast.core.errors import HoldfastError
from holdfast.core.settings import MemorySettings
from holdfast.postgres.database import Statements
from holdfast.postgres.sql import statements

sql = statements(__name__)
log = logging.getLogger(__name__)


async def tell_settings(system: Statements, settings: MemorySettings) -> None:
    """Store the settings for the views of `functions/spec_names.sql`, which use defaults if they are missing."""
    try:
        await system.run(sql("tell_setting"), "session_lifetime", f"{settings.short_term.ttl_minutes} minutes")
    except HoldfastError as error:  # a read-only server also refuses inserts by plain SQL
        log.warning("plain SQL is not told how long memories of sessions live: %s", error)
