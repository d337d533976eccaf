-- Makes the checks due that had none while the settings said so.
update source_check set due_at = holdfast.now() where due_at is null and seconds is null and file is null
