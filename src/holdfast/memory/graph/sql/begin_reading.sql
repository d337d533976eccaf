-- Notes that a tenant's texts are read.
insert into graph_reading (tenant_id) values ($1) on conflict do nothing
