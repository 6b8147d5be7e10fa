/* Asynchronous I/O without a call when it ends. With "polled", a direct write ends, the program sees so in memory, and says
   "done" before it calls fsync. With "said", one call says "done" and then writes the file f, which it makes durable. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Large, so that it takes a while. */
static char block[1 << 20] __attribute__((aligned(4096)));
/* The kernel's struct aio_ring, where the context is: id, number of events, head, tail. */
enum { HEAD = 2, TAIL = 3 };

static void wait_in_memory(aio_context_t context)
{
    unsigned *ring = (unsigned *)context;
    while (__atomic_load_n(ring + TAIL, __ATOMIC_ACQUIRE) == ring[HEAD])
        ;
}

static struct iocb writing(int file, const void *bytes, size_t length, int flags)
{
    struct iocb request;
    memset(&request, 0, sizeof request);
    request.aio_lio_opcode = IOCB_CMD_PWRITE;
    request.aio_fildes = file;
    request.aio_buf = (unsigned long)bytes;
    request.aio_nbytes = length;
    request.aio_rw_flags = flags;
    return request;
}

int main(int count, char **arguments)
{
    int is_polled = count > 1 && !strcmp(arguments[1], "polled");
    aio_context_t context = 0;
    int file = open("f", O_WRONLY | O_CREAT | (is_polled ? O_DIRECT : 0), 0644);
    memset(block, 'k', sizeof block);
    if (file < 0 || syscall(SYS_io_setup, 4, &context))
        return 3;
    struct iocb line = writing(STDOUT_FILENO, "done\n", 5, 0);
    struct iocb kept = writing(file, block, sizeof block, is_polled ? 0 : RWF_DSYNC);
    struct iocb *both[] = {&line, &kept}, **requests = is_polled ? both + 1 : both;
    long given = is_polled ? 1 : 2;
    if (syscall(SYS_io_submit, context, given, requests) != given)
        return 4;
    if (is_polled) {
        wait_in_memory(context);
        if (write(STDOUT_FILENO, "done\n", 5) != 5)
            return 5;
    }
    return fsync(file);
}
