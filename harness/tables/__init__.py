"""Tables of properties: by target, and by target and kernel."""
