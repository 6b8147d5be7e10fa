# Builds LevelDB, wherever it is in the unpacked package, and our driver $1 into one program in the folder $2.
# Old versions want -fpermissive, a header that has got another name since then, and what 1.2 takes from a header that
# its own script makes. Names of source files in debugging information begin at LevelDB's own folder.
set -e
cd "$(dirname "$(find . -path '*/include/leveldb/db.h')")/../.."
mkdir renamed
echo '#include <atomic>' >renamed/cstdatomic
sources=$(find db table util port -maxdepth 1 -name '*.cc' ! -name '*_test.cc' ! -name '*_bench.cc' \
    ! -name '*_main.cc' ! -name 'test*.cc' \
    ! -name '*_win.cc' ! -name '*_chromium.cc' ! -name '*_android.cc' ! -name '*_std.cc')
# shellcheck disable=SC2086
g++ -g -O1 -fno-omit-frame-pointer -std=c++11 -fpermissive -w -ffile-prefix-map="$PWD/=" \
    '-DUSED_BY_NESTED_FRIEND(a)=a;' '-DUSED_BY_NESTED_FRIEND2(a,b)=a,b;' \
    -DOS_LINUX -DLEVELDB_PLATFORM_POSIX -Irenamed -I. -Iinclude $sources "$1" -pthread -o "$2/leveldb-driver"
