-- Marks a request state as used, unless it was used before, and deletes up to 100 expired ones.
-- There are few of them: one for each approval that a person answers.
with expired as (
  delete from used_state u
  using (select nonce from used_state where tenant_id = $1 and expires_at <= holdfast.now() limit 100 for update skip locked) old
  where u.tenant_id = $1 and u.nonce = old.nonce
)
insert into used_state (tenant_id, nonce, expires_at) values ($1, $2, $3) on conflict do nothing
