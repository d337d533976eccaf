-- Computes anew what entities are merged into.
select holdfast.settle_merges($1, $2)
