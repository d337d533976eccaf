-- Lets one process at a time continue. The lock ends with the transaction, so it works through a pooler.
select pg_advisory_xact_lock($1)
