-- Releases the relay's shares, so that another process can take over at once.
update relay_lease set leased_until = holdfast.now() where holder = $1
