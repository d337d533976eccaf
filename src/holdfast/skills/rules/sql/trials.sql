-- What the rules of the tenant that are on trial would have decided otherwise.
select rule, calls, last_at, examples from access_rule_trial where tenant_id = $1
