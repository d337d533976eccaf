"""Skills and tools of agents.

A skill is instructions that an agent loads when it needs them. A tool is a function that it can call. `Skills` and
`Tools` store them, `Catalogs` determines what each agent may use, `RegistrySearch` searches them, and `sources` imports
tools from documents.
"""
