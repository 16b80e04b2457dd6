/* SPDX-License-Identifier: MIT
 *
 * Opens what a path names, with its siblings; see file_look.h.
 */
#include "files/file_look.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "http/date.h"
#include "files/mime.h"
#include "system/platform.h"

#define INDEX "index.html"
#define HTML  ".html"

static const struct {
    rd_slice ending;
    rd_slice tag; /* its part of the ETag */
} encodings[RD_CODING_COUNT] = {
    [RD_CODING_IDENTITY] = {RD_SLICE_INIT(""), RD_SLICE_INIT("")},
    [RD_CODING_BR] = {RD_SLICE_INIT(".br"), RD_SLICE_INIT("br")},
    [RD_CODING_ZSTD] = {RD_SLICE_INIT(".zst"), RD_SLICE_INIT("zst")},
    [RD_CODING_GZIP] = {RD_SLICE_INIT(".gz"), RD_SLICE_INIT("gz")},
};

/* A name below the root, with room for a suffix. */
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

static void free_unused(rd_file_variant *variant) {
    if (variant->fd >= 0) close(variant->fd);
    rd_free(variant->bytes);
    rd_free(variant);
}

/* Returns false when the file has changed since its length was read. */
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

static void keep_content(rd_file_variant *variant, int fd) {
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
    variant->fd = fd;
}

/* Returns NULL with errno on failure. */
static rd_file_variant *open_variant(const rd_file_folder *folder, const char *name,
                                     unsigned encoding) {
    struct stat facts;
    int fd = rd_file_open(&folder->root, name, &facts);
    if (fd < 0) return NULL;
    rd_file_variant *variant = rd_alloc_zero(sizeof(*variant));
    variant->facts = facts;
    variant->fd = -1;
    keep_content(variant, fd);
    variant->etag_len = rd_file_etag(variant->etag, (uint64_t)facts.st_size,
                                     rd_file_mtime_ns(&facts), encodings[encoding].tag);
    rd_date_format(facts.st_mtim.tv_sec, variant->modified);
    return variant;
}

/* ---- digests ---- */

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Whether it looks like the digests of build tools, and not like a number or a date. */
static bool is_digest(rd_slice part) {
    size_t letters = 0;
    for (size_t i = 0; i < part.len; i++) {
        if (!is_hex(part.ptr[i])) return false;
        if (part.ptr[i] >= 'a') letters++;
    }
    return part.len >= 20 || (part.len >= 8 && letters > 0 && letters < part.len);
}

/* Whether a part between `-` or `.` and the extension is a digest. Then the content never
 * changes. */
static bool names_digest(rd_slice name) {
    size_t begin = 0;
    bool is_part = false, found = false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c == '.' && is_part && is_digest(rd_slice_of(name.ptr + begin, i - begin)))
            found = true;
        if (c == '/') found = false; /* it was in the name of a folder */
        if (c == '.' || c == '-' || c == '/') {
            begin = i + 1;
            is_part = c != '/';
        }
    }
    return found;
}

/* ---- what a path names ---- */

/* Skips a sibling that is older than its original: it was made from an older version. */
static void open_siblings(const rd_file_folder *folder, rd_file_found *found, rd_file_name *name) {
    const rd_file_variant *original = found->variants[RD_CODING_IDENTITY];
    const size_t len = name->len;
    for (unsigned i = RD_CODING_IDENTITY + 1; i < RD_CODING_COUNT; i++) {
        append(name, encodings[i].ending);
        rd_file_variant *sibling = open_variant(folder, name->bytes, i);
        cut(name, len);
        if (sibling == NULL) continue;
        if (is_older(&sibling->facts, &original->facts)) {
            free_unused(sibling);
            continue;
        }
        found->variants[i] = sibling;
        found->available |= 1u << i;
    }
}

static bool open_file(const rd_file_folder *folder, rd_file_found *found, rd_file_name *name) {
    rd_file_variant *original = open_variant(folder, name->bytes, RD_CODING_IDENTITY);
    if (original == NULL) return false;
    found->variants[RD_CODING_IDENTITY] = original;
    found->available = 1u << RD_CODING_IDENTITY;
    open_siblings(folder, found, name);
    found->type = rd_mime_type(rd_slice_of(name->bytes, name->len));
    found->has_digest = names_digest(rd_slice_of(name->bytes, name->len));
    return true;
}

static bool has_index(const rd_file_folder *folder, rd_file_name *name) {
    struct stat facts;
    append(name, RD_SLICE("/" INDEX));
    int fd = rd_file_open(&folder->root, name->bytes, &facts);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static bool open_page(const rd_file_folder *folder, rd_file_found *found, rd_file_name *name) {
    if (open_file(folder, found, name)) return true;
    if (errno == EISDIR) {
        found->is_folder = has_index(folder, name);
        return found->is_folder;
    }
    if (errno != ENOENT || !folder->adds_html) return false;
    append(name, RD_SLICE(HTML));
    return open_file(folder, found, name);
}

/* ---- a path ---- */

static rd_slice first_segment(const rd_file_path *path) {
    const char *end = memchr(path->name, '/', path->len);
    if (path->len == 0) return RD_SLICE(INDEX);
    return rd_slice_of(path->name, end == NULL ? path->len : (size_t)(end - path->name));
}

/* Whether nothing is there because the first segment of the path does not exist. */
static bool lacks_first_segment(const rd_file_folder *folder, const rd_file_path *path) {
    const rd_slice segment = first_segment(path);
    if (folder->adds_html && segment.len == path->len && !path->is_folder) return false;
    char name[RD_FILE_PATH_MAX + 1];
    struct stat facts;
    memcpy(name, segment.ptr, segment.len);
    name[segment.len] = '\0';
    return fstatat(folder->root.fd, name, &facts, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static void set_name(rd_file_name *name, const rd_file_path *path) {
    cut(name, 0);
    append(name, rd_slice_of(path->name, path->len));
    if (path->is_folder) append(name, path->len > 0 ? RD_SLICE("/" INDEX) : RD_SLICE(INDEX));
}

int rd_file_look(const rd_file_folder *folder, const rd_file_path *path, rd_file_found *found) {
    rd_file_name name;
    *found = (rd_file_found){.available = 0};
    /* This needs no descriptor. So for a missing path it does not fail for lack of descriptors. */
    if (lacks_first_segment(folder, path)) return ENOENT;
    set_name(&name, path);
    const bool is_there =
        path->is_folder ? open_file(folder, found, &name) : open_page(folder, found, &name);
    return is_there ? 0 : errno;
}

/* ---- without the disk ---- */

/* Whether the kernel's cache is enough to say that nothing has this name. */
static bool is_surely_absent(const rd_file_folder *folder, rd_file_name *name, bool is_folder) {
    if (!rd_file_is_absent(&folder->root, name->bytes)) return false;
    if (is_folder || !folder->adds_html) return true;
    append(name, RD_SLICE(HTML));
    return rd_file_is_absent(&folder->root, name->bytes);
}

static bool is_noted(const rd_file_walk *walk, rd_slice segment, uint64_t now_ms) {
    return now_ms - walk->at_ms < RD_FILE_MEMO_MS &&
           rd_slice_equal(rd_slice_of(walk->segment, walk->len), segment);
}

static void note(rd_file_walk *walk, rd_slice segment, uint64_t now_ms) {
    if (segment.len > RD_FILE_WALK_MAX) return;
    walk->at_ms = now_ms;
    walk->len = (uint8_t)segment.len;
    memcpy(walk->segment, segment.ptr, segment.len);
}

bool rd_file_is_nowhere(const rd_file_folder *folder, rd_file_memo *memo, const rd_file_path *path,
                        uint64_t now_ms) {
    const rd_slice segment = first_segment(path);
    rd_file_walk *walk = &memo->walks[rd_hash_weak(segment) % RD_FILE_MEMO];
    const bool is_walked = is_noted(walk, segment, now_ms);
    /* Costs half of a walk, and is as certain while the kernel has the segment in its cache. */
    if ((is_walked || folder->root.is_memory) && lacks_first_segment(folder, path)) return true;
    rd_file_name name;
    set_name(&name, path);
    if (!is_surely_absent(folder, &name, path->is_folder)) return false;
    note(walk, segment, now_ms);
    return true;
}
