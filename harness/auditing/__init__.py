"""An application on a file system: run, crashed everywhere, recovered, and asked whether it kept its promises."""
