"""From a run to a recording: the crash disk and the other recorders."""
