-- One process at a time; the lock ends with the transaction, so that it works through a pooler.
select pg_advisory_xact_lock($1)
