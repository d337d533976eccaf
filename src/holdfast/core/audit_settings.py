"""The settings of the audit."""

from pathlib import Path

from pydantic import Field

from holdfast.core.settings import Count, HttpAddress, Names, SettingsSection


class AuditSettings(SettingsSection):
    """The audit: who called and changed what."""

    enabled: bool = Field(default=True, description="record calls of tools, and changes of access and settings")
    keep_arguments: Names = Field(
        default=(),
        description="tools whose arguments are kept, such as `github_*`, or `*` for all; of others, only a salted hash "
        "is kept",
    )
    redact: Names = Field(
        default=("*password*", "*passwd*", "*secret*", "*token*", "*api_key*", "*apikey*", "authorization", "cookie"),
        description="names of arguments that are never kept, at any depth",
    )
    retention_days: Count = Field(
        default=400, description="days to keep entries; they are dropped by whole months, so at most a month later"
    )
    publish_minutes: Count = Field(
        default=15, description="minutes between two publications of the ends of the chains, which prove their contents"
    )
    publish_file: Path | None = Field(
        default=None, description="file to which the ends of the chains are appended, on a disk that others control"
    )
    publish_url: HttpAddress = Field(default=None, description="webhook to which the ends of the chains are posted")
