mkdir d && cd d && for n in 1 2 3; do echo $n >f$n; ln f$n g$n; mv f$n h; echo done $n; done; rm h; echo end
