# make table   characterise the file systems and write the table of what a crash can do to them
# make test    every test, in a guest too
# make test-full   the tests with what takes long: recorders on every target, more examples, an hour
# make needs   needs times gives (docs/results/needs-and-gives.md): some hours; ARGS=--resume goes on after an interruption
# make fuzz    ten minutes of damaged inputs for each reader of files and messages (docs/fuzzing.md)
# make bench   the benchmarks
# make mutants   kernels with a planted bug: which judge finds each, and how soon (docs/results/mutants.md)
# make remedies   kernels in which our findings are mended: what is left (docs/results/remedies.md)
# make dist    the wheel and the source archive, in dist/ (docs/releasing.md)
# make docs    the pages as a site, in build/site; dead links are errors
# make lock    requirements.lock: the versions and hashes of the Python packages
# make setup   what the others need: Debian packages, .venv, the Rust build; each of them runs it first. LOCKED=1 takes the
#              Python packages of requirements.lock, which is of Python 3.11: other versions and mirrors may lack some of them
# make clean   removes what was built, not the results
#
# ARGS="…" adds arguments to the command.

VENV := .venv
ARGS :=
LOCKED :=
NEEDS_TARGETS := ext3-ordered,ext3-writeback,ext3-journal,ext4-original,ext4-current,ext4-writeback,ext4-journal,btrfs,xfs,f2fs,xsyncfs

.PHONY: table needs test test-full fuzz bench mutants remedies dist docs lock setup clean

# A ✗ is an answer, not a failure: exit code 1 (violated) is fine here.
table: setup
	@$(VENV)/bin/postcrash characterize $(ARGS) || [ $$? -eq 1 ]

# An application that is unsafe somewhere is an answer as well.
needs: setup
	@$(VENV)/bin/postcrash needs published --folders 300 --sets 4 --budget 2000,60s --target $(NEEDS_TARGETS) \
		--markdown docs/results/needs-and-gives.md $(ARGS) || [ $$? -eq 1 ]

# Rust comes first, because tests in guests copy what it has built. Then what needs no guest runs beside what does.
test: setup
ifeq ($(ARGS),)
	$(VENV)/bin/tox run-parallel --parallel-no-spinner -e style,types,rust
	$(VENV)/bin/tox run-parallel --parallel-live -e unit,vm
else
	$(VENV)/bin/tox run $(ARGS)
endif

test-full: setup
	$(VENV)/bin/tox run -e full $(ARGS)

fuzz: setup
	$(VENV)/bin/python -m tests.fuzz.run $(ARGS)

bench: setup
	$(VENV)/bin/python bench/run.py $(ARGS)
	@$(VENV)/bin/python -c "import matplotlib" 2>/dev/null || $(VENV)/bin/pip install --quiet "matplotlib>=3.8"
	$(VENV)/bin/python bench/growth.py --plot docs/results/growth.svg
	$(VENV)/bin/python bench/scale.py
	$(VENV)/bin/python bench/hunt.py
	$(VENV)/bin/python bench/checks.py

mutants: setup
	$(VENV)/bin/python -m tests.mutants.run $(ARGS)

remedies: setup
	$(VENV)/bin/python -m tests.mutants.mend $(ARGS)

dist: setup
	tools/dist

docs: setup
	tools/docs

lock: setup
	tools/lock

setup:
	@POSTCRASH_LOCKED=$(LOCKED) tools/setup all

clean:
	rm -rf .setup .venv .tox target build dist man postcrash/_bin postcrash/_core*.so *.egg-info
	rm -rf .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
