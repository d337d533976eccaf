-- Keeps a claim, unless its lease has run out; it holds the conversation when no claim before it is alive.
update turn_claim set leased_until = holdfast.now() + $4
where tenant_id = $1 and root = $2 and number = $3 and leased_until > holdfast.now()
returning interrupted, not exists (
  select from turn_claim before
  where before.tenant_id = $1 and before.root = $2 and before.number < $3 and before.leased_until > holdfast.now()) as held
