/* SPDX-License-Identifier: MIT
 *
 * What a static folder has for a request path: the file, its encoded siblings, the fields that
 * describe them. Kept by path, the most recently asked for, and looked at again once a second, so
 * that a hot file costs no open(2). Small files are kept as bytes, others as descriptors. What is
 * not there is not kept: it may be there the next moment. Under the loop lock.
 */
#ifndef RD_HTTP_FILE_CACHE_H
#define RD_HTTP_FILE_CACHE_H

#include <sys/stat.h>

#include "base/list.h"
#include "base/map.h"
#include "http/accept_encoding.h"
#include "http/file_conditions.h"
#include "http/file_open.h"
#include "transport/file.h"

#define RD_FILE_BYTES_MAX 16384 /* kept in memory */

/* One representation: the file itself, or a sibling that is encoded. */
typedef struct rd_file_variant {
    rd_file *file; /* NULL when its bytes are kept */
    char *bytes;
    struct stat facts;
    char etag[RD_ETAG_MAX];
    char modified[30];
    size_t etag_len;
} rd_file_variant;

typedef struct rd_file_entry {
    rd_map_node node; /* by the path decoded, without its first slash */
    rd_list used;
    uint64_t checked_ms;
    bool is_folder; /* with an index: the path lacks its slash */
    bool has_digest;
    rd_slice type;
    unsigned available; /* bits 1 << RD_CODING_* */
    rd_file_variant *variants[RD_CODING_COUNT];
} rd_file_entry;

typedef struct rd_file_cache {
    rd_file_root root;
    rd_map entries;
    rd_list used;         /* the most recently used last */
    uint32_t files, open; /* kept; how many of them as descriptors */
    uint32_t most, most_open;
    uint32_t all_open; /* those that are only being sent, too */
    uint32_t most_descriptors;
    const uint32_t *other_descriptors; /* NULL: nobody counts them */
    bool adds_html;                    /* `name` may be `name.html` */
} rd_file_cache;

/* Takes the root over. `most`: files, siblings too. What stands below it is set afterwards,
 * if descriptors are scarce. */
void rd_file_cache_init(rd_file_cache *cache, rd_file_root root, uint32_t most, bool adds_html);
void rd_file_cache_clear(rd_file_cache *cache);

/* Whether connections and files together have all descriptors that they may have. */
bool rd_file_cache_is_full(const rd_file_cache *cache);

/* NULL with errno: one of those that rd_file_may_pass() when nobody can know, else there is
 * nothing. What is known already stays as long as nobody can know better. Valid until the next
 * call. */
rd_file_entry *rd_file_cache_find(rd_file_cache *cache, rd_slice path, uint64_t now_ms);

#endif
