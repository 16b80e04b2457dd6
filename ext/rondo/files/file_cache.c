/* SPDX-License-Identifier: MIT
 *
 * Keeps what was found, and asks the disk for the rest; see file_cache.h.
 */
#include "files/file_cache.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/platform.h"

#define LOOK_AGAIN_MS 1000

/* ---- one representation ---- */

static void free_variant(rd_file_variant *variant) {
    if (variant == NULL) return;
    if (variant->file != NULL) rd_file_unref(variant->file);
    rd_free(variant->bytes);
    rd_free(variant);
}

static bool is_same(const rd_file_variant *a, const rd_file_variant *b) {
    if (a == NULL || b == NULL) return a == b;
    return a->facts.st_dev == b->facts.st_dev && a->facts.st_ino == b->facts.st_ino &&
           a->facts.st_size == b->facts.st_size &&
           rd_file_mtime_ns(&a->facts) == rd_file_mtime_ns(&b->facts) &&
           a->facts.st_ctim.tv_sec == b->facts.st_ctim.tv_sec &&
           a->facts.st_ctim.tv_nsec == b->facts.st_ctim.tv_nsec;
}

/* ---- the cache ---- */

static void free_found(rd_file_found *found) {
    for (unsigned i = 0; i < RD_CODING_COUNT; i++) free_variant(found->variants[i]);
}

void rd_file_entry_unref(rd_file_entry *entry) {
    if (--entry->refs > 0) return;
    free_found(&entry->is);
    rd_free(entry);
}

/* An entry that only says that a folder lacks its slash counts as one file. */
static void count(rd_file_cache *cache, const rd_file_entry *entry, bool adds) {
    uint32_t files = entry->is.is_folder, open = 0;
    for (unsigned i = 0; i < RD_CODING_COUNT; i++) {
        if (entry->is.variants[i] == NULL) continue;
        files++;
        if (entry->is.variants[i]->file != NULL) open++;
    }
    cache->files = adds ? cache->files + files : cache->files - files;
    cache->open = adds ? cache->open + open : cache->open - open;
}

static void drop(rd_file_cache *cache, rd_file_entry *entry) {
    count(cache, entry, false);
    rd_map_remove(&cache->entries, &entry->node);
    rd_list_unlink(&entry->used);
    rd_file_entry_unref(entry);
}

static rd_file_entry *entry_of(rd_list *used) {
    return RD_CONTAINER(used, rd_file_entry, used);
}

void rd_file_cache_init(rd_file_cache *cache, rd_loop *loop, rd_file_root root, uint32_t most,
                        bool adds_html) {
    *cache = (rd_file_cache){.loop = loop, .most = most, .most_open = most};
    cache->folder = (rd_file_folder){root, adds_html};
    rd_map_init(&cache->openings);
    rd_list_init(&cache->in_flight);
    rd_map_init(&cache->entries);
    rd_list_init(&cache->used);
}

void rd_file_cache_clear(rd_file_cache *cache) {
    while (!rd_list_is_empty(&cache->used)) drop(cache, entry_of(cache->used.next));
    rd_map_clear(&cache->entries);
    rd_map_clear(&cache->openings);
    rd_file_root_close(&cache->folder.root);
}

/* One of its files that is not being sent, or NULL. */
static rd_file *idle_file(const rd_file_found *found) {
    for (unsigned i = 0; i < RD_CODING_COUNT; i++) {
        const rd_file_variant *variant = found->variants[i];
        if (variant != NULL && variant->file != NULL && variant->file->refs == 1) {
            return variant->file;
        }
    }
    return NULL;
}

/* Drops the least recently used entry that has such a file and that no request holds, but not
 * `kept`. Returns the file with a reference, or NULL when there is none. */
static rd_file *drop_idle(rd_file_cache *cache, const rd_file_entry *kept) {
    for (rd_list *at = cache->used.next; at != &cache->used; at = at->next) {
        rd_file_entry *entry = entry_of(at);
        rd_file *file = entry == kept || entry->refs > 1 ? NULL : idle_file(&entry->is);
        if (file == NULL) continue;
        rd_file_ref(file);
        drop(cache, entry);
        return file;
    }
    return NULL;
}

/* The file that was opened last is counted already. */
static bool is_full(const rd_file_cache *cache) {
    return cache->ledger != NULL && rd_ledger_lacks_descriptors(cache->ledger);
}

/* Files sent to slow clients must not take the descriptors that others need. Small files do not
 * keep theirs. A dropped file counts until it is closed. */
static bool make_room(rd_file_cache *cache, const rd_file_found *found) {
    if (idle_file(found) == NULL || !is_full(cache)) return true;
    rd_file *file = drop_idle(cache, NULL);
    if (file == NULL) return false;
    rd_file_unref(file);
    return true;
}

static rd_file_entry *add(rd_file_cache *cache, const rd_file_found *found, rd_slice key) {
    rd_file_entry *entry = rd_alloc(sizeof(*entry) + key.len);
    *entry = (rd_file_entry){.refs = 1, .is = *found};
    memcpy(entry + 1, key.ptr, key.len);
    entry->node.name = rd_slice_of((const char *)(entry + 1), key.len);
    rd_map_add(&cache->entries, &entry->node);
    rd_list_init(&entry->used);
    rd_list_append(&cache->used, &entry->used);
    count(cache, entry, true);
    return entry;
}

/* An unchanged file keeps its descriptor, which answers in flight share. Bytes are always those
 * just read: a file can change within one tick of its clock, without a change of its facts. */
static void renew(rd_file_cache *cache, rd_file_entry *entry, rd_file_found *found) {
    count(cache, entry, false);
    for (unsigned i = 0; i < RD_CODING_COUNT; i++) {
        rd_file_variant *old = entry->is.variants[i];
        const bool stays = old != NULL && old->file != NULL && is_same(old, found->variants[i]);
        free_variant(stays ? found->variants[i] : old);
        if (stays) found->variants[i] = old;
    }
    entry->is = *found;
    count(cache, entry, true);
}

static rd_file_entry *find_entry(rd_file_cache *cache, rd_slice key) {
    rd_map_node *node = rd_map_find(&cache->entries, key);
    if (node == NULL) return NULL;
    rd_file_entry *entry = RD_CONTAINER(node, rd_file_entry, node);
    rd_list_unlink(&entry->used);
    rd_list_append(&cache->used, &entry->used);
    return entry;
}

static bool is_fresh(const rd_file_entry *entry, uint64_t now_ms) {
    return entry != NULL && now_ms - entry->checked_ms < LOOK_AGAIN_MS;
}

/* A path without an escape is its own key. An invalid path matches no key. */
static rd_file_entry *find_fresh(rd_file_cache *cache, rd_slice path, uint64_t now_ms) {
    if (path.len == 0 || path.ptr[0] != '/' || memchr(path.ptr, '%', path.len)) return NULL;
    rd_file_entry *entry = find_entry(cache, rd_slice_of(path.ptr + 1, path.len - 1));
    return is_fresh(entry, now_ms) ? entry : NULL;
}

/* Keeps what was found and drops the least recently used entries to make room. */
static rd_file_entry *keep(rd_file_cache *cache, rd_file_entry *entry, rd_file_found *found,
                           rd_slice key) {
    if (entry == NULL) {
        entry = add(cache, found, key);
    } else {
        renew(cache, entry, found);
    }
    while ((cache->files > cache->most || cache->open > cache->most_open) &&
           cache->used.next != &entry->used) {
        drop(cache, entry_of(cache->used.next));
    }
    return entry;
}

/* ---- openings ---- */

static void run_opening(rd_disk_job *job) {
    rd_file_opening *opening = RD_CONTAINER(job, rd_file_opening, job);
    if (opening->idle != NULL) rd_file_close(opening->idle);
    opening->error = rd_file_look(&opening->cache->folder, &opening->path, &opening->found);
}

/* Turns opened descriptors into files, which count from now on. */
static void adopt(rd_file_cache *cache, rd_file_found *found) {
    for (unsigned i = 0; i < RD_CODING_COUNT; i++) {
        rd_file_variant *variant = found->variants[i];
        if (variant == NULL || variant->fd < 0) continue;
        variant->file = rd_file_new(cache->loop, variant->fd, (uint64_t)variant->facts.st_dev);
        if (cache->ledger != NULL) rd_file_count(variant->file, cache->ledger);
    }
}

/* Returns the current entry, or NULL with opening->error. */
static rd_file_entry *conclude(rd_file_opening *opening) {
    rd_file_cache *cache = opening->cache;
    rd_file_entry *entry = find_entry(cache, opening->node.name);
    if (opening->error == 0) {
        adopt(cache, &opening->found);
        if (entry != NULL || make_room(cache, &opening->found)) {
            return keep(cache, entry, &opening->found, opening->node.name);
        }
        free_found(&opening->found);
        opening->error = EMFILE;
    } else if (!rd_file_may_pass(opening->error)) {
        if (entry != NULL) drop(cache, entry);
        entry = NULL;
        opening->error = ENOENT;
    }
    return entry;
}

/* When descriptors ran out, closes one that is only cached. */
static bool can_try_again(rd_file_opening *opening) {
    if (opening->error != EMFILE && opening->error != ENFILE) return false;
    opening->idle = drop_idle(opening->cache, find_entry(opening->cache, opening->node.name));
    return opening->idle != NULL;
}

static void opening_done(rd_disk_job *job) {
    rd_file_opening *opening = RD_CONTAINER(job, rd_file_opening, job);
    rd_file_cache *cache = opening->cache;
    if (opening->idle != NULL) rd_file_unref(opening->idle);
    opening->idle = NULL;
    if (can_try_again(opening)) {
        rd_disk_do(cache->loop, job, RD_DISK_FOLDER);
        return;
    }
    opening->entry = conclude(opening);
    if (opening->entry != NULL) {
        opening->entry->refs++;
        opening->entry->checked_ms = cache->loop->now_ms;
    }
    rd_map_remove(&cache->openings, &opening->node);
    rd_list_unlink(&opening->in_list);
    cache->on_opened(cache->owner, opening);
}

static rd_file_opening *begin_opening(rd_file_cache *cache, const rd_file_path *path,
                                      rd_slice key) {
    rd_file_opening *opening = rd_alloc(sizeof(*opening) + key.len);
    memcpy(opening + 1, key.ptr, key.len);
    opening->node.name = rd_slice_of((const char *)(opening + 1), key.len);
    opening->cache = cache;
    opening->idle = NULL;
    opening->entry = NULL;
    opening->path = *path;
    opening->job = (rd_disk_job){.run = run_opening, .done = opening_done};
    rd_list_init(&opening->waiting);
    rd_list_init(&opening->in_list);
    rd_list_append(&cache->in_flight, &opening->in_list);
    rd_map_add(&cache->openings, &opening->node);
    rd_disk_do(cache->loop, &opening->job, RD_DISK_FOLDER);
    return opening;
}

void rd_file_opening_free(rd_file_opening *opening) {
    if (opening->entry != NULL) rd_file_entry_unref(opening->entry);
    rd_free(opening);
}

/* ---- asking ---- */

static rd_file_answer give(rd_file_entry *found, rd_file_entry **entry) {
    found->refs++;
    *entry = found;
    return RD_FILE_THERE;
}

/* The key is the decoded name, so that every spelling of a path has the same entry. */
static rd_slice key_of(const rd_file_path *path, char bytes[RD_FILE_PATH_MAX + 1]) {
    memcpy(bytes, path->name, path->len);
    bytes[path->len] = '/';
    return rd_slice_of(bytes, path->len + (path->is_folder && path->len > 0 ? 1 : 0));
}

static rd_file_answer ask_parsed(rd_file_cache *cache, const rd_file_path *path, uint64_t now_ms,
                                 rd_file_entry **entry, rd_file_opening **opening) {
    char bytes[RD_FILE_PATH_MAX + 1];
    const rd_slice key = key_of(path, bytes);
    rd_file_entry *found = find_entry(cache, key);
    if (is_fresh(found, now_ms)) return give(found, entry);
    if (found == NULL && rd_file_is_nowhere(&cache->folder, &cache->memo, path, now_ms)) {
        return RD_FILE_NOWHERE;
    }
    rd_map_node *node = rd_map_find(&cache->openings, key);
    const bool is_busy = cache->has_line || cache->openings.count >= RD_FILE_OPENINGS_MAX;
    if (node == NULL && is_busy) return RD_FILE_BUSY;
    *opening =
        node != NULL ? RD_CONTAINER(node, rd_file_opening, node) : begin_opening(cache, path, key);
    return RD_FILE_ASKED;
}

rd_file_answer rd_file_cache_ask(rd_file_cache *cache, rd_slice path, uint64_t now_ms,
                                 rd_file_entry **entry, rd_file_opening **opening) {
    rd_file_path parsed;
    rd_file_entry *found = find_fresh(cache, path, now_ms);
    if (found != NULL) return give(found, entry);
    if (!rd_file_path_parse(&parsed, path)) return RD_FILE_NOWHERE;
    return ask_parsed(cache, &parsed, now_ms, entry, opening);
}
