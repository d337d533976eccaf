-- Whether entries can be added now: adds one, and takes it back. A database that only reads, or whose disk is full, fails here as well.
select holdfast.probe_audit($1)
