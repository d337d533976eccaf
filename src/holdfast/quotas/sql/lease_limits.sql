-- Leases tokens and slots, and gives back those that were not used, for many limits in one round trip: holdfast.lease_limits
select place, granted, retry_after from holdfast.lease_limits($1, $2, $3, $4::text::jsonb)
