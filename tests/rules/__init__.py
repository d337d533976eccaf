"""Our own rules, run by `make check`.

A rule is a function over the root of a tree that returns its violations, one sentence each: where, what, and what to
do. Beside each stands a test that runs it on this tree, and one that sees it fail on a planted violation.
"""
