/* SPDX-License-Identifier: MIT
 *
 * Finding files and keeping what was found; see file_cache.h.
 */
#include "http/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "http/date.h"
#include "http/file_path.h"
#include "http/mime.h"

#define LOOK_AGAIN_MS 1000
#define INDEX         "index.html"
#define HTML          ".html"

static const struct {
    rd_slice ending;
    rd_slice tag; /* in the ETag */
} encodings[RD_CODING_COUNT] = {
    [RD_CODING_IDENTITY] = {RD_SLICE_INIT(""), RD_SLICE_INIT("")},
    [RD_CODING_BR] = {RD_SLICE_INIT(".br"), RD_SLICE_INIT("br")},
    [RD_CODING_ZSTD] = {RD_SLICE_INIT(".zst"), RD_SLICE_INIT("zst")},
    [RD_CODING_GZIP] = {RD_SLICE_INIT(".gz"), RD_SLICE_INIT("gz")},
};

/* A name below the root, with room for what is put behind it. */
typedef struct rd_file_name {
    char bytes[RD_FILE_PATH_MAX + sizeof("/" INDEX) + sizeof(".zst")];
    size_t len;
} rd_file_name;

static void append(rd_file_name *name, rd_slice ending) {
    memcpy(name->bytes + name->len, ending.ptr, ending.len);
    name->len += ending.len;
    name->bytes[name->len] = '\0';
}

static void cut(rd_file_name *name, size_t len) {
    name->len = len;
    name->bytes[len] = '\0';
}

/* ---- one representation ---- */

static bool is_older(const struct stat *a, const struct stat *b) {
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec) return a->st_mtim.tv_sec < b->st_mtim.tv_sec;
    return a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

static void free_variant(rd_file_variant *variant) {
    if (variant == NULL) return;
    if (variant->file != NULL) rd_file_unref(variant->file);
    rd_free(variant->bytes);
    rd_free(variant);
}

/* False when the file has changed since its length was read. */
static bool read_whole(int fd, char *bytes, size_t len) {
    size_t got = 0;
    while (got < len) {
        ssize_t part = pread(fd, bytes + got, len - got, (off_t)got);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) return false;
        got += (size_t)part;
    }
    return true;
}

static void keep_content(rd_file_cache *cache, rd_file_variant *variant, int fd) {
    size_t size = (size_t)variant->facts.st_size;
    if (variant->facts.st_size <= RD_FILE_BYTES_MAX) {
        variant->bytes = rd_alloc(size + 1);
        if (read_whole(fd, variant->bytes, size)) {
            close(fd);
            return;
        }
        rd_free(variant->bytes);
        variant->bytes = NULL;
    }
    variant->file = rd_file_new(fd);
    rd_file_count(variant->file, &cache->all_open);
}

/* NULL with errno. */
static rd_file_variant *open_variant(rd_file_cache *cache, const char *name, unsigned encoding) {
    struct stat facts;
    int fd = rd_file_open(&cache->root, name, &facts);
    if (fd < 0) return NULL;
    rd_file_variant *variant = rd_alloc_zero(sizeof(*variant));
    variant->facts = facts;
    keep_content(cache, variant, fd);
    variant->etag_len = rd_file_etag(variant->etag, (uint64_t)facts.st_size,
                                     rd_file_mtime_ns(&facts), encodings[encoding].tag);
    rd_date_format(facts.st_mtim.tv_sec, variant->modified);
    return variant;
}

static bool is_same(const rd_file_variant *a, const rd_file_variant *b) {
    if (a == NULL || b == NULL) return a == b;
    return a->facts.st_dev == b->facts.st_dev && a->facts.st_ino == b->facts.st_ino &&
           a->facts.st_size == b->facts.st_size &&
           rd_file_mtime_ns(&a->facts) == rd_file_mtime_ns(&b->facts) &&
           a->facts.st_ctim.tv_sec == b->facts.st_ctim.tv_sec &&
           a->facts.st_ctim.tv_nsec == b->facts.st_ctim.tv_nsec;
}

/* ---- digests ---- */

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* What build tools put in: no number and no date. */
static bool is_digest(rd_slice part) {
    size_t letters = 0;
    for (size_t i = 0; i < part.len; i++) {
        if (!is_hex(part.ptr[i])) return false;
        if (part.ptr[i] >= 'a') letters++;
    }
    return part.len >= 20 || (part.len >= 8 && letters > 0 && letters < part.len);
}

/* Whether a part between `-` or `.` and the extension is a digest: its content never changes. */
static bool names_digest(rd_slice name) {
    size_t begin = 0;
    bool is_part = false, found = false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c == '.' && is_part && is_digest(rd_slice_of(name.ptr + begin, i - begin)))
            found = true;
        if (c == '/') found = false; /* that was the name of a folder */
        if (c == '.' || c == '-' || c == '/') {
            begin = i + 1;
            is_part = c != '/';
        }
    }
    return found;
}

/* ---- what a path names ---- */

/* A sibling older than its original was made from another one. */
static void open_siblings(rd_file_cache *cache, rd_file_entry *entry, rd_file_name *name) {
    const rd_file_variant *original = entry->variants[RD_CODING_IDENTITY];
    const size_t len = name->len;
    for (unsigned i = RD_CODING_IDENTITY + 1; i < RD_CODING_COUNT; i++) {
        append(name, encodings[i].ending);
        rd_file_variant *sibling = open_variant(cache, name->bytes, i);
        cut(name, len);
        if (sibling == NULL) continue;
        if (is_older(&sibling->facts, &original->facts)) {
            free_variant(sibling);
            continue;
        }
        entry->variants[i] = sibling;
        entry->available |= 1u << i;
    }
}

static bool open_file(rd_file_cache *cache, rd_file_entry *entry, rd_file_name *name) {
    rd_file_variant *original = open_variant(cache, name->bytes, RD_CODING_IDENTITY);
    if (original == NULL) return false;
    entry->variants[RD_CODING_IDENTITY] = original;
    entry->available = 1u << RD_CODING_IDENTITY;
    open_siblings(cache, entry, name);
    entry->type = rd_mime_type(rd_slice_of(name->bytes, name->len));
    entry->has_digest = names_digest(rd_slice_of(name->bytes, name->len));
    return true;
}

static bool has_index(const rd_file_cache *cache, rd_file_name *name) {
    struct stat facts;
    append(name, RD_SLICE("/" INDEX));
    int fd = rd_file_open(&cache->root, name->bytes, &facts);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static bool open_page(rd_file_cache *cache, rd_file_entry *entry, rd_file_name *name) {
    if (open_file(cache, entry, name)) return true;
    if (errno == EISDIR) {
        entry->is_folder = has_index(cache, name);
        return entry->is_folder;
    }
    if (errno != ENOENT || !cache->adds_html) return false;
    append(name, RD_SLICE(HTML));
    return open_file(cache, entry, name);
}

/* Most requests are for the application, and their first segment names nothing here: to know that
 * costs half of an open that fails, and no descriptor. */
static bool may_be_there(const rd_file_cache *cache, rd_file_path *parsed) {
    struct stat facts;
    char *end = memchr(parsed->name, '/', parsed->len);
    if (parsed->len > 0 && end == NULL && cache->adds_html) return true;
    if (end != NULL) *end = '\0';
    const int found = fstatat(cache->root.fd, parsed->len > 0 ? parsed->name : INDEX, &facts,
                              AT_SYMLINK_NOFOLLOW);
    if (end != NULL) *end = '/';
    return found == 0 || errno != ENOENT;
}

/* Fills what the path names; false with errno. */
static bool look(rd_file_cache *cache, rd_file_entry *entry, rd_file_path *parsed) {
    rd_file_name name;
    if (!may_be_there(cache, parsed)) return false;
    cut(&name, 0);
    append(&name, rd_slice_of(parsed->name, parsed->len));
    if (!parsed->is_folder) return open_page(cache, entry, &name);
    append(&name, parsed->len > 0 ? RD_SLICE("/" INDEX) : RD_SLICE(INDEX));
    return open_file(cache, entry, &name);
}

/* ---- the cache ---- */

static void free_content(rd_file_entry *entry) {
    for (unsigned i = 0; i < RD_CODING_COUNT; i++) {
        free_variant(entry->variants[i]);
        entry->variants[i] = NULL;
    }
}

/* One that only says that a folder lacks its slash is as much as a file. */
static void count(rd_file_cache *cache, const rd_file_entry *entry, bool adds) {
    uint32_t files = entry->is_folder, open = 0;
    for (unsigned i = 0; i < RD_CODING_COUNT; i++) {
        if (entry->variants[i] == NULL) continue;
        files++;
        if (entry->variants[i]->file != NULL) open++;
    }
    cache->files = adds ? cache->files + files : cache->files - files;
    cache->open = adds ? cache->open + open : cache->open - open;
}

static void drop(rd_file_cache *cache, rd_file_entry *entry) {
    count(cache, entry, false);
    rd_map_remove(&cache->entries, &entry->node);
    rd_list_unlink(&entry->used);
    free_content(entry);
    rd_free(entry);
}

static rd_file_entry *entry_of(rd_list *used) {
    return RD_CONTAINER(used, rd_file_entry, used);
}

void rd_file_cache_init(rd_file_cache *cache, rd_file_root root, uint32_t most, bool adds_html) {
    *cache = (rd_file_cache){.root = root, .most = most, .most_open = most, .adds_html = adds_html};
    rd_map_init(&cache->entries);
    rd_list_init(&cache->used);
}

void rd_file_cache_clear(rd_file_cache *cache) {
    while (!rd_list_is_empty(&cache->used)) drop(cache, entry_of(cache->used.next));
    rd_map_clear(&cache->entries);
    rd_file_root_close(&cache->root);
}

/* Whether it has a descriptor that nobody sends from. */
static bool is_idle(const rd_file_entry *entry) {
    for (unsigned i = 0; i < RD_CODING_COUNT; i++) {
        const rd_file_variant *variant = entry->variants[i];
        if (variant != NULL && variant->file != NULL && variant->file->refs == 1) return true;
    }
    return false;
}

/* Drops the first entry from `at` on that makes a descriptor free, but not `kept`; what comes
 * behind it, or NULL when there is none. */
static rd_list *drop_idle(rd_file_cache *cache, rd_list *at, const rd_file_entry *kept) {
    while (at != &cache->used) {
        rd_file_entry *entry = entry_of(at);
        at = at->next;
        if (entry == kept || !is_idle(entry)) continue;
        drop(cache, entry);
        return at;
    }
    return NULL;
}

/* Out of descriptors: those that are only kept go first. */
static bool look_hard(rd_file_cache *cache, rd_file_entry *found, rd_file_path *parsed,
                      const rd_file_entry *known) {
    rd_list *at = cache->used.next;
    while (!look(cache, found, parsed)) {
        const int error = errno;
        if (error == EMFILE || error == ENFILE) at = drop_idle(cache, at, known);
        errno = error;
        if (at == NULL || (error != EMFILE && error != ENFILE)) return false;
    }
    return true;
}

bool rd_file_cache_is_full(const rd_file_cache *cache) {
    return cache->other_descriptors != NULL &&
           cache->all_open + *cache->other_descriptors >= cache->most_descriptors;
}

/* Slow clients of many files must not have the descriptors that others need. Small files have
 * theirs no more. */
static bool make_room(rd_file_cache *cache, const rd_file_entry *found) {
    rd_list *at = cache->used.next;
    if (!is_idle(found)) return true;
    while (at != NULL && rd_file_cache_is_full(cache)) at = drop_idle(cache, at, NULL);
    return at != NULL;
}

static rd_file_entry *add(rd_file_cache *cache, const rd_file_entry *found, rd_slice key) {
    rd_file_entry *entry = rd_alloc(sizeof(*entry) + key.len);
    *entry = *found;
    memcpy(entry + 1, key.ptr, key.len);
    entry->node.name = rd_slice_of((const char *)(entry + 1), key.len);
    rd_map_add(&cache->entries, &entry->node);
    rd_list_init(&entry->used);
    rd_list_append(&cache->used, &entry->used);
    count(cache, entry, true);
    return entry;
}

/* The file that is the same stays: answers that are being sent share it. Bytes are always the ones
 * just read: a file can change without its facts, within one tick of their clock. */
static void renew(rd_file_cache *cache, rd_file_entry *entry, rd_file_entry *found) {
    count(cache, entry, false);
    for (unsigned i = 0; i < RD_CODING_COUNT; i++) {
        rd_file_variant *old = entry->variants[i];
        const bool stays = old != NULL && old->file != NULL && is_same(old, found->variants[i]);
        entry->variants[i] = stays ? old : found->variants[i];
        free_variant(stays ? found->variants[i] : old);
    }
    entry->available = found->available;
    entry->is_folder = found->is_folder;
    entry->type = found->type;
    entry->has_digest = found->has_digest;
    count(cache, entry, true);
}

static rd_file_entry *known(rd_file_cache *cache, rd_slice key) {
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

/* Without an escape the path is its own key, if it is a path at all: others are no keys. */
static rd_file_entry *find_fresh(rd_file_cache *cache, rd_slice path, uint64_t now_ms) {
    if (path.len == 0 || path.ptr[0] != '/' || memchr(path.ptr, '%', path.len)) return NULL;
    rd_file_entry *entry = known(cache, rd_slice_of(path.ptr + 1, path.len - 1));
    return is_fresh(entry, now_ms) ? entry : NULL;
}

/* What was found takes its place; the least used make room for it. */
static rd_file_entry *keep(rd_file_cache *cache, rd_file_entry *entry, rd_file_entry *found,
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

/* However a path is spelt, what it names has one place. */
static rd_file_entry *find_parsed(rd_file_cache *cache, rd_file_path *parsed, uint64_t now_ms) {
    rd_file_name key;
    rd_file_entry found = {.is_folder = false};
    cut(&key, 0);
    append(&key, rd_slice_of(parsed->name, parsed->len));
    if (parsed->is_folder && parsed->len > 0) append(&key, RD_SLICE("/"));
    rd_file_entry *entry = known(cache, rd_slice_of(key.bytes, key.len));
    if (is_fresh(entry, now_ms)) return entry;
    if (look_hard(cache, &found, parsed, entry)) {
        if (entry == NULL && !make_room(cache, &found)) {
            free_content(&found);
            errno = EMFILE;
            return NULL;
        }
        entry = keep(cache, entry, &found, rd_slice_of(key.bytes, key.len));
    } else if (entry != NULL && !rd_file_may_pass(errno)) {
        drop(cache, entry);
        errno = ENOENT;
        return NULL;
    }
    if (entry != NULL) entry->checked_ms = now_ms;
    return entry;
}

rd_file_entry *rd_file_cache_find(rd_file_cache *cache, rd_slice path, uint64_t now_ms) {
    rd_file_path parsed;
    rd_file_entry *entry = find_fresh(cache, path, now_ms);
    if (entry != NULL) return entry;
    errno = ENOENT;
    return rd_file_path_parse(&parsed, path) ? find_parsed(cache, &parsed, now_ms) : NULL;
}
