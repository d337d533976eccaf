-- Takes the lock on creating vector indexes until the end of the transaction. Returns false if another process holds it.
select pg_try_advisory_xact_lock(7238451907)
