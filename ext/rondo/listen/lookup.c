/* SPDX-License-Identifier: MIT
 *
 * The system's resolver on a thread, and the order of what it finds; see lookup.h.
 */
#include "listen/lookup.h"

#include <netdb.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"

/* ---- targets ---- */

static void set_port(rd_target *target, uint16_t port) {
    if (target->address.any.sa_family == AF_INET6) {
        target->address.v6.sin6_port = htons(port);
    } else {
        target->address.v4.sin_port = htons(port);
    }
}

static void add(rd_targets *targets, const struct addrinfo *found, uint16_t port) {
    if (found->ai_family != AF_INET && found->ai_family != AF_INET6) return;
    if (targets->count == RD_TARGETS_MAX || found->ai_addrlen > sizeof(targets->list[0].address))
        return;
    rd_target *target = &targets->list[targets->count++];
    memcpy(&target->address, found->ai_addr, found->ai_addrlen);
    target->len = found->ai_addrlen;
    set_port(target, port);
}

/* Returns a code of getaddrinfo(3). */
static int ask(rd_targets *targets, const char *host, uint16_t port, int flags) {
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    targets->count = 0;
    const int code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0) return code;
    for (const struct addrinfo *next = found; next != NULL; next = next->ai_next) {
        add(targets, next, port);
    }
    freeaddrinfo(found);
    return 0;
}

bool rd_targets_read(rd_targets *targets, const char *host, uint16_t port) {
    return ask(targets, host, port, AI_NUMERICHOST) == 0 && targets->count > 0;
}

bool rd_targets_of_path(rd_targets *targets, const char *path) {
    rd_target *target = &targets->list[0];
    struct sockaddr_un *address = &target->address.unix_path;
    const size_t len = strlen(path);
    const bool is_abstract = path[0] == '@';
    targets->count = 0;
    if (len == 0 || len >= sizeof(address->sun_path)) return false;
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, len);
    if (is_abstract) address->sun_path[0] = '\0';
    const size_t end = is_abstract ? len : len + 1;
    target->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + end);
    targets->count = 1;
    return true;
}

static sa_family_t family_of(const rd_target *target) {
    return target->address.any.sa_family;
}

/* Brings the first target of the other family forward to each place where two of one family meet.
 */
void rd_targets_interleave(rd_targets *targets) {
    rd_target *list = targets->list;
    for (uint32_t place = 1; place < targets->count; place++) {
        uint32_t from = place;
        while (from < targets->count && family_of(&list[from]) == family_of(&list[place - 1])) {
            from++;
        }
        if (from == targets->count) return;
        const rd_target other = list[from];
        memmove(&list[place + 1], &list[place], (from - place) * sizeof(other));
        list[place] = other;
    }
}

/* ---- lookups ---- */

/* The resolver's own words differ between systems. */
static const char *reason(int code) {
    switch (code) {
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
        return "the name has no address";
    case EAI_AGAIN:
        return "no name server has answered";
    default:
        return gai_strerror(code);
    }
}

static rd_lookup *of_job(rd_disk_job *job) {
    return RD_CONTAINER(job, rd_lookup, job);
}

/* Without AI_ADDRCONFIG: a machine that has only the loopback has names, too. What it cannot reach
 * fails at once. */
static void run(rd_disk_job *job) {
    rd_lookup *lookup = of_job(job);
    if (atomic_load_explicit(&lookup->is_dropped, memory_order_relaxed)) return;
    const int code = ask(&lookup->targets, lookup->host, lookup->port, 0);
    lookup->why = code != 0 ? reason(code) : "the name has no address";
    rd_targets_interleave(&lookup->targets);
}

static void done(rd_disk_job *job) {
    rd_lookup *lookup = of_job(job);
    const bool is_dropped = atomic_load_explicit(&lookup->is_dropped, memory_order_relaxed);
    if (!is_dropped) lookup->on_found(lookup);
    (*lookup->live)--;
    rd_free(lookup);
}

rd_lookup *rd_lookup_new(const char *host, uint16_t port) {
    rd_lookup *lookup = rd_alloc_zero(sizeof(*lookup));
    lookup->job = (rd_disk_job){.run = run, .done = done, .needs_thread = true};
    lookup->why = "no thread can be started to look the name up";
    lookup->port = port;
    strncat(lookup->host, host, RD_HOST_NAME_MAX);
    return lookup;
}

void rd_lookup_begin(rd_loop *loop, rd_lookup *lookup) {
    (*lookup->live)++;
    rd_disk_do(loop, &lookup->job, RD_DISK_NAMES);
}

void rd_lookup_drop(rd_lookup *lookup) {
    atomic_store_explicit(&lookup->is_dropped, true, memory_order_relaxed);
}
