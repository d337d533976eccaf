-- Has a conversation tell its agent's topic of every change from now on.
select holdfast.attach_agent($1, $2, $3)
