-- Takes or renews the lease on indexing the tenant's memories. Changes no row while another process holds the lease.
insert into memory_indexing (tenant_id, holder, leased_until) select $1, $2, holdfast.now() + $3::interval
on conflict (tenant_id) do update set holder = excluded.holder, leased_until = excluded.leased_until
where memory_indexing.tenant_id = $1 and (memory_indexing.holder = excluded.holder or memory_indexing.leased_until <= holdfast.now())
