/* SPDX-License-Identifier: MIT
 *
 * Names below .slow.test have no answer, whatever signals come, as when no server for names answers. Preloaded into a
 * server; compiled and used by slow_names.rb. Who asks leaves its mark in SLOW_NAMES_SEEN.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    if (name && strstr(name, ".slow.test") && !(hints && hints->ai_flags & AI_NUMERICHOST)) {
        int file = open(getenv("SLOW_NAMES_SEEN"), O_WRONLY | O_APPEND);
        if (write(file, "?", 1) < 0) abort();
        close(file);
        for (;;) pause();
    }
    return real(name, service, hints, found);
}
