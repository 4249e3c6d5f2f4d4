/*
 * A SCSI disk with Command Duration Limits, in software, for tests: the part of
 * Linux's target core that a program serves (target_core_user,
 * Documentation/target/tcmu-design.rst). The kernel hands every command of the
 * disk down in a ring that is mapped from /dev/uioN; this program answers.
 *
 *   cdl-disk UIO IMAGE BYTES SERVICE_US STATS
 *
 * The disk has one head: it serves one read or write at a time, SERVICE_US
 * microseconds each, the one whose limit comes first before others (an I/O
 * without a limit has ten seconds). An I/O whose limit passes while it waits is
 * given back without data where the limit's policy says so. Twice a second STATS
 * gets a line for reads and one for writes: how many I/Os named limit 0 (none)
 * to 7, how many of those took longer than their limit, and how many were given
 * back without data.
 */
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* struct iovec is there already; the kernel's header would define it again. */
#define _LINUX_UIO_H
#define __LINUX_UIO_H
#define _UAPI__LINUX_UIO_H
#include <linux/types.h>
#include <linux/target_core_user.h>

#define BLOCK 512
#define PAGE_BYTES 232 /* head of 8, seven descriptors of 32 (SPC-6) */
#define NO_LIMIT_NS 10000000000ull
#define STATS_NS 500000000ull

enum { READS, WRITES };
enum { GOOD = 0x00, CHECK_CONDITION = 0x02 };
/* Sense keys and codes (SPC-6 annex). */
enum { MEDIUM_ERROR = 0x3, ILLEGAL_REQUEST = 0x5, ABORTED_COMMAND = 0xb, COMPLETED = 0xf };

struct io {
    struct io *next;
    uint16_t id;
    uint8_t cdb[32];
    struct iovec *buffers;
    int buffer_count;
    uint64_t arrived_ns, due_ns;
    int dir, limit;
};

static struct tcmu_mailbox *ring;
static uint32_t ring_at; /* what of the ring was read */
static int ring_fd, image_fd;
static uint64_t disk_bytes, service_ns;
static const char *stats_path;
static uint8_t pages[2][PAGE_BYTES];
static uint64_t named[2][8], late[2][8], given_up[2][8];
static struct io *waiting, *served;
static uint64_t served_until_ns;
static volatile sig_atomic_t ended;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t big_endian(const uint8_t *from, int bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | *from++;
    return value;
}

static void put(uint8_t *to, int bytes, uint64_t value)
{
    while (bytes-- > 0) {
        to[bytes] = value;
        value >>= 8;
    }
}

/* The descriptor that an I/O names; limit is 1 to 7. */
static uint8_t *descriptor(int dir, int limit)
{
    return pages[dir] + 8 + 32 * (limit - 1);
}

/* Its duration guideline; 0 for none. */
static uint64_t limit_ns(int dir, int limit)
{
    const uint8_t *d = descriptor(dir, limit);
    uint64_t count = big_endian(d + 10, 2);
    switch (d[0] & 0xf) {
    case 0x6: return count * 500;
    case 0x8: return count * 1000;
    case 0xa: return count * 10000000;
    case 0xe: return count * 500000000;
    }
    return 0;
}

/* ---- the ring ---- */

static struct tcmu_cmd_entry *entry_at(uint32_t offset)
{
    return (void *)((char *)ring + ring->cmdr_off + offset);
}

static uint32_t after(uint32_t offset)
{
    return (offset + tcmu_hdr_get_len(entry_at(offset)->hdr.len_op)) % ring->cmdr_size;
}

static void advance_tail(void)
{
    __atomic_store_n(&ring->cmd_tail, after(ring->cmd_tail), __ATOMIC_SEQ_CST);
}

/* Answers are put where the oldest unanswered command stood, whichever it was. */
static void answer(uint16_t id, uint8_t status, uint8_t key, uint8_t asc, uint8_t ascq)
{
    while (tcmu_hdr_get_op(entry_at(ring->cmd_tail)->hdr.len_op) != TCMU_OP_CMD)
        advance_tail();
    struct tcmu_cmd_entry *entry = entry_at(ring->cmd_tail);
    uint8_t *sense = (uint8_t *)entry->rsp.sense_buffer;
    entry->hdr.cmd_id = id;
    entry->hdr.uflags = 0;
    entry->rsp.scsi_status = status;
    entry->rsp.read_len = 0;
    memset(sense, 0, TCMU_SENSE_BUFFERSIZE);
    if (status != GOOD) {
        sense[0] = 0x70; /* fixed format, current */
        sense[2] = key;
        sense[7] = 10;
        sense[12] = asc;
        sense[13] = ascq;
    }
    advance_tail();
}

static void refuse(struct io *io, uint8_t asc)
{
    answer(io->id, CHECK_CONDITION, ILLEGAL_REQUEST, asc, 0);
}

static void copy_to(struct io *io, const uint8_t *from, size_t bytes)
{
    for (int i = 0; i < io->buffer_count && bytes > 0; i++) {
        size_t part = io->buffers[i].iov_len < bytes ? io->buffers[i].iov_len : bytes;
        memcpy(io->buffers[i].iov_base, from, part);
        from += part;
        bytes -= part;
    }
}

static size_t copy_from(struct io *io, uint8_t *to, size_t room)
{
    size_t done = 0;
    for (int i = 0; i < io->buffer_count && done < room; i++) {
        size_t left = room - done;
        size_t part = io->buffers[i].iov_len < left ? io->buffers[i].iov_len : left;
        memcpy(to + done, io->buffers[i].iov_base, part);
        done += part;
    }
    return done;
}

/* ---- commands that are answered at once ---- */

static int inquiry(const uint8_t *cdb, uint8_t *to)
{
    static const uint8_t known[] = { 0x00, 0x80, 0x83, 0xb0, 0xb1 };
    to[1] = cdb[2];
    if (!(cdb[1] & 1)) {
        to[1] = 0;
        to[2] = 7; /* SPC-5: the kernel asks no older disk for limits */
        to[3] = 0x12;
        to[4] = 91;
        to[7] = 2; /* CMDQUE */
        memcpy(to + 8, "FATHOM  SOFT-CDL-DISK   0001", 28);
        return 96;
    }
    switch (cdb[2]) {
    case 0x00:
        memcpy(to + 4, known, sizeof known);
        put(to + 2, 2, sizeof known);
        return 4 + sizeof known;
    case 0x80:
        memcpy(to + 4, "SOFTCDL1", 8);
        put(to + 2, 2, 8);
        return 12;
    case 0x83: /* one NAA identifier */
        to[4] = 1;
        to[5] = 3;
        to[7] = 8;
        put(to + 8, 8, 0x5001405cd1000001ull);
        put(to + 2, 2, 12);
        return 16;
    case 0xb0:
        put(to + 2, 2, 0x3c);
        put(to + 8, 4, 1024); /* longest transfer, blocks */
        return 64;
    case 0xb1:
        put(to + 2, 2, 0x3c);
        put(to + 4, 2, 7200); /* turns a minute */
        return 64;
    }
    return -1;
}

/* The pages asked for, one after the other; bytes written. */
static int mode_pages(uint8_t page, uint8_t subpage, uint8_t *to)
{
    static const uint8_t caching[20] = { 0x08, 0x12, 0x04 };
    static const uint8_t plain[12] = { 0x0a, 0x0a, 0x02, 0x10 };
    int all = page == 0x3f, every = subpage == 0xff, n = 0;
    if (page == 0x08 || all) {
        memcpy(to + n, caching, sizeof caching);
        n += sizeof caching;
    }
    if ((page == 0x0a && (subpage == 0 || every)) || all) {
        memcpy(to + n, plain, sizeof plain);
        n += sizeof plain;
    }
    for (int dir = READS; dir <= WRITES; dir++)
        if ((page == 0x0a && (subpage == 7 + dir || every)) || (all && every)) {
            memcpy(to + n, pages[dir], PAGE_BYTES);
            n += PAGE_BYTES;
        }
    return n;
}

static int mode_sense(const uint8_t *cdb, uint8_t *to)
{
    int ten = cdb[0] == 0x5a, head = ten ? 8 : 4;
    int n = mode_pages(cdb[2] & 0x3f, cdb[3], to + head);
    if (n == 0)
        return -1;
    n += head;
    put(to, ten ? 2 : 1, n - (ten ? 2 : 1));
    to[ten ? 3 : 2] = 0x10; /* DPOFUA */
    int room = ten ? (int)big_endian(cdb + 7, 2) : cdb[4];
    return n < room ? n : room;
}

static void mode_select(struct io *io)
{
    uint8_t list[1024];
    size_t bytes = copy_from(io, list, sizeof list);
    size_t at = io->cdb[0] == 0x15 ? 4u + list[3] : 8u + big_endian(list + 6, 2);
    if (bytes >= at + PAGE_BYTES && (list[at] & 0x7f) == 0x4a
        && (list[at + 1] == 7 || list[at + 1] == 8)) {
        memcpy(pages[list[at + 1] - 7] + 4, list + at + 4, PAGE_BYTES - 4);
        answer(io->id, GOOD, 0, 0, 0);
    } else {
        refuse(io, 0x26); /* invalid field in parameter list */
    }
}

/* REPORT SUPPORTED OPERATION CODES, one command at a time. */
static int supported(const uint8_t *cdb, uint8_t *to)
{
    static const uint8_t known[] = { 0x00, 0x03, 0x08, 0x0a, 0x12, 0x15, 0x1a, 0x1b, 0x25, 0x28,
                                     0x2a, 0x35, 0x55, 0x5a, 0x88, 0x8a, 0x91, 0x9e, 0xa3 };
    uint8_t op = cdb[3];
    int page = op == 0x88 ? 1 : op == 0x8a ? 2 : 0;
    if (!(cdb[2] & 7))
        return -1;
    int bytes = op < 0x20 ? 6 : op < 0x60 ? 10 : op < 0xa0 ? 16 : 12;
    to[0] = page ? 1 : 0; /* RWCDLP: T2A and T2B are meant */
    to[1] = (memchr(known, op, sizeof known) ? 3 : 1) | page << 3;
    put(to + 2, 2, bytes);
    to[4] = op;
    int room = big_endian(cdb + 6, 4);
    return 4 + bytes < room ? 4 + bytes : room;
}

/* LOG SENSE: how many I/Os missed each limit (page 19h, subpage 21h), and no other page.
 * All times are guidelines here. */
static int log_sense(const uint8_t *cdb, uint8_t *to)
{
    if ((cdb[2] & 0x3f) != 0x19 || cdb[3] != 0x21)
        return -1;
    int n = 4;
    to[0] = 0x59; /* SPF */
    to[1] = 0x21;
    for (int dir = READS; dir <= WRITES; dir++)
        for (int limit = 1; limit < 8; limit++) {
            put(to + n, 2, (dir == READS ? 0x10 : 0x20) + limit);
            to[n + 3] = 32;
            put(to + n + 12, 4, late[dir][limit] + given_up[dir][limit]);
            n += 36;
        }
    put(to + 2, 2, n - 4);
    int room = big_endian(cdb + 7, 2);
    return n < room ? n : room;
}

static void control(struct io *io)
{
    uint8_t data[1024] = { 0 }, *cdb = io->cdb;
    int n = -1;
    switch (cdb[0]) {
    case 0x00: /* TEST UNIT READY, START STOP UNIT, SYNCHRONIZE CACHE */
    case 0x1b:
    case 0x35:
    case 0x91:
        n = 0;
        break;
    case 0x03: /* REQUEST SENSE */
        data[0] = 0x70;
        data[7] = 10;
        n = 18;
        break;
    case 0x12:
        n = inquiry(cdb, data);
        break;
    case 0x15: /* MODE SELECT */
    case 0x55:
        mode_select(io);
        return;
    case 0x1a: /* MODE SENSE */
    case 0x5a:
        n = mode_sense(cdb, data);
        break;
    case 0x25: /* READ CAPACITY(10) */
        put(data, 4, disk_bytes / BLOCK - 1);
        put(data + 4, 4, BLOCK);
        n = 8;
        break;
    case 0x4d:
        n = log_sense(cdb, data);
        break;
    case 0x9e: /* READ CAPACITY(16) */
        if ((cdb[1] & 0x1f) == 0x10) {
            put(data, 8, disk_bytes / BLOCK - 1);
            put(data + 8, 4, BLOCK);
            data[13] = 3;
            n = 32;
        }
        break;
    case 0xa3:
        if ((cdb[1] & 0x1f) == 0x0c)
            n = supported(cdb, data);
        break;
    default:
        refuse(io, 0x20); /* invalid operation code */
        return;
    }
    if (n < 0) {
        refuse(io, 0x24); /* invalid field in CDB */
        return;
    }
    copy_to(io, data, n);
    answer(io->id, GOOD, 0, 0, 0);
}

/* ---- reads and writes ---- */

/* Whether the command is one; then where, how much and under which limit. */
static int is_io(struct io *io)
{
    switch (io->cdb[0]) {
    case 0x0a:
    case 0x2a:
    case 0x8a:
        io->dir = WRITES;
        break;
    case 0x08:
    case 0x28:
    case 0x88:
        io->dir = READS;
        break;
    default:
        return 0;
    }
    /* DLD2 is bit 0 of byte 1, DLD1 and DLD0 are bits 7 and 6 of byte 14 (SBC-5). */
    if (io->cdb[0] == 0x88 || io->cdb[0] == 0x8a)
        io->limit = (io->cdb[1] & 1) << 2 | io->cdb[14] >> 6;
    return 1;
}

static void transfer(struct io *io)
{
    uint64_t block;
    uint32_t blocks;
    switch (io->cdb[0] & 0xe0) {
    case 0x80:
        block = big_endian(io->cdb + 2, 8);
        blocks = big_endian(io->cdb + 10, 4);
        break;
    case 0x20:
        block = big_endian(io->cdb + 2, 4);
        blocks = big_endian(io->cdb + 7, 2);
        break;
    default:
        block = big_endian(io->cdb + 1, 3) & 0x1fffff;
        blocks = io->cdb[4] ? io->cdb[4] : 256;
    }
    if (block + blocks > disk_bytes / BLOCK) {
        refuse(io, 0x21); /* beyond the end */
        return;
    }
    size_t left = (size_t)blocks * BLOCK;
    off_t at = block * BLOCK;
    for (int i = 0; i < io->buffer_count && left > 0; i++) {
        size_t part = io->buffers[i].iov_len < left ? io->buffers[i].iov_len : left;
        void *memory = io->buffers[i].iov_base;
        ssize_t moved = io->dir == WRITES ? pwrite(image_fd, memory, part, at)
                                          : pread(image_fd, memory, part, at);
        if (moved != (ssize_t)part) {
            answer(io->id, CHECK_CONDITION, MEDIUM_ERROR, io->dir == WRITES ? 0x0c : 0x11, 0);
            return;
        }
        at += part;
        left -= part;
    }
    answer(io->id, GOOD, 0, 0, 0);
}

static void forget(struct io *io)
{
    free(io->buffers);
    free(io);
}

static void arrive(struct io *io)
{
    named[io->dir][io->limit]++;
    uint64_t limit = io->limit ? limit_ns(io->dir, io->limit) : 0;
    io->due_ns = io->arrived_ns + (limit ? limit : NO_LIMIT_NS);
    struct io **end = &waiting;
    while (*end)
        end = &(*end)->next;
    *end = io;
}

/* Gives up those that wait beyond their limit, where their policy says so. */
static int give_up(uint64_t now)
{
    int done = 0;
    struct io **at = &waiting;
    while (*at) {
        struct io *io = *at;
        int policy = io->limit ? descriptor(io->dir, io->limit)[14] & 0xf : 0;
        if (now <= io->due_ns || (policy != 0xd && policy != 0xf)) {
            at = &io->next;
            continue;
        }
        *at = io->next;
        given_up[io->dir][io->limit]++;
        if (policy == 0xf)
            answer(io->id, CHECK_CONDITION, ABORTED_COMMAND, 0x2e, 0x01);
        else
            answer(io->id, CHECK_CONDITION, COMPLETED, 0x55, 0x0a);
        forget(io);
        done = 1;
    }
    return done;
}

/* Ends what was served, and takes the next: the one that is due first. */
static int serve(uint64_t now)
{
    int done = 0;
    if (served && now >= served_until_ns) {
        late[served->dir][served->limit] += now > served->due_ns;
        transfer(served);
        forget(served);
        served = NULL;
        done = 1;
    }
    if (!served && waiting) {
        struct io **first = &waiting;
        for (struct io **at = &waiting; *at; at = &(*at)->next)
            if ((*at)->due_ns < (*first)->due_ns)
                first = at;
        served = *first;
        *first = served->next;
        served_until_ns = now + service_ns;
    }
    return done;
}

/* Takes the commands that have come; whether one was answered at once. */
static int take(void)
{
    int done = 0;
    uint32_t head = __atomic_load_n(&ring->cmd_head, __ATOMIC_ACQUIRE);
    for (; ring_at != head; ring_at = after(ring_at)) {
        struct tcmu_cmd_entry *entry = entry_at(ring_at);
        if (tcmu_hdr_get_op(entry->hdr.len_op) != TCMU_OP_CMD)
            continue;
        struct io *io = calloc(1, sizeof *io);
        io->id = entry->hdr.cmd_id;
        memcpy(io->cdb, (char *)ring + entry->req.cdb_off, sizeof io->cdb);
        io->buffer_count = entry->req.iov_cnt;
        io->buffers = calloc(io->buffer_count + 1, sizeof *io->buffers);
        for (int i = 0; i < io->buffer_count; i++) {
            io->buffers[i].iov_base = (char *)ring + (size_t)entry->req.iov[i].iov_base;
            io->buffers[i].iov_len = entry->req.iov[i].iov_len;
        }
        io->arrived_ns = now_ns();
        if (is_io(io)) {
            arrive(io);
        } else {
            control(io);
            forget(io);
            done = 1;
        }
    }
    return done;
}

static void count_line(FILE *file, const char *name, const uint64_t *counts)
{
    fprintf(file, " %s", name);
    for (int limit = 0; limit < 8; limit++)
        fprintf(file, " %llu", (unsigned long long)counts[limit]);
}

/* Whole or not at all: who reads meanwhile reads the one before. */
static void write_stats(void)
{
    char part[4096];
    snprintf(part, sizeof part, "%s.part", stats_path);
    FILE *file = fopen(part, "w");
    if (!file)
        return;
    for (int dir = READS; dir <= WRITES; dir++) {
        fputs(dir == READS ? "reads" : "writes", file);
        count_line(file, "named", named[dir]);
        count_line(file, "late", late[dir]);
        count_line(file, "given-up", given_up[dir]);
        fputc('\n', file);
    }
    fclose(file);
    rename(part, stats_path);
}

static void wait_for_work(void)
{
    struct pollfd ready = { .fd = ring_fd, .events = POLLIN };
    struct timespec time = { .tv_nsec = STATS_NS / 2 };
    if (served) {
        uint64_t now = now_ns();
        uint64_t left = served_until_ns > now ? served_until_ns - now : 0;
        time.tv_sec = left / 1000000000;
        time.tv_nsec = left % 1000000000;
    }
    uint32_t events;
    if (ppoll(&ready, 1, &time, NULL) > 0 && read(ring_fd, &events, sizeof events) < 0
        && errno != EAGAIN)
        perror("cdl-disk: uio");
}

static void end(int signal)
{
    (void)signal;
    ended = 1;
}

static int open_ring(const char *uio)
{
    char path[128];
    unsigned long bytes = 0;
    snprintf(path, sizeof path, "/sys/class/uio/%s/maps/map0/size", uio);
    FILE *size = fopen(path, "r");
    if (!size || fscanf(size, "%lx", &bytes) != 1)
        return -1;
    fclose(size);
    snprintf(path, sizeof path, "/dev/%s", uio);
    ring_fd = open(path, O_RDWR | O_NONBLOCK);
    if (ring_fd < 0)
        return -1;
    ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
    return ring == MAP_FAILED ? -1 : 0;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: %s UIO IMAGE BYTES SERVICE_US STATS\n", argv[0]);
        return 2;
    }
    disk_bytes = strtoull(argv[3], NULL, 0);
    service_ns = strtoull(argv[4], NULL, 0) * 1000;
    stats_path = argv[5];
    image_fd = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (image_fd < 0 || ftruncate(image_fd, disk_bytes) != 0 || open_ring(argv[1]) != 0) {
        perror("cdl-disk");
        return 1;
    }
    for (int dir = READS; dir <= WRITES; dir++) {
        pages[dir][0] = 0x4a;
        pages[dir][1] = 7 + dir;
        put(pages[dir] + 2, 2, PAGE_BYTES - 4);
    }
    /* Limits of its own, so that it can be seen whether they come back. */
    descriptor(READS, 1)[0] = 0xa;
    put(descriptor(READS, 1) + 10, 2, 77);
    signal(SIGTERM, end);
    signal(SIGINT, end);
    ring_at = ring->cmd_tail;
    uint64_t told_ns = 0;
    while (!ended) {
        int done = take();
        uint64_t now = now_ns();
        done |= give_up(now);
        done |= serve(now);
        if (now - told_ns > STATS_NS) {
            told_ns = now;
            write_stats();
        }
        if (done) {
            uint32_t any = 1; /* tells the kernel to look */
            if (write(ring_fd, &any, sizeof any) < 0)
                perror("cdl-disk: uio");
        } else {
            wait_for_work();
        }
    }
    write_stats();
    return 0;
}
