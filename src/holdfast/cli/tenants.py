"""`holdfast tenants`: create and list tenants."""

from holdfast.cli.invocation import group
from holdfast.cli.operation_commands import derive, message, table

app = group("Create and list tenants. No tenant sees the rows of another.")

derive(app, "ls", "list_tenants", table(["name", "created_at", "id"]))
derive(
    app,
    "create",
    "create_tenant",
    message("Created the tenant {name}. `holdfast keys create --tenant {name}` creates a key for it."),
)
