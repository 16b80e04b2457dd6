/* SPDX-License-Identifier: MIT
 *
 * The binding of one server to Ruby: the core's server, the application, and the Ruby objects that
 * C keeps. Those live in Arrays indexed by slot, because a mark function that walked all
 * connections would be run by every minor GC. Everything here is under the GVL; the core's own
 * state is under the loop lock, and the order is always GVL first, then the lock.
 */
#ifndef RD_BINDING_BINDING_H
#define RD_BINDING_BINDING_H

#include <pthread.h>
#include <ruby.h>

#include "base/slots.h"
#include "http/date.h"
#include "files/file_body.h"
#include "files/file_roots.h"
#include "binding/rb_pool.h"
#include "cluster/scoreboard.h"
#include "server/server.h"

/* The Ruby objects a binding holds, marked and moved together. */
#define RD_BINDING_VALUES(X)                                                                       \
    X(app)          /* answers call(env) */                                                        \
    X(reporter)     /* answers handle_error, refuse_file, report_error, _refusal, _cut, _slow */   \
    X(upgrades)     /* answers refuse, report_impossible and report_protocol */                    \
    X(request_log)  /* answers write(lines), or nil */                                             \
    X(env_template) /* Hash that every env starts from */                                          \
    X(env_secure_template) /* the same for connections that are secure */                          \
    X(empty_input)         /* rack.input of requests without a body */                             \
    X(clients)             /* slot → Rondo::Client, or a handler that needs none */              \
    X(subscribers)         /* address of an rd_push without a connection → block */              \
    X(borrowed)            /* slot → String whose bytes are queued */                            \
    X(values)              /* cache of header values */                                            \
    X(templates)           /* cache of env templates by authority and peer */                      \
    X(section_templates)   /* cache of env templates by header section and peer */                 \
    X(names)               /* cache of HTTP_* keys of names without an id */                       \
    X(key_lists)           /* cache of what the envs of upgraded connections have as keys */       \
    X(threads)             /* the application threads */                                           \
    X(supervisor)          /* Thread that called run(), or nil */                                  \
    X(thread_start) /* called in each application thread before its first request, or nil */       \
    X(thread_exit)  /* and after its last */                                                       \
    X(scoreboard)   /* Rondo::Scoreboard that score lies in, or nil */                             \
    X(heirs)        /* that of the workers of another master, or nil */                            \
    X(scheme)       /* rack.url_scheme forced by a setting, or nil */                              \
    X(default_host) /* SERVER_NAME and port of requests without Host, or nil */                    \
    X(default_port)                                                                                \
    X(sendfile_type) /* sendfile.type of every env, or nil */

#define RD_VALUE_CACHE_SIZE    4096
#define RD_NAME_CACHE_SIZE     512
#define RD_TEMPLATE_CACHE_SIZE 256
#define RD_SECTION_CACHE_SIZE  256
#define RD_SECTION_SEEN_SIZE   1024
#define RD_LAST_SECTIONS       4096

typedef struct rd_cache_entry {
    uint32_t hash;
    uint32_t len;
} rd_cache_entry;

/* Compared as bytes: every member is set, unused room is zero. */
typedef struct rd_template_key {
    uint32_t hash;
    rd_address peer;
    uint8_t version; /* RD_HTTP_1_1 … */
    bool secure;     /* the connection */
    uint8_t authority_len;
    char authority[64];
} rd_template_key;

typedef struct rd_section_key {
    uint64_t section; /* rd_head.section, version and scheme in one word; 0: empty */
    rd_address peer;
} rd_section_key;

/* See rb_env_cache.c. */
typedef struct rd_env_cache {
    rd_template_key templates[RD_TEMPLATE_CACHE_SIZE];
    rd_section_key sections[RD_SECTION_CACHE_SIZE];
    uint32_t seen[RD_SECTION_SEEN_SIZE];     /* hashes of keys that came once */
    uint8_t last_sections[RD_LAST_SECTIONS]; /* by the connection's slot: place of its last one */
} rd_env_cache;

typedef struct rd_borrow rd_borrow;
typedef struct rd_request_line_log rd_request_line_log;

struct rd_binding {
    rd_list in_all;
    rd_server *server;
    VALUE self; /* the Rondo::Server::Core; not marked, it owns this */
    uint32_t refs;
    unsigned forks; /* of this process when it was made */
#define RD_BINDING_VALUE(name) VALUE name;
    RD_BINDING_VALUES(RD_BINDING_VALUE)
#undef RD_BINDING_VALUE
    rd_cache_entry *value_entries;
    rd_cache_entry *name_entries;
    rd_env_cache *env_cache;
    unsigned env_base[2]; /* keys of the base templates, plain and secure; header fields follow */
    rd_network *trusted;  /* peers that may name the client, scheme and port */
    size_t trusted_count;
    rd_borrow *released; /* under the loop lock: Strings whose bytes are not needed any more */
    rd_slots borrowed_slots;
    rd_slots client_slots;
    uintptr_t last_block; /* the highest number of a subscription's block so far */
    rd_pool pool;
    rd_file_roots file_roots; /* x_sendfile_root; none: X-Sendfile is not for us */
    rd_boundaries boundaries; /* under the loop lock */
    bool running;
    bool early_hints, frozen_headers, split_newlines, log_json;
    char *log_bytes; /* request lines of this turn */
    size_t log_len, log_capacity;
    uint64_t log_lost; /* writes of the request log that failed */
    int64_t log_second;
    char log_time[RD_DATE_LOG_BYTES + 1];
};

/* The alloc function of Rondo::Server::Core: a binding without a server. */
VALUE rd_binding_allocate(VALUE klass);

/* That of a Core with or without a server. */
rd_binding *rd_binding_allocated(VALUE core);

/* Raises where there is no server yet. */
rd_binding *rd_binding_of(VALUE core);

/* For what a forked child cannot do: it has closed the descriptors. Raises there. */
rd_binding *rd_own_binding_of(VALUE core);
void rd_binding_ref(rd_binding *binding);
void rd_binding_unref(rd_binding *binding);

static inline void rd_lock(rd_binding *binding) {
    rd_server_lock(binding->server);
}

static inline void rd_unlock(rd_binding *binding) {
    rd_server_unlock(binding->server);
}

/* Keeps `object` in `field`, which is a name of RD_BINDING_VALUES. */
#define RD_BINDING_SET(binding, field, object)                                                     \
    RB_OBJ_WRITE((binding)->self, &(binding)->field, (object))

#endif
