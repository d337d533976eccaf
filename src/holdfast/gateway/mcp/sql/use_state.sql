-- Notes that a state was used, unless it was before, and forgets some of those that have expired: there are as few as people allow calls.
with expired as (
  delete from used_state u
  using (select nonce from used_state where tenant_id = $1 and expires_at <= holdfast.now() limit 100 for update skip locked) old
  where u.tenant_id = $1 and u.nonce = old.nonce
)
insert into used_state (tenant_id, nonce, expires_at) values ($1, $2, $3) on conflict do nothing
