-- The numbers of messages that joined a run before it began, beside its trigger; null: none may join.
alter table runs add column merged bigint[];
-- How far the conversation was when a process took the run: it is shown all that was said before.
alter table runs add column claimed_revision bigint;
create index run_merged on runs (tenant_id, root, trigger_seq) where merged is not null;
