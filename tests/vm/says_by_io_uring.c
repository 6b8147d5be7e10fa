/* Writes the file f, has a thread of the kernel say "done", sees in memory that it did, and only then calls fsync. */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *mapped(int ring, size_t bytes, off_t what)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
}

int main(void)
{
    struct io_uring_params set_up;
    memset(&set_up, 0, sizeof set_up);
    int ring = syscall(SYS_io_uring_setup, 4, &set_up);
    if (ring < 0)
        return 3;
    char *requests = mapped(ring, set_up.sq_off.array + set_up.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    char *answers = mapped(ring, set_up.cq_off.cqes + set_up.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    struct io_uring_sqe *request = (void *)mapped(ring, set_up.sq_entries * sizeof *request, IORING_OFF_SQES);
    if (requests == MAP_FAILED || answers == MAP_FAILED || (void *)request == MAP_FAILED)
        return 4;
    int file = open("f", O_CREAT | O_WRONLY, 0644);
    if (file < 0 || write(file, "kept", 4) != 4)
        return 5;
    memset(request, 0, sizeof *request);
    request->opcode = IORING_OP_WRITE;
    request->flags = IOSQE_ASYNC;
    request->fd = STDOUT_FILENO;
    request->addr = (unsigned long)"done\n";
    request->len = 5;
    request->off = -1;
    ((unsigned *)(requests + set_up.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(requests + set_up.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) != 1)
        return 6;
    unsigned *answered = (unsigned *)(answers + set_up.cq_off.tail);
    while (__atomic_load_n(answered, __ATOMIC_ACQUIRE) == 0)
        ;
    return fsync(file);
}
