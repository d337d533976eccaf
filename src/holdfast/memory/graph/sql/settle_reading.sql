-- Replaces a reservation ($2) by what was used ($3), and notes what was read last.
update graph_reading r set
  reserved = greatest(0, r.reserved - $2::bigint), tokens = r.tokens + $3::bigint, calls = r.calls + 1,
  last_memory = coalesce($4::uuid, r.last_memory), last_chunk = coalesce($5::uuid, r.last_chunk)
where r.tenant_id = $1 and r.holder = $6
