# A file with the keys of two hosts (set-up), the removal of one (run), and what must be there after a crash (check).
key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SaG6UOoqkLsabgH5C9OKi0QFQmfzlwZa"
case $1 in
set-up) printf 'one %s\ntwo %s\n' "$key" "$key" >known_hosts ;;
run) ssh-keygen -q -R one -f known_hosts 2>/tmp/errors && echo removed ;;
check)
    [ -e known_hosts ] || { echo "known_hosts is gone"; exit 1; }
    grep -qx "two $key" known_hosts || { echo "known_hosts has lost the other host's key, and has $(wc -c <known_hosts) bytes"; exit 1; }
    [ "$(wc -l <known_hosts)" -le 2 ] || { echo "known_hosts has lines that never were"; exit 1; } ;;
esac
