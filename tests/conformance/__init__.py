"""What the log promises, on each of its drivers."""
