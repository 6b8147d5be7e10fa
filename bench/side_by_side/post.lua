-- Answers a POST after its body is in the log.
function handle(request)
    local log = assert(io.open("FOLDER/posts.log", "a"))
    assert(log:write(request:requestbody(), "\n"))
    assert(log:close())
    request:puts("logged\n")
    return apache2.OK
end
