"""Where tools come from beside programs: documents of back ends, each kind read by a `Source`."""
