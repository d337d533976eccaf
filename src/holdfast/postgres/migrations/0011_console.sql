-- What the console asks for.

-- The few runs that failed beside any number that are done.
create index run_by_state on runs (tenant_id, state, id);

-- What a memory took the place of; few memories took any.
create index memory_by_successor on memory (tenant_id, scope, owner, superseded_by) where superseded_by is not null;
