wrk.method = "POST"
wrk.body = string.rep("p", 200)
