# The shell that runs the check reads this file itself, which saves the start of one more shell.
# The shell $1 recovers the database. It is whole; transactions are there whole and in order; with journal mode $2 and
# PRAGMA synchronous = $3, those that were acknowledged are there as far as SQLite's documentation promises
# (https://www.sqlite.org/pragma.html#pragma_synchronous).
last=0
while read -r number; do last=$number; done <"$POSTCRASH_ACKNOWLEDGED"
case $3-$2 in
off-* | normal-wal) last=0 ;;                                     # consistent, and not durable
full-delete | normal-*) last=$((last > 0 ? last - 1 : 0)) ;;      # the journal's end is synced by EXTRA, or by FULL
esac
found=$($1 store.db 2>&1 <<SQL
SELECT CASE WHEN count(*) = max(number) + 1 THEN 'ordered' ELSE 'a transaction is there without an earlier one' END
    FROM puts;
SELECT CASE WHEN count(*) = 0 THEN 'whole' ELSE 'a transaction is there in part' END FROM (
    SELECT number FROM (SELECT number FROM puts EXCEPT SELECT number FROM sums)
    UNION ALL SELECT number FROM (SELECT number FROM sums EXCEPT SELECT number FROM puts));
SELECT CASE WHEN max(number) >= $last THEN 'durable' ELSE 'an acknowledged transaction is lost' END FROM puts;
PRAGMA integrity_check;
INSERT INTO puts VALUES (100, 'used on');
SELECT filler FROM puts WHERE number = 100;
SQL
)
[ "$found" = "ordered
whole
durable
ok
used on" ] && exit 0
echo "$found" | grep -v -x -e ordered -e whole -e durable -e ok -e 'used on'
exit 1
