-- The keys that sign who calls, oldest first, and in how many seconds each begins to sign: negative if it has begun.
select kid, public_key, sealed, seal_id, created_at, created_by, active_from, extract(epoch from active_from - holdfast.now())::float8 as seconds
from identity_key order by active_from, created_at, kid
