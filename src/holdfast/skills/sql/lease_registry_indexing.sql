-- Takes or renews the lease on indexing the tenant's skills and tools. Changes no row while another process holds it.
insert into registry_indexing (host_id, holder, leased_until) select $1, $2, holdfast.now() + $3::interval
on conflict (host_id) do update set holder = excluded.holder, leased_until = excluded.leased_until
where registry_indexing.host_id = $1 and (registry_indexing.holder = excluded.holder or registry_indexing.leased_until <= holdfast.now())
