"""Files are parsed in processes of their own, so that a hostile or huge file cannot take the engine down.

`Readers` starts the processes, hands them files and yields what they read: finished chunks, and the position from which
a later read continues. `program` is what runs in such a process, `protocol` what the two say to each other.
"""
