redis-server --dir . --appendonly yes --appendfsync always --save '' --port 0 --unixsocket "$PWD/r.sock" --daemonize no >/dev/null &
until redis-cli -s r.sock ping >/dev/null 2>&1; do sleep 0.05; done
for n in 1 2 3; do redis-cli -s r.sock set key$n $n; done
redis-cli -s r.sock shutdown
wait
