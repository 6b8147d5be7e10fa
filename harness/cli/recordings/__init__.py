"""Commands that read and write the traces and logs of other tools."""
