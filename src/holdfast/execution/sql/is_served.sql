-- Whether a worker that serves a tool was seen in the last fifteen seconds.
select exists (
  select from worker_presence
  where tenant_id = $1 and seen_at > holdfast.now() - interval '15 seconds' and $2::text = any(skills)
)
