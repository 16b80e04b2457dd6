/* SPDX-License-Identifier: MIT
 *
 * What a folder on a disk has for a path: the file, its encoded siblings, the fields that describe
 * them. Looking may wait for the disk, so a job does it (loop/disk.h). What can be known without
 * the disk is found out under the loop lock.
 */
#ifndef RD_FILES_FILE_LOOK_H
#define RD_FILES_FILE_LOOK_H

#include <sys/stat.h>

#include "base/hash.h"
#include "files/accept_encoding.h"
#include "files/file_conditions.h"
#include "files/file_open.h"
#include "files/file_path.h"
#include "transport/file.h"

#define RD_FILE_BYTES_MAX 16384 /* kept in memory */
#define RD_FILE_MEMO      64
#define RD_FILE_MEMO_MS   1000
#define RD_FILE_WALK_MAX  55 /* longer names are not remembered */

typedef struct rd_file_folder {
    rd_file_root root;
    bool adds_html; /* `name` may be `name.html` */
} rd_file_folder;

/* One representation: the file itself, or an encoded sibling. */
typedef struct rd_file_variant {
    int fd;        /* until `file` is set; -1 when the bytes are kept */
    rd_file *file; /* or NULL */
    char *bytes;
    struct stat facts;
    char etag[RD_ETAG_MAX];
    char modified[30];
    size_t etag_len;
} rd_file_variant;

typedef struct rd_file_found {
    bool is_folder; /* with an index: the path lacks its final slash */
    bool has_digest;
    rd_slice type;
    unsigned available; /* bits 1 << RD_CODING_* */
    rd_file_variant *variants[RD_CODING_COUNT];
} rd_file_found;

/* Opens and reads. Returns 0, or an errno. An errno of rd_file_may_pass() means that it is unknown
 * what is there, any other that nothing is there. Any thread. */
int rd_file_look(const rd_file_folder *folder, const rd_file_path *path, rd_file_found *found);

/* When the kernel was last seen to have the first segment of a path in its cache. The whole name
 * is kept: by a hash alone, a client could find another name, for which the kernel must ask the
 * disk. */
typedef struct rd_file_walk {
    uint64_t at_ms;
    uint8_t len; /* 0: none */
    char segment[RD_FILE_WALK_MAX];
} rd_file_walk;

typedef struct rd_file_memo {
    rd_file_walk walks[RD_FILE_MEMO];
} rd_file_memo;

/* Returns true when nothing is there and the disk need not be asked. Most requests are for the
 * application; for them, this call is the only cost. */
bool rd_file_is_nowhere(const rd_file_folder *folder, rd_file_memo *memo, const rd_file_path *path,
                        uint64_t now_ms);

#endif
