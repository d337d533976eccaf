"""Who may do what: tenants, the principals in them, their keys, and what a string stands for.

`Tenants` makes and finds tenants; `Keys` makes, lists, revokes and recognises keys, `Tokens` recognises those of other
issuers; `Identities` gives every user, agent and session its uuid. A `Principal` is who a request comes from.
"""
