"""Sources of tools: documents of back ends, each kind read by a `Source`."""
