# A cluster with one transaction (build, set-up); more of them, $3, with the settings fsync = $4, synchronous_commit = $5 and
# full_page_writes = $6 (run); its recovery (recover), and what must be there after a crash (check). If $2 is single, the server
# runs in single-user mode, as one process that reads commands from its standard input, and says a number before its next
# prompt. If it is server, there are all its processes, and the client psql says it.
#
# PostgreSQL's documentation promises that a transaction whose COMMIT has returned is durable, and of one with
# synchronous_commit = off that it is there whole and in order if it is there
# (https://www.postgresql.org/docs/15/wal-async-commit.html). With fsync or full_page_writes off it promises nothing.
export PATH=/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin

# PostgreSQL does not run as root. In the guest, root becomes another user. In the sandbox of the check there is no other
# one, and the same user has another name.
renamed() { unshare --map-user=postgres "$@"; }
unprivileged() {
    if [ "$(id -u)" != 0 ]; then
        "$@"
    elif setpriv --reuid=postgres --clear-groups true 2>/dev/null; then
        setpriv --reuid=postgres --clear-groups "$@"
    else
        renamed "$@"
    fi
}

# The server as one process, with these options. A paragraph of its input is a command.
single() { unprivileged postgres --single -j -D data "$@" template1; }

# Checksums and places in the log are others in each run.
wrong() {
    echo "$1" | head -n 1 | sed 's/\(checksum\|expected\) [0-9]*/\1 N/g; s#\b0/[0-9A-F]*#N#g'
    exit 1
}

# Commands, each of one line.
commands() { printf '%s\n\n' "$@"; }

said() { [ "$mode" = server ] && printf '%s' "\\echo $1" || printf '%s' "COPY (SELECT $1) TO STDOUT;"; }

transaction() {
    commands "BEGIN;" \
        "INSERT INTO puts VALUES ($1, repeat('$1', 1500));" \
        "UPDATE puts SET filler = repeat('$1', 1500) WHERE number = 0;" \
        "INSERT INTO sums VALUES ($1, $1);" \
        "COMMIT;" \
        "$(said "$1")"
}

# All processes of the server with the settings $1, and the input for its client.
with_client() {
    unprivileged pg_ctl -D data -w -l /tmp/log -o "-h '' -k /tmp $1" start >&2 &&
        stdbuf -oL psql -h /tmp -U postgres -d template1 -qXAt -v ON_ERROR_STOP=1 &&
        unprivileged pg_ctl -D data -w stop >&2
}

case $1 in
build)
    # A report of a folder has at most 8 MiB. So there is one database, without the texts that describe what is built in.
    renamed initdb -D data -U postgres -A trust --no-locale -E SQL_ASCII -k --wal-segsize=1 --no-sync || exit 1
    printf '%s\n' "max_connections = 4" "shared_buffers = 1MB" "min_wal_size = 2MB" "max_wal_size = 2MB" "autovacuum = off" \
        "dynamic_shared_memory_type = sysv" "log_line_prefix = ''" "log_min_messages = fatal" >>data/postgresql.conf
    {
        commands "UPDATE pg_database SET datistemplate = false;" "DROP DATABASE postgres;" "DROP DATABASE template0;" \
            "DROP SCHEMA information_schema CASCADE;" "TRUNCATE pg_description;" "CREATE EXTENSION amcheck;" "VACUUM FULL;" \
            "CREATE TABLE puts (number int PRIMARY KEY, filler text);" \
            "CREATE TABLE sums (number int PRIMARY KEY, total int);"
        transaction 0
    } | renamed postgres --single -j -D data -F -O template1 || exit 1
    renamed pg_resetwal data && tar -cf "$2/data.tar" data
    ;;
set-up) tar -xf "$2/data.tar" && chown -R postgres data ;;
run)
    mode=$2 settings="-c fsync=$4 -c synchronous_commit=$5 -c full_page_writes=$6"
    case $3 in
    one) transaction 1 ;;
    puts) transaction 1 && transaction 2 && commands "CHECKPOINT;" && transaction 3 && transaction 4 ;;
    switch) transaction 1 && commands 'DO $$ BEGIN PERFORM pg_switch_wal(); END $$;' && transaction 2 ;;
    esac | if [ "$mode" = server ]; then with_client "$settings"; else single $settings; fi
    ;;
recover) single </dev/null >/dev/null ;;
check)
    last=0
    [ "$2" = off ] || last=$(sed -n 's/^\(backend> \)*//; /^[0-9][0-9]*$/p' "$POSTCRASH_ACKNOWLEDGED" | tail -n 1)
    said=$(single -c log_min_messages=warning -c log_error_verbosity=terse 2>&1 <<SQL
COPY (SELECT CASE WHEN count(*) = max(number) + 1 THEN 'ordered' ELSE 'a transaction is there without an earlier one' END
    FROM puts) TO STDOUT;

COPY (SELECT CASE WHEN max(number) >= ${last:-0} THEN 'durable' ELSE 'an acknowledged transaction is lost' END FROM puts)
    TO STDOUT;

COPY (SELECT CASE WHEN bool_and(coalesce(puts.number = sums.total
        AND filler = repeat((CASE puts.number WHEN 0 THEN last ELSE puts.number END)::text, 1500), false))
    THEN 'whole' ELSE 'a transaction is there in part' END
    FROM puts FULL JOIN sums USING (number), (SELECT max(number) AS last FROM puts) AS a) TO STDOUT;

COPY (SELECT 'a table is damaged: ' || msg FROM pg_class, verify_heapam(oid) WHERE relkind IN ('r', 't')
    AND oid >= 16384 LIMIT 1) TO STDOUT;

COPY (SELECT 'indexed ' || count(bt_index_check(indexrelid, true)::text) FROM pg_index WHERE indexrelid >= 16384)
    TO STDOUT;

INSERT INTO puts VALUES (100, 'used on');

COPY (SELECT filler FROM puts WHERE number = 100) TO STDOUT;
SQL
    ) || wrong "the server does not start: $(echo "$said" | grep -m 1 -e ^FATAL -e ^PANIC || echo "$said" | tail -n 1)"
    expected=$(printf '%s\n' ordered durable whole 'indexed [0-9]*' 'used on')
    said=$(echo "$said" | sed 's/^\(backend> \)*//; /^$/d; /^PostgreSQL stand-alone/d; /^LOG: /d')
    other=$(echo "$said" | grep -v -x "$expected")
    [ -z "$other" ] || wrong "$other"
    [ "$(echo "$said" | wc -l)" = 5 ] || wrong "a question has no answer"
    said=$(unprivileged pg_checksums data 2>&1) || wrong "$said"
    ;;
esac
