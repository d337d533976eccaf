"""The parts of the log, one by one."""
