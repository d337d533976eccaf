"""The audit: who called what, with which outcome. Rows are chained by hashes, so that a later change shows."""
