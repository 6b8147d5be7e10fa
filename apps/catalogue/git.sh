# A repository with one commit (set-up, with core.fsync = $3), a second one (run), and what must be there after a crash
# (check). With $2 = gc the second commit is there before, and what is run puts everything into a pack and removes what
# was loose; with $2 = gc-again this was done before the second commit, too. Locks that the crash left are removed, as
# Git's message tells its user to do.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE='2026-01-01T00:00:00+0000'
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org GIT_COMMITTER_DATE='2026-01-01T00:00:00+0000'

wrong() {
    echo "$1" | head -n 1 | sed 's/[0-9a-f]\{40\}/HASH/g; s#[0-9a-f]\{2\}/[0-9a-f]\{38\}#HASH#g'
    exit 1
}

pack() { git gc --quiet --prune=now; }
second() { echo two >f && git commit -qam two; }

case $1-$2 in
set-up-*)
    set -e
    git init -q -b main
    git config gc.auto 0
    git config maintenance.auto false
    git config pack.threads 1
    [ "$3" = default ] || git config core.fsync "$3"
    echo one >f
    git add f
    git commit -qm one
    [ "$2" != gc-again ] || pack
    [ "$2" = commit ] || second
    ;;
run-commit) second && echo committed ;;
run-gc | run-gc-again) pack && echo packed ;;
check-*)
    find .git -name '*.lock' -exec rm {} +
    said=$(git fsck --strict --no-dangling --no-progress 2>&1) || wrong "$(echo "$said" | grep -v '^notice')"
    subject=$(git log -1 --format=%s 2>&1) || wrong "$subject"
    [ "$2" = commit ] && [ ! -s "$POSTCRASH_ACKNOWLEDGED" ] || [ "$subject" = two ] || wrong "the commit is lost"
    echo three >f
    said=$(git commit -qam three 2>&1) || wrong "cannot commit: $said"
    ;;
esac
