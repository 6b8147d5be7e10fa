"""postcrash answers one question with evidence: after a power cut, what can be on this disk?

The subpackages are links to the top-level folders of the source tree, so that an installed postcrash adds one
name to its environment. docs/ARCHITECTURE.md says what each folder holds.
"""

__version__ = "0.1.0"
