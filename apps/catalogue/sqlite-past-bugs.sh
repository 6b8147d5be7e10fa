# The step $1 of SQLite's shell $4 with the bug $2, which $3 = yes takes out again.
#
# folder-not-synced    the journal's folder is not synced, so that the journal may not have a name when it is needed
# recovery-not-synced  recovery does not sync the database before it deletes the journal
# log-not-synced       a log that starts anew does not have its new header synced before new transactions overwrite old
#                      ones. So recovery may take the old header and what is left of the old transactions for the log.
set -e
here=$(dirname "$0")
shell=$4 journal=delete synchronous=full
case $2 in
folder-not-synced) option=no-directory-sync ;;
recovery-not-synced) option=recovery-not-synced ;;
log-not-synced) option=sequential journal=wal synchronous=normal ;;
esac
[ "$3" != yes ] || option=none
export SQLITE_OPTION=$option

# A transaction is killed when it has written some of its pages. What is run recovers from it.
leave_a_journal() {
    sh "$here/sqlite-set-up.sh" "$shell" $journal
    sh "$here/sqlite-run.sh" "$shell" $journal $synchronous >/dev/null
    mkfifo /tmp/statements
    stdbuf -oL "$shell" store.db </tmp/statements >/tmp/answers &
    exec 3>/tmp/statements
    echo "PRAGMA cache_size = 5; BEGIN; UPDATE puts SET filler = hex(randomblob(1500)); SELECT 'written';" >&3
    timeout 30 sh -c 'until grep -q written /tmp/answers; do sleep 0.1; done'
    kill -KILL $!
    wait $! 2>/dev/null || true # it was killed
}

# Each of the old and the new log has a transaction that changes the first row only, and one that adds to both tables.
start_the_log_anew() {
    exec stdbuf -oL "$shell" store.db <<SQL
.output /dev/null
PRAGMA synchronous = $synchronous;
UPDATE puts SET filler = hex(randomblob(1500)) WHERE number = 0;
BEGIN;
INSERT INTO puts VALUES (1, hex(zeroblob(1500)));
INSERT INTO sums VALUES (1, 1);
COMMIT;
PRAGMA wal_checkpoint;
.output stdout
.print 1
UPDATE puts SET filler = hex(randomblob(1500)) WHERE number = 0;
BEGIN;
INSERT INTO puts VALUES (2, hex(zeroblob(1500)));
INSERT INTO sums VALUES (2, 2);
COMMIT;
.print 2
SQL
}

recover="PRAGMA synchronous = $synchronous; SELECT max(number) FROM puts"

case $1-$2 in
set_up-recovery-not-synced) leave_a_journal ;;
set_up-*) exec sh "$here/sqlite-set-up.sh" "$shell" $journal ;;
run-log-not-synced) start_the_log_anew ;;
run-recovery-not-synced) exec "$shell" store.db "$recover" ;;
run-*) exec sh "$here/sqlite-run.sh" "$shell" $journal $synchronous ;;
check-*) exec sh "$here/sqlite-check.sh" "$shell" $journal $synchronous ;;
recover-*) exec "$shell" store.db "$recover" ;;
esac
