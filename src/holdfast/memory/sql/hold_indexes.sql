-- Keeps others from making indexes until the transaction ends; false if someone else does.
select pg_try_advisory_xact_lock(7238451907)
