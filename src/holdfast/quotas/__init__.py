"""Rate limits and spending budgets of tenants, users, agents, keys and tools, shared by all nodes."""
