-- Adds to what rules on trial would have decided otherwise.
select holdfast.count_rule_trials($1, $2, $3)
