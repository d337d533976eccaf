"""Types of fields and parameters that several operations share.

The document states each constraint from the constant that the engine checks with. Lengths and ranges are msgspec's
own constraints. If the engine's error says more than "does not match", the constraint is only `documented`: it is in
the document, and the engine checks it.
"""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.access.tenants import NAME as TENANT_NAME
from holdfast.agents.definitions import NAME as AGENT_NAME
from holdfast.agents.events import CURSOR as EVENT_CURSOR
from holdfast.authorization import OwnerName
from holdfast.bus.topics import NAME as TOPIC_NAME
from holdfast.conversations.contexts import FORM as CONTEXT_FORM
from holdfast.core.cursors import CURSOR
from holdfast.execution.secrets import HOST_NAME
from holdfast.execution.secrets import NAME as SECRET_NAME
from holdfast.skills.history import CURSOR as HISTORY_CURSOR
from holdfast.skills.registry_columns import SKILL_NAME, TOOL_NAME
from holdfast.skills.search import MAX_QUERY
from holdfast.skills.sources.settings import MAX_RELOAD, MIN_RELOAD
from holdfast.skills.sources.settings import NAME as SOURCE_NAME
from holdfast.skills.tool import LONGEST_TIMEOUT

MAX_PAGE = 200  # items of most lists
# The server decodes a path before it splits it. So a client encodes these characters of a name twice.
TWICE_ENCODED = msgspec.Meta(
    description="A slash or a percent sign in it is encoded twice: as %252F or %2525.", extra={"encoded_twice": True}
)
LEAST_SECONDS = 1e-6  # the smallest time span above zero
YEARS = r"^(?!000[01]|9999)"  # the first and the last year can overflow in other time zones
# Stricter than the engine, which also tries other addresses.
FILE_ADDRESS = r"file:[A-Za-z0-9_-][A-Za-z0-9_.-]{0,100}(/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,100}){0,9}"
WEB_ADDRESS = r"https?://[A-Za-z0-9]([A-Za-z0-9.-]{0,200}[A-Za-z0-9])?(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~/-]{0,500})?"


def documented(**schema: object) -> msgspec.Meta:
    """Add keywords to the schema of a type in the document. msgspec does not check them."""
    return msgspec.Meta(extra_json_schema=schema)


def matching(pattern: str) -> msgspec.Meta:
    """State in the document that a pattern matches the whole text."""
    return documented(pattern=f"^{pattern}$")


def about(text: str) -> msgspec.Meta:
    """Describe a field or a parameter, in the document and in the help of commands."""
    return msgspec.Meta(description=text)


def present(*names: str) -> list[dict[str, Any]]:
    """Return the `anyOf` schemas that require at least one of these fields. A null field counts as missing."""
    return [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in names]


ShortName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
NotBlank = Annotated[str, documented(minLength=1, pattern=r"[^\s\x1c-\x1f\x85]")]
Moment = Annotated[datetime, documented(format="date-time", pattern=YEARS)]
ZonedMoment = Annotated[Moment, msgspec.Meta(tz=True)]

Importance = Annotated[float, msgspec.Meta(ge=0, le=1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE, description="Maximum number of results.")]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # of a node, a revision, a turn
CallSeconds = Annotated[float, msgspec.Meta(gt=0, le=LONGEST_TIMEOUT)]
RegistryQuery = Annotated[NotBlank, msgspec.Meta(max_length=MAX_QUERY, description="What to search for.")]
RegistryVersion = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
RowVersion = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]

AgentName = Annotated[str, matching(AGENT_NAME)]
ContextText = Annotated[str, matching(CONTEXT_FORM)]
Cursor = Annotated[str, matching(CURSOR)]
EventCursor = Annotated[str, matching(EVENT_CURSOR)]
HistoryCursor = Annotated[str, matching(HISTORY_CURSOR)]
HostName = Annotated[str, matching(HOST_NAME)]
WebAddress = Annotated[str, matching(WEB_ADDRESS)]
DocumentAddress = Annotated[str, matching(rf"({WEB_ADDRESS}|{FILE_ADDRESS})")]
ReloadSeconds = Annotated[float, documented(anyOf=[{"const": 0}, {"minimum": MIN_RELOAD, "maximum": MAX_RELOAD}])]
SecretName = Annotated[str, matching(SECRET_NAME)]
SkillName = Annotated[str, matching(SKILL_NAME)]
SourceName = Annotated[str, matching(SOURCE_NAME)]
TenantName = Annotated[str, matching(TENANT_NAME)]
ToolName = Annotated[str, matching(TOOL_NAME)]
TopicName = Annotated[str, matching(TOPIC_NAME)]  # also of a consumer group

# A session and an agent need a name, a user can have one, and the organization has none.
NamedOwner = Annotated[
    OwnerName,
    documented(
        anyOf=[
            {"properties": {"scope": {"const": "user"}}},
            {
                "properties": {"scope": {"enum": ["session", "agent"]}, "name": {"type": "string"}},
                "required": ["scope", "name"],
            },
            {"properties": {"scope": {"const": "organization"}, "name": {"type": "null"}}, "required": ["scope"]},
        ]
    ),
]
