# Four transactions in journal mode $1 with PRAGMA synchronous = $2. Each says its number once it is committed.
exec stdbuf -oL sqlite3 store.db <<SQL
.output /dev/null
PRAGMA journal_mode = $1;
.output stdout
PRAGMA synchronous = $2;
$(for number in 1 2 3 4; do
    echo "BEGIN;"
    echo "INSERT INTO puts VALUES ($number, hex(zeroblob(1500)));"
    echo "UPDATE puts SET filler = hex(randomblob(1500)) WHERE number = 0;"
    echo "INSERT INTO sums VALUES ($number, $number);"
    echo "COMMIT;"
    echo ".print $number"
done)
SQL
