-- Reserves tokens ($2) of this day's ($3), if so many are left. What was reserved before today counts no more.
update graph_reading r set
  reserved = case when r.day = (holdfast.now() at time zone 'UTC')::date then r.reserved else 0 end + $2::bigint,
  tokens = case when r.day = (holdfast.now() at time zone 'UTC')::date then r.tokens else 0 end,
  calls = case when r.day = (holdfast.now() at time zone 'UTC')::date then r.calls else 0 end,
  day = (holdfast.now() at time zone 'UTC')::date
where r.tenant_id = $1 and r.holder = $4
  and case when r.day = (holdfast.now() at time zone 'UTC')::date then r.reserved + r.tokens else 0 end + $2::bigint <= $3::bigint
