"""What back ends learn about the caller of a tool: signed headers, tokens of OAuth, or nothing.

`Identities` adds to each request what the source of its tool says. Tokens are kept in memory, never in rows.
"""
