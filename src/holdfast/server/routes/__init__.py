"""The operations of the HTTP API, one module per subject."""
