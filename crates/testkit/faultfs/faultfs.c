// faultfs: a FUSE file system that passes everything through to a folder and
// fails on demand, for tests of software that measures or stores.
//
//   faultfs BACKING MOUNT -f
//
// It is steered by writing one command to MOUNT/.faultctl:
//   write 100 5       the 100th write from now gives errno 5 (EIO), once
//   write+ 100 28     every write from the 100th on gives errno 28 (ENOSPC)
//                     likewise read, fsync, open
//   short-write 7     the 7th write from now moves half of its bytes; likewise short-read
//   delay-read 5000   every read takes 5000 us longer; likewise delay-write
//   hold-read 100     the 100th read from now and all that follow wait for release
//   release           they need not wait any more
//   clear             no more faults, delays and waiting; counts begin anew
// Reading it gives, for reads and for writes, how many were served and the ns that
// it took them in all, measured within: whoever asked has waited longer; then how many
// reads wait for release.
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum op { READ, WRITE, FSYNC, OPEN, OPS };

static const char *const op_names[OPS] = { "read", "write", "fsync", "open" };

// One fault per operation; libfuse calls from several threads.
static struct {
    atomic_long count;  // operations seen
    atomic_long at;     // the one that fails; 0 for none
    atomic_int error;   // with this errno
    atomic_int onwards; // and all that follow
} faults[OPS];

static atomic_long delay_us[2]; // READ, WRITE
static atomic_long short_at[2]; // READ, WRITE
static atomic_long served[2];   // READ, WRITE
static atomic_long took_ns[2];  // READ, WRITE
static atomic_long hold_at;     // reads from this one on wait; 0 for none
static atomic_long held;        // so many do
static int backing;

static const char *relative(const char *path)
{
    return path[1] ? path + 1 : ".";
}

static int is_control(const char *path)
{
    return strcmp(path, "/.faultctl") == 0;
}

static int result(int status)
{
    return status ? -errno : 0;
}

// Counts one operation; the errno it is to fail with, or 0.
static int fault(enum op op)
{
    long n = atomic_fetch_add(&faults[op].count, 1) + 1;
    long at = faults[op].at;
    return at && (n == at || (faults[op].onwards && n > at)) ? faults[op].error : 0;
}

static int obey(const char *command)
{
    char word[32];
    long number = 0;
    int error = EIO;

    if (sscanf(command, "%31s %ld %d", word, &number, &error) < 1)
        return -EINVAL;
    if (strcmp(word, "clear") == 0) {
        for (int op = 0; op < OPS; op++)
            faults[op].at = faults[op].count = 0;
        delay_us[READ] = delay_us[WRITE] = short_at[READ] = short_at[WRITE] = 0;
        served[READ] = served[WRITE] = took_ns[READ] = took_ns[WRITE] = 0;
        hold_at = 0;
        return 0;
    }
    if (strcmp(word, "hold-read") == 0) {
        hold_at = faults[READ].count + number;
        return 0;
    }
    if (strcmp(word, "release") == 0) {
        hold_at = 0;
        return 0;
    }
    if (strcmp(word, "delay-read") == 0) {
        delay_us[READ] = number;
        return 0;
    }
    if (strcmp(word, "delay-write") == 0) {
        delay_us[WRITE] = number;
        return 0;
    }
    if (strcmp(word, "short-write") == 0) {
        short_at[WRITE] = faults[WRITE].count + number;
        return 0;
    }
    if (strcmp(word, "short-read") == 0) {
        short_at[READ] = faults[READ].count + number;
        return 0;
    }
    char *last = word + strlen(word) - 1;
    int onwards = *last == '+';
    if (onwards)
        *last = 0;
    for (int op = 0; op < OPS; op++) {
        if (strcmp(word, op_names[op]) == 0) {
            faults[op].onwards = onwards;
            faults[op].error = error;
            faults[op].at = faults[op].count + number;
            return 0;
        }
    }
    return -EINVAL;
}

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *file)
{
    if (is_control(path)) {
        memset(st, 0, sizeof *st);
        st->st_mode = S_IFREG | 0600;
        st->st_nlink = 1;
        return 0;
    }
    if (file)
        return result(fstat(file->fh, st));
    return result(fstatat(backing, relative(path), st, AT_SYMLINK_NOFOLLOW));
}

static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *file, enum fuse_readdir_flags flags)
{
    (void)offset, (void)file, (void)flags;
    int fd = openat(backing, relative(path), O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return -errno;
    DIR *dir = fdopendir(fd);
    for (struct dirent *entry; (entry = readdir(dir));)
        fill(buffer, entry->d_name, NULL, 0, 0);
    closedir(dir);
    return 0;
}

static int open_file(const char *path, struct fuse_file_info *file, int extra, mode_t mode)
{
    // No page cache above: every read and write of a test arrives here.
    file->direct_io = 1;
    if (is_control(path)) {
        file->fh = -1;
        return 0;
    }
    int error = fault(OPEN);
    if (error)
        return -error;
    // The kernel has done the appending, and libfuse's buffers are not aligned.
    int flags = (file->flags & ~(O_APPEND | O_DIRECT)) | extra;
    int fd = openat(backing, relative(path), flags, mode);
    if (fd < 0)
        return -errno;
    file->fh = fd;
    return 0;
}

static int do_open(const char *path, struct fuse_file_info *file)
{
    return open_file(path, file, 0, 0);
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
    return open_file(path, file, O_CREAT, mode);
}

static long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void count(enum op op, long began_ns)
{
    served[op]++;
    took_ns[op] += now_ns() - began_ns;
}

static void wait_for_release(void)
{
    long at = hold_at;
    if (!at || faults[READ].count < at)
        return;
    held++;
    while (hold_at)
        usleep(1000);
    held--;
}

static int tell(char *buffer, size_t size, off_t offset)
{
    char text[128];
    int length = snprintf(text, sizeof text, "%ld %ld %ld %ld %ld\n", served[READ],
                          took_ns[READ], served[WRITE], took_ns[WRITE], held);
    if (offset || size < (size_t)length)
        return 0;
    memcpy(buffer, text, length);
    return length;
}

static int do_read(const char *path, char *buffer, size_t size, off_t offset,
                   struct fuse_file_info *file)
{
    if (is_control(path))
        return tell(buffer, size, offset);
    long began_ns = now_ns();
    if (delay_us[READ])
        usleep(delay_us[READ]);
    int error = fault(READ);
    wait_for_release();
    if (error)
        return -error;
    if (short_at[READ] && faults[READ].count == short_at[READ])
        size /= 2;
    ssize_t moved = pread(file->fh, buffer, size, offset);
    count(READ, began_ns);
    return moved < 0 ? -errno : moved;
}

static int do_write(const char *path, const char *buffer, size_t size, off_t offset,
                    struct fuse_file_info *file)
{
    if (is_control(path)) {
        char command[128] = "";
        memcpy(command, buffer, size < sizeof command ? size : sizeof command - 1);
        int status = obey(command);
        return status ? status : (int)size;
    }
    long began_ns = now_ns();
    if (delay_us[WRITE])
        usleep(delay_us[WRITE]);
    int error = fault(WRITE);
    if (error)
        return -error;
    if (short_at[WRITE] && faults[WRITE].count == short_at[WRITE])
        size /= 2;
    ssize_t moved = pwrite(file->fh, buffer, size, offset);
    count(WRITE, began_ns);
    return moved < 0 ? -errno : moved;
}

static int do_fsync(const char *path, int data_only, struct fuse_file_info *file)
{
    (void)path;
    int error = fault(FSYNC);
    if (error)
        return -error;
    return result(data_only ? fdatasync(file->fh) : fsync(file->fh));
}

static int do_release(const char *path, struct fuse_file_info *file)
{
    if (!is_control(path))
        close(file->fh);
    return 0;
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *file)
{
    if (is_control(path))
        return 0;
    if (file)
        return result(ftruncate(file->fh, size));
    int fd = openat(backing, relative(path), O_WRONLY);
    if (fd < 0)
        return -errno;
    int status = result(ftruncate(fd, size));
    close(fd);
    return status;
}

static int do_fallocate(const char *path, int mode, off_t offset, off_t length,
                        struct fuse_file_info *file)
{
    (void)path;
    return result(fallocate(file->fh, mode, offset, length));
}

static int do_unlink(const char *path)
{
    return result(unlinkat(backing, relative(path), 0));
}

static int do_rmdir(const char *path)
{
    return result(unlinkat(backing, relative(path), AT_REMOVEDIR));
}

static int do_mkdir(const char *path, mode_t mode)
{
    return result(mkdirat(backing, relative(path), mode));
}

static int do_rename(const char *from, const char *to, unsigned flags)
{
    return result(renameat2(backing, relative(from), backing, relative(to), flags));
}

static int do_statfs(const char *path, struct statvfs *st)
{
    (void)path;
    return result(fstatvfs(backing, st));
}

static int do_utimens(const char *path, const struct timespec times[2],
                      struct fuse_file_info *file)
{
    (void)file;
    return result(utimensat(backing, relative(path), times, AT_SYMLINK_NOFOLLOW));
}

static const struct fuse_operations operations = {
    .getattr = do_getattr,
    .readdir = do_readdir,
    .open = do_open,
    .create = do_create,
    .read = do_read,
    .write = do_write,
    .fsync = do_fsync,
    .release = do_release,
    .truncate = do_truncate,
    .fallocate = do_fallocate,
    .unlink = do_unlink,
    .rmdir = do_rmdir,
    .mkdir = do_mkdir,
    .rename = do_rename,
    .statfs = do_statfs,
    .utimens = do_utimens,
};

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: faultfs BACKING MOUNT [-f]\n");
        return 2;
    }
    backing = open(argv[1], O_RDONLY | O_DIRECTORY);
    if (backing < 0) {
        perror(argv[1]);
        return 1;
    }
    argv[1] = argv[0];
    return fuse_main(argc - 1, argv + 1, &operations, NULL);
}
