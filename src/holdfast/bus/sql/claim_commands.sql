-- Claims due commands of these skills for a worker, at most as many as it has free places.
select * from holdfast.claim_commands($1, $2, $3, $4, $5, $6, $7)
