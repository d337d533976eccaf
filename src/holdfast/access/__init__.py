"""Authentication: tenants, principals, API keys, tokens, and the UUIDs of users, agents and sessions.

`Tenants` creates and finds tenants. `Keys` creates, lists, revokes and verifies API keys. `Tokens` verifies the tokens
of other issuers. `Identities` maps the names of users, agents and sessions to UUIDs. A `Principal` is who makes a
request.
"""
