/* SPDX-License-Identifier: MIT
 *
 * What a static folder has for request paths, kept by path, those asked for most recently, and
 * looked at again once a second, so that a hot file costs no open(2). Small files are kept as
 * bytes, others as descriptors. What is not there is not kept: it may be there the next moment.
 * Under the loop lock.
 *
 * Whatever has to ask the disk is an opening: a job of loop/disk.h, one for all who ask for the
 * same path meanwhile. They wait in its list without a reference, so that one who leaves is taken
 * out.
 */
#ifndef RD_FILES_FILE_CACHE_H
#define RD_FILES_FILE_CACHE_H

#include "base/list.h"
#include "base/map.h"
#include "files/file_look.h"

#define RD_FILE_OPENINGS_MAX 64 /* at a time */

typedef struct rd_file_entry {
    rd_map_node node; /* by the path decoded, without its first slash */
    rd_list used;
    uint32_t refs; /* the cache's, and of those who answer with it */
    uint64_t checked_ms;
    rd_file_found is;
} rd_file_entry;

typedef struct rd_file_opening {
    rd_map_node node; /* as that of the entry */
    rd_list in_list;  /* of those in flight, later of whoever was told */
    rd_list waiting;  /* for it to be over, by rd_request.in_queue */
    rd_disk_job job;
    struct rd_file_cache *cache;
    rd_file *idle; /* a descriptor that it closes first, because there was none; or NULL */
    rd_file_found found;
    rd_file_entry *entry; /* when it is over: what is there, with a reference; or NULL */
    int error;            /* when it is over and there is no entry: see rd_file_cache_ask() */
    rd_file_path path;
} rd_file_opening;

typedef struct rd_file_cache {
    rd_loop *loop;
    rd_file_folder folder;
    rd_file_memo memo;
    rd_map entries;
    rd_list used;         /* the most recently used last */
    uint32_t files, open; /* kept; how many of them as descriptors */
    uint32_t most, most_open;
    rd_ledger *ledger; /* counts all that are open, those that are only being sent, too; or NULL */
    rd_map openings;   /* in flight */
    rd_list in_flight; /* the same, the oldest first */
    bool has_line;     /* others were told RD_FILE_BUSY: nothing is opened for who asks now */
    /* An opening is over, and the receiver's from now on. */
    void (*on_opened)(void *owner, rd_file_opening *opening);
    void *owner;
} rd_file_cache;

/* Takes the root over. `most`: files, siblings too. What stands below it is set afterwards,
 * if descriptors are scarce. */
void rd_file_cache_init(rd_file_cache *cache, rd_loop *loop, rd_file_root root, uint32_t most,
                        bool adds_html);

/* No opening is in flight any more. */
void rd_file_cache_clear(rd_file_cache *cache);

typedef enum rd_file_answer {
    RD_FILE_THERE,   /* *entry, with a reference for the caller */
    RD_FILE_NOWHERE, /* nothing is there */
    RD_FILE_ASKED,   /* *opening says so later; whoever waits for it puts itself into its list */
    RD_FILE_BUSY,    /* too many openings are in flight: to be asked again after one is over */
} rd_file_answer;

/* What the path of a request names. An opening fails with one of those errors that
 * rd_file_may_pass() when nobody can know, else with ENOENT. What is known already stays as long as
 * nobody can know better. */
rd_file_answer rd_file_cache_ask(rd_file_cache *cache, rd_slice path, uint64_t now_ms,
                                 rd_file_entry **entry, rd_file_opening **opening);

void rd_file_entry_unref(rd_file_entry *entry);

/* Gives back what on_opened() was given; nobody waits in it. */
void rd_file_opening_free(rd_file_opening *opening);

#endif
