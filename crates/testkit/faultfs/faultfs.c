/*
 * faultfs: a FUSE file system that passes everything through to another folder
 * and fails, shortens or delays operations on order. It stands in for a broken
 * or slow disk in the tests of this project, deterministically: the n-th
 * operation of a kind from the order on is hit, never a random one.
 *
 * Usage:  faultfs BACKING MOUNT [-f]        (root; fuse_main's options follow)
 * Build:  gcc -O2 -D_FILE_OFFSET_BITS=64 -o faultfs faultfs.c \
 *             $(pkg-config --cflags --libs fuse3)
 *
 * Orders are written to MOUNT/.faultctl, one a write:
 *   write N ERRNO      the N-th write from now fails with ERRNO, once
 *   write+ N ERRNO     every write from the N-th on fails
 *   read, fsync, open  likewise, with and without +
 *   short-write N      the N-th write moves half of what was asked
 *   delay-read US      every read takes US microseconds longer
 *   delay-write US     every write takes US microseconds longer
 *   clear              no more faults and delays; counters start again
 * Reading MOUNT/.faultctl gives the counters.
 *
 * O_DIRECT is dropped towards the backing folder (libfuse's buffers are not
 * aligned to sectors), and the mount's page cache is bypassed (direct_io), so
 * that every operation of a program arrives here, one by one.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum kind { READ, WRITE, FSYNC, OPEN, KINDS };

static const char *const kind_names[KINDS] = { "read", "write", "fsync", "open" };

/* What is to happen to one kind of operation. */
struct fault {
	atomic_long seen;	/* operations so far */
	atomic_long at;		/* the one to hit, 0 for none */
	atomic_int error;	/* the errno it gets */
	atomic_int sticky;	/* all later ones too */
	atomic_long delay_us;	/* added to every operation */
};

static struct fault faults[KINDS];
static atomic_long short_write_at;
static int backing;

static int is_control(const char *path)
{
	return strcmp(path, "/.faultctl") == 0;
}

/* The path below the backing folder: FUSE's begin with a slash. */
static const char *below(const char *path)
{
	return path[1] ? path + 1 : ".";
}

/* A system call's result as FUSE wants it. */
static int result(int rc)
{
	return rc < 0 ? -errno : 0;
}

/* Counts one operation; its error as a positive errno, or 0. */
static int strike(enum kind kind)
{
	struct fault *fault = &faults[kind];
	long n = atomic_fetch_add(&fault->seen, 1) + 1;
	long at = fault->at;

	if (fault->delay_us)
		usleep(fault->delay_us);
	return at && (n == at || (fault->sticky && n >= at)) ? fault->error : 0;
}

static void clear_all(void)
{
	for (int kind = 0; kind < KINDS; kind++) {
		faults[kind].at = 0;
		faults[kind].seen = 0;
		faults[kind].delay_us = 0;
	}
	short_write_at = 0;
}

/* Carries out one order; 0, or a negative errno if it is none. */
static int obey(const char *order)
{
	char word[32];
	long number = 0;
	int error = EIO;
	size_t length;

	if (sscanf(order, "%31s %ld %d", word, &number, &error) < 1)
		return -EINVAL;
	if (!strcmp(word, "clear"))
		return clear_all(), 0;
	if (!strcmp(word, "delay-read"))
		return faults[READ].delay_us = number, 0;
	if (!strcmp(word, "delay-write"))
		return faults[WRITE].delay_us = number, 0;
	if (!strcmp(word, "short-write"))
		return short_write_at = faults[WRITE].seen + number, 0;

	length = strlen(word);
	int sticky = word[length - 1] == '+';
	if (sticky)
		word[length - 1] = '\0';
	for (int kind = 0; kind < KINDS; kind++) {
		if (strcmp(word, kind_names[kind]))
			continue;
		faults[kind].sticky = sticky;
		faults[kind].error = error;
		faults[kind].at = faults[kind].seen + number;
		return 0;
	}
	return -EINVAL;
}

static int ff_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	if (is_control(path)) {
		memset(st, 0, sizeof(*st));
		st->st_mode = S_IFREG | 0600;
		st->st_nlink = 1;
		return 0;
	}
	if (fi)
		return result(fstat(fi->fh, st));
	return result(fstatat(backing, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int ff_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
		      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	int fd = openat(backing, below(path), O_RDONLY | O_DIRECTORY);
	struct dirent *entry;
	DIR *dir;

	(void)off, (void)fi, (void)flags;
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while ((entry = readdir(dir)))
		fill(buf, entry->d_name, NULL, 0, 0);
	closedir(dir);
	return 0;
}

static int open_below(const char *path, struct fuse_file_info *fi, int more, mode_t mode)
{
	int error, fd;

	fi->direct_io = 1;
	if (is_control(path)) {
		fi->fh = -1;
		return 0;
	}
	error = strike(OPEN);
	if (error)
		return -error;
	fd = openat(backing, below(path), (fi->flags & ~(O_APPEND | O_DIRECT)) | more, mode);
	if (fd < 0)
		return -errno;
	fi->fh = fd;
	return 0;
}

static int ff_open(const char *path, struct fuse_file_info *fi)
{
	return open_below(path, fi, 0, 0);
}

static int ff_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return open_below(path, fi, O_CREAT, mode);
}

static int ff_read(const char *path, char *buf, size_t size, off_t off,
		   struct fuse_file_info *fi)
{
	ssize_t moved;
	int error;

	if (is_control(path))
		return off ? 0 : snprintf(buf, size, "reads %ld writes %ld fsyncs %ld opens %ld\n",
					  (long)faults[READ].seen, (long)faults[WRITE].seen,
					  (long)faults[FSYNC].seen, (long)faults[OPEN].seen);
	error = strike(READ);
	if (error)
		return -error;
	moved = pread(fi->fh, buf, size, off);
	return moved < 0 ? -errno : moved;
}

static int ff_write(const char *path, const char *buf, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	ssize_t moved;
	int error;

	if (is_control(path)) {
		char order[128] = "";

		memcpy(order, buf, size < sizeof(order) ? size : sizeof(order) - 1);
		error = obey(order);
		return error ? error : (int)size;
	}
	error = strike(WRITE);
	if (error)
		return -error;
	if (short_write_at && faults[WRITE].seen == short_write_at)
		size /= 2;
	moved = pwrite(fi->fh, buf, size, off);
	return moved < 0 ? -errno : moved;
}

static int ff_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	int error = strike(FSYNC);

	(void)path;
	if (error)
		return -error;
	return result(data_only ? fdatasync(fi->fh) : fsync(fi->fh));
}

static int ff_release(const char *path, struct fuse_file_info *fi)
{
	if (!is_control(path))
		close(fi->fh);
	return 0;
}

static int ff_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	int fd, rc;

	if (is_control(path))
		return 0;
	if (fi)
		return result(ftruncate(fi->fh, size));
	fd = openat(backing, below(path), O_WRONLY);
	if (fd < 0)
		return -errno;
	rc = result(ftruncate(fd, size));
	close(fd);
	return rc;
}

static int ff_unlink(const char *path)
{
	return result(unlinkat(backing, below(path), 0));
}

static int ff_rmdir(const char *path)
{
	return result(unlinkat(backing, below(path), AT_REMOVEDIR));
}

static int ff_mkdir(const char *path, mode_t mode)
{
	return result(mkdirat(backing, below(path), mode));
}

static int ff_rename(const char *from, const char *to, unsigned int flags)
{
	return result(renameat2(backing, below(from), backing, below(to), flags));
}

static int ff_fallocate(const char *path, int mode, off_t off, off_t size,
			struct fuse_file_info *fi)
{
	(void)path;
	return result(fallocate(fi->fh, mode, off, size));
}

static int ff_statfs(const char *path, struct statvfs *st)
{
	(void)path;
	return result(fstatvfs(backing, st));
}

static int ff_utimens(const char *path, const struct timespec times[2],
		      struct fuse_file_info *fi)
{
	(void)fi;
	return result(utimensat(backing, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static const struct fuse_operations operations = {
	.getattr = ff_getattr,
	.readdir = ff_readdir,
	.open = ff_open,
	.create = ff_create,
	.read = ff_read,
	.write = ff_write,
	.fsync = ff_fsync,
	.release = ff_release,
	.truncate = ff_truncate,
	.unlink = ff_unlink,
	.rmdir = ff_rmdir,
	.mkdir = ff_mkdir,
	.rename = ff_rename,
	.fallocate = ff_fallocate,
	.statfs = ff_statfs,
	.utimens = ff_utimens,
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
	argv[1] = argv[0];	/* what is left is fuse_main's: MOUNT and its options */
	return fuse_main(argc - 1, argv + 1, &operations, NULL);
}
