/* SPDX-License-Identifier: MIT
 *
 * The floor of the tables of files: what sending them costs the kernel. One thread, epoll, staged
 * like floor.c. Every file of the folder is opened at the start; a small one goes out with its head
 * in one send(), a big one with sendfile(), at most 256 KiB of each connection a turn. It takes
 * each request to come whole and reads nothing of it but the path; what is no file is greeted.
 * Usage: file_floor PORT FOLDER (on 127.0.0.1). */
#include "floor_base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 32, SMALL_BYTES = 16384, HEAD_ROOM = 256, SLICE_BYTES = 262144 };

static const char HELLO[] = "Hello, World!";

typedef struct rd_entry {
    char name[64]; /* as in a request, with the slash before and the space behind */
    size_t name_len, size;
    int fd;
    char start[HEAD_ROOM + SMALL_BYTES]; /* the head; the whole of a small one behind it */
    size_t start_len;
} rd_entry;

/* What a connection gets; entry is NULL between two answers. */
typedef struct rd_sending {
    const rd_entry *entry;
    off_t at;
    bool has_begun, closes;
    bool is_late; /* watched for room in its socket */
} rd_sending;

static rd_entry entries[MOST_FILES];
static unsigned entry_count;
static rd_sending sendings[RD_FLOOR_MAX_FD];

static rd_entry *entry_add(const char *name, size_t size) {
    rd_entry *entry = &entries[entry_count++];
    entry->size = size;
    entry->fd = -1;
    entry->name_len = (size_t)snprintf(entry->name, sizeof entry->name, "/%s ", name);
    entry->start_len = (size_t)snprintf(entry->start, HEAD_ROOM,
                                        "HTTP/1.1 200 OK\r\nserver: bare-loop\r\ncontent-type: "
                                        "application/octet-stream\r\ncontent-length: %zu\r\n\r\n",
                                        size);
    return entry;
}

static void file_add(const char *folder, const char *name) {
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0) rd_floor_fail(path);
    rd_entry *entry = entry_add(name, (size_t)info.st_size);
    entry->fd = fd;
    if (entry->size > SMALL_BYTES) return;
    if (pread(fd, entry->start + entry->start_len, entry->size, 0) != info.st_size)
        rd_floor_fail(path);
    entry->start_len += entry->size;
}

/* The first entry is the answer to a path that is not a file. */
static void folder_read(const char *folder) {
    DIR *listing = opendir(folder);
    rd_entry *hello = entry_add("", sizeof HELLO - 1);
    memcpy(hello->start + hello->start_len, HELLO, sizeof HELLO - 1);
    hello->start_len += sizeof HELLO - 1;
    if (!listing) rd_floor_fail(folder);
    for (struct dirent *each; entry_count < MOST_FILES && (each = readdir(listing));)
        if (each->d_type == DT_REG) file_add(folder, each->d_name);
    closedir(listing);
}

static void watch(const rd_floor *floor, int fd, bool late) {
    struct epoll_event event = {.events = late ? EPOLLOUT : EPOLLIN, .data.fd = fd};
    if (sendings[fd].is_late == late) return;
    sendings[fd].is_late = late;
    epoll_ctl(floor->poller, EPOLL_CTL_MOD, fd, &event);
}

/* Sends the head, and a small file with it. It is so much smaller than a socket's buffer that a
 * short write ends the connection. */
static bool start_send(int fd, rd_sending *sending) {
    const rd_entry *entry = sending->entry;
    bool is_small = entry->size <= SMALL_BYTES;
    int flags = MSG_NOSIGNAL | (is_small ? 0 : MSG_MORE);
    if (send(fd, entry->start, entry->start_len, flags) != (ssize_t)entry->start_len) return false;
    sending->has_begun = true;
    if (is_small) sending->at = (off_t)entry->size;
    return true;
}

/* Returns false if the connection cannot be used any more. */
static bool slice_send(const rd_floor *floor, int fd) {
    rd_sending *sending = &sendings[fd];
    if (!sending->has_begun && !start_send(fd, sending)) return false;
    size_t left = sending->entry->size - (size_t)sending->at;
    if (left > 0) {
        size_t slice = left < SLICE_BYTES ? left : SLICE_BYTES;
        ssize_t sent = sendfile(fd, sending->entry->fd, &sending->at, slice);
        if (sent == 0 || (sent < 0 && errno != EAGAIN)) return false;
    }
    bool is_whole = sending->at == (off_t)sending->entry->size;
    if (is_whole) sending->entry = NULL;
    watch(floor, fd, !is_whole);
    return !is_whole || !sending->closes;
}

/* Returns false if the connection cannot be used any more. */
static bool request_read(int fd) {
    char request[8192];
    rd_sending *sending = &sendings[fd];
    ssize_t got = recv(fd, request, sizeof request, 0);
    if (got <= 4) return got < 0 && errno == EAGAIN;
    const rd_entry *found = &entries[0];
    for (unsigned i = 1; i < entry_count; i++)
        if ((size_t)got >= 4 + entries[i].name_len &&
            memcmp(request + 4, entries[i].name, entries[i].name_len) == 0)
            found = &entries[i];
    bool closes = memmem(request, (size_t)got, "Connection: close", 17) != NULL;
    *sending = (rd_sending){.entry = found, .closes = closes, .is_late = sending->is_late};
    return true;
}

int main(int argc, char **argv) {
    static struct epoll_event events[RD_FLOOR_EVENTS];
    if (argc < 3) rd_floor_fail("usage: file_floor PORT FOLDER");
    folder_read(argv[2]);
    rd_floor floor = rd_floor_open(argv[1]);
    for (;;) {
        int count = epoll_wait(floor.poller, events, RD_FLOOR_EVENTS, -1), accepted;
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == floor.listener)
                while ((accepted = rd_floor_accept(&floor)) >= 0)
                    sendings[accepted] = (rd_sending){0};
            else if (!sendings[fd].entry && !request_read(fd))
                close(fd);
        }
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (sendings[fd].entry && !slice_send(&floor, fd)) close(fd), sendings[fd].entry = NULL;
        }
    }
}
