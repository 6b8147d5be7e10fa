# The shell $1 makes a database with one transaction, in journal mode $2. With $3 = one, the second table is a view of
# the first one, so that a transaction changes one page. Pages are as large as what the disk is said to write at once.
case $SQLITE_OPTION in
atomic512) page=512 ;;
atomic4k) page=4096 ;;
esac
$1 store.db >/tmp/mode <<SQL
${page:+PRAGMA page_size = $page;}
PRAGMA journal_mode = $2;
CREATE TABLE puts (number INTEGER PRIMARY KEY, filler TEXT);
$(if [ "$3" = one ]; then
    echo "CREATE VIEW sums AS SELECT number, number AS total FROM puts;"
    echo "INSERT INTO puts VALUES (0, 'short');"
else
    echo "CREATE TABLE sums (number INTEGER PRIMARY KEY, total INTEGER);"
    echo "BEGIN;"
    echo "INSERT INTO puts VALUES (0, hex(zeroblob(1500)));"
    echo "INSERT INTO sums VALUES (0, 0);"
    echo "COMMIT;"
fi)
SQL
