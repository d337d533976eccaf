"""The audit: who called and changed what, with which outcome.

`Audit` records entries (`AuditEntry`) and finds them. `writer` commits the entries of many callers together, `sealer`
moves them into a chain of hashes, and `chain` verifies it: a later change, removal or insertion shows. `heads`
publishes the ends of the chains outside of the database, `retention` drops old months, and `gauges` says how far
sealing is behind.
"""
