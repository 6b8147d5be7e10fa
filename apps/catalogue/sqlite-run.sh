# Four transactions by the shell $1 in journal mode $2 with PRAGMA synchronous = $3. Each has two rows and a change in
# two tables, or with $4 = one a short row. Each says its number once it is committed.
exec stdbuf -oL "$1" store.db <<SQL
.output /dev/null
PRAGMA journal_mode = $2;
.output stdout
PRAGMA synchronous = $3;
$(for number in 1 2 3 4; do
    echo "BEGIN;"
    if [ "$4" = one ]; then
        echo "INSERT INTO puts VALUES ($number, 'short');"
    else
        echo "INSERT INTO puts VALUES ($number, hex(zeroblob(1500)));"
        echo "UPDATE puts SET filler = hex(randomblob(1500)) WHERE number = 0;"
        echo "INSERT INTO sums VALUES ($number, $number);"
    fi
    echo "COMMIT;"
    echo ".print $number"
done)
SQL
