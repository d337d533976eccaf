-- Stores the result of a check, unless its claim has expired. The next one is due in $4 seconds (null: never), or as soon as the source has had a
-- rest ($5), if somebody asked for it since the claim.
update source_check set
  due_at = case when due_at = claimed_until then holdfast.now() + $4::float8 * interval '1 second' else due_at end,
  claimed_until = holdfast.now() + $5::float8 * interval '1 second',
  checked_at = holdfast.now(), validators = $6, error = $7, failures = $8
where host_id = $1 and source_id = $2 and claimed_until = $3
