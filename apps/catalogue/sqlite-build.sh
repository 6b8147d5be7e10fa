# Builds SQLite's shell with its own library, and with our options $1, into the folder $2. Defaults are upstream's.
# Without SQLITE_ENABLE_ATOMIC_WRITE it would not ask whether writes are atomic; where they are not, nothing differs.
set -e
for archive in deps/sqlite-autoconf-*.tar.gz; do [ -e "$archive" ] && tar -xzf "$archive"; done
cd "$(dirname "$(find . -name shell.c)")"
gcc -g -O1 -fno-omit-frame-pointer -w -ffile-prefix-map="$PWD/=" -I. \
    -DSQLITE_ENABLE_ATOMIC_WRITE -DSQLITE_EXTRA_INIT=use_option \
    sqlite3.c shell.c "$1" -pthread -ldl -lm -o "$2/sqlite3"
