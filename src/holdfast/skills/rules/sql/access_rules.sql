-- The access rules of the tenant; without their text if they have the version that the caller has.
select version, case when version <> $2 then text end as text, updated_at, updated_by from access_rules where tenant_id = $1
