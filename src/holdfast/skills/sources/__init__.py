"""Sources of tools: documents of back ends. `openapi` reads those of REST APIs."""
