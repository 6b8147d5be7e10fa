"""From a recording to its crash states: device models, crash intervals, explorers."""
