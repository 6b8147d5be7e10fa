"""A gate: the configuration, its parts, known failures, and the verdict on a change."""
