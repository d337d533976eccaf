-- Renews the leases of the shares that this process relays, and takes free shares, each at a new epoch.
update relay_lease set
  epoch = case when holder is distinct from $1 or leased_until <= holdfast.now() then epoch + 1 else epoch end,
  holder = $1, leased_until = holdfast.now() + $2::interval
where holder = $1 or leased_until <= holdfast.now()
returning share, epoch
