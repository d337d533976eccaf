"""What agents can do.

A skill is instructions that an agent loads when it needs them; a tool is something it can call. `Skills` and `Tools`
store them, `Catalogs` says what each agent may use, `Finding` finds them, and `sources` brings tools from elsewhere.
"""
