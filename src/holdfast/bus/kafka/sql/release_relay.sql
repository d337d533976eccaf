-- Gives the relay's shares up, for another process to go on at once.
update relay_lease set leased_until = holdfast.now() where holder = $1
