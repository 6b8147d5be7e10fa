"""The result store, and what is drawn from it: tables, HTML, the explanation of a finding."""
