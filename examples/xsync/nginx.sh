mkdir logs body
cat >nginx.conf <<C
daemon off; master_process off; pid $PWD/nginx.pid; error_log $PWD/logs/error.log;
events { worker_connections 16; }
http {
  client_body_temp_path $PWD/body; proxy_temp_path $PWD/p; fastcgi_temp_path $PWD/f; uwsgi_temp_path $PWD/u; scgi_temp_path $PWD/s;
  access_log $PWD/logs/access.log;
  server { listen 127.0.0.1:8080; location / { return 200 "got it\n"; } }
}
C
nginx -c $PWD/nginx.conf -p $PWD 2>/dev/null &
python3 -S - <<P
import socket, time
for n in range(3):
    while True:
        try:
            s = socket.create_connection(("127.0.0.1", 8080)); break
        except OSError:
            time.sleep(0.05)
    s.sendall(b"POST /%d HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi" % n)
    print(n, s.makefile().read().split("\n")[-2], flush=True)
P
kill $!; wait
