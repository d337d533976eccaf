-- When a member of a group last renewed its lease: `topics lag` tells of a reader that has fallen silent.
alter table consumer_member add column heard_at timestamptz not null default holdfast.now();
