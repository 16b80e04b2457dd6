/* SPDX-License-Identifier: MIT
 *
 * What a static folder has for request paths, cached by path, the most recently requested ones. An
 * entry is checked again after a second, so that a hot file costs no open(2). Small files are kept
 * as bytes, others as descriptors. Missing files are not cached: they may exist the next moment.
 * Under the loop lock.
 *
 * An opening asks the disk: a job of loop/disk.h, one for all requests of the same path. They wait
 * in its list without a reference, so that a request whose client leaves can be removed.
 */
#ifndef RD_FILES_FILE_CACHE_H
#define RD_FILES_FILE_CACHE_H

#include "base/list.h"
#include "base/map.h"
#include "files/file_look.h"

#define RD_FILE_OPENINGS_MAX 64 /* at a time */

typedef struct rd_file_entry {
    rd_map_node node; /* by the decoded path, without its first slash */
    rd_list used;
    uint32_t refs; /* the cache's, and one for each request that is answered with it */
    uint64_t checked_ms;
    rd_file_found is;
} rd_file_entry;

typedef struct rd_file_opening {
    rd_map_node node; /* same key as that of the entry */
    rd_list in_list;  /* of those in flight, later of the receiver */
    rd_list waiting;  /* for the end of the opening, by rd_request.in_queue */
    rd_disk_job job;
    struct rd_file_cache *cache;
    rd_file *idle; /* a descriptor to close first, because there was none left; or NULL */
    rd_file_found found;
    rd_file_entry *entry; /* after the end: the result, with a reference; or NULL */
    int error;            /* after the end, without an entry: see rd_file_cache_ask() */
    rd_file_path path;
} rd_file_opening;

typedef struct rd_file_cache {
    rd_loop *loop;
    rd_file_folder folder;
    rd_file_memo memo;
    rd_map entries;
    rd_list used;         /* the most recently used last */
    uint32_t files, open; /* cached; how many of them as descriptors */
    uint32_t most, most_open;
    rd_ledger *ledger; /* counts all open files, also those that are only being sent; or NULL */
    rd_map openings;   /* in flight */
    rd_list in_flight; /* the same, the oldest first */
    bool has_line;     /* others got RD_FILE_BUSY and wait: nothing is opened for new requests */
    /* An opening has ended, and belongs to the receiver from now on. */
    void (*on_opened)(void *owner, rd_file_opening *opening);
    void *owner;
} rd_file_cache;

/* Takes the root over. `most`: files, siblings included. The members below `most` are set
 * afterwards, when descriptors are scarce. */
void rd_file_cache_init(rd_file_cache *cache, rd_loop *loop, rd_file_root root, uint32_t most,
                        bool adds_html);

/* Only when no opening is in flight. */
void rd_file_cache_clear(rd_file_cache *cache);

typedef enum rd_file_answer {
    RD_FILE_THERE,   /* *entry, with a reference for the caller */
    RD_FILE_NOWHERE, /* nothing is there */
    RD_FILE_ASKED,   /* *opening will have the result; a request that waits for it puts itself
                      * into its list */
    RD_FILE_BUSY,    /* too many openings are in flight: ask again after one has ended */
} rd_file_answer;

/* What the path of a request names. An opening that cannot find out ends with an error of
 * rd_file_may_pass(), otherwise it ends with ENOENT when nothing is there. A cached entry stays as
 * long as the disk cannot be asked. */
rd_file_answer rd_file_cache_ask(rd_file_cache *cache, rd_slice path, uint64_t now_ms,
                                 rd_file_entry **entry, rd_file_opening **opening);

void rd_file_entry_unref(rd_file_entry *entry);

/* Frees an opening that on_opened() received. No request may wait in it. */
void rd_file_opening_free(rd_file_opening *opening);

#endif
