/* SPDX-License-Identifier: MIT
 *
 * Finds the folder that a path lies below; see file_roots.h.
 */
#include "files/file_roots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static char *without_last_slashes(const char *path) {
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/') len--;
    char *copy = rd_alloc(len + 1);
    memcpy(copy, path, len);
    copy[len] = 0;
    return copy;
}

int rd_file_roots_add(rd_file_roots *roots, const char *path) {
    rd_named_root named;
    if (rd_file_root_open(&named.root, path) != 0) return -1;
    char *resolved = realpath(path, NULL);
    if (resolved == NULL) {
        const int error = errno;
        rd_file_root_close(&named.root);
        errno = error;
        return -1;
    }
    named.given = without_last_slashes(path);
    named.resolved = without_last_slashes(resolved);
    free(resolved);
    roots->all = rd_realloc(roots->all, (roots->count + 1) * sizeof(named));
    roots->all[roots->count++] = named;
    return 0;
}

void rd_file_roots_clear(rd_file_roots *roots) {
    for (size_t i = 0; i < roots->count; i++) {
        rd_file_root_close(&roots->all[i].root);
        rd_free(roots->all[i].given);
        rd_free(roots->all[i].resolved);
    }
    rd_free(roots->all);
    *roots = (rd_file_roots){0};
}

/* What follows the folder and its slash, or NULL: /publicX is not below /public. */
static const char *name_below(const char *folder, const char *path) {
    const size_t len = strlen(folder);
    if (strncmp(path, folder, len) != 0 || (path[len] != '/' && path[len] != 0)) return NULL;
    return path + len + strspn(path + len, "/");
}

int rd_file_roots_open(const rd_file_roots *roots, const char *path, struct stat *info) {
    int error = EACCES;
    if (path[0] != '/' || rd_file_has_dotdot(path)) {
        errno = error;
        return -1;
    }
    for (size_t i = 0; i < roots->count; i++) {
        const rd_named_root *named = &roots->all[i];
        const char *name = name_below(named->given, path);
        if (name == NULL) name = name_below(named->resolved, path);
        if (name == NULL) continue;
        const int fd = rd_file_open(&named->root, name, info);
        if (fd >= 0) return fd;
        error = errno;
    }
    errno = error;
    return -1;
}
