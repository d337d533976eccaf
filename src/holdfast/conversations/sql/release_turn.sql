-- Releases a claim; returns whether another turn or a run waits.
delete from turn_claim where tenant_id = $1 and root = $2 and number = $3
returning exists (
  select from turn_claim other where other.tenant_id = $1 and other.root = $2 and other.number <> $3
) or exists (select from runs r where r.tenant_id = $1 and r.root = $2 and r.finished_at is null) as awaited
