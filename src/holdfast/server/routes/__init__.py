"""The operations, one module per subject."""
