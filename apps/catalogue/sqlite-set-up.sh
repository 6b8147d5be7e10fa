# A database with one transaction, in journal mode $1.
sqlite3 store.db >/tmp/mode <<SQL
PRAGMA journal_mode = $1;
CREATE TABLE puts (number INTEGER PRIMARY KEY, filler TEXT);
CREATE TABLE sums (number INTEGER PRIMARY KEY, total INTEGER);
BEGIN;
INSERT INTO puts VALUES (0, hex(zeroblob(1500)));
INSERT INTO sums VALUES (0, 0);
COMMIT;
SQL
