/* SPDX-License-Identifier: MIT
 *
 * The binding of one server to Ruby: the core's server, the application, and the Ruby objects that
 * C keeps. These objects are in Arrays by index, because every minor GC would run a mark
 * function that walks all connections. Everything here is under the GVL. The core's own state is
 * under the loop lock. The order is always GVL first, then the lock.
 */
#ifndef RD_BINDING_BINDING_H
#define RD_BINDING_BINDING_H

#include <pthread.h>
#include <ruby.h>

#include "base/indexes.h"
#include "http/date.h"
#include "files/file_body.h"
#include "files/file_roots.h"
#include "binding/rb_pool.h"
#include "cluster/scoreboard.h"
#include "server/server.h"
#include "ruby/rb_tls.h"

/* The Ruby objects that a binding holds, part by part: X(part, name). Each object in these lists is
 * nil at first, is marked, and is updated by compaction. */
#define RD_APP_VALUES(X)                                                                           \
    X(app, object)       /* answers call(env) */                                                   \
    X(app, reporter)     /* answers handle_error, refuse_file, report_error, _refusal, … */      \
    X(app, upgrades)     /* answers refuse, report_impossible and report_protocol */               \
    X(app, threads)      /* the application threads */                                             \
    X(app, supervisor)   /* the Thread that called run(), or nil */                                \
    X(app, thread_start) /* called in each application thread before its first call, or nil */     \
    X(app, thread_exit)  /* called after its last, or nil */

#define RD_ENV_VALUES(X)                                                                           \
    X(env, template)          /* Hash that every env starts from */                                \
    X(env, secure_template)   /* the same for secure connections */                                \
    X(env, empty_input)       /* rack.input of requests without a body */                          \
    X(env, templates)         /* cache of env templates by authority and peer */                   \
    X(env, section_templates) /* cache of env templates by header section and peer */              \
    X(env, identities)        /* by connection index: number and Hash; see rb_identity.c */        \
    X(env, key_lists)         /* cache of the keys in envs of upgraded connections */              \
    X(env, scheme)            /* rack.url_scheme forced by a setting, or nil */                    \
    X(env, default_host)      /* SERVER_NAME and port of requests without Host, or nil */          \
    X(env, default_port)                                                                           \
    X(env, client)        /* REMOTE_ADDR of every request by a setting, or nil */                  \
    X(env, client_field)  /* key of the env in which proxies name the client, or nil */            \
    X(env, sendfile_type) /* sendfile.type of every env, or nil */

#define RD_STRINGS_VALUES(X)                                                                       \
    X(strings, values) /* cache of header values */                                                \
    X(strings, names)  /* cache of HTTP_* keys of names without an id */

#define RD_LENT_VALUES(X) X(lent, strings) /* index → String whose bytes are queued */

#define RD_CLIENTS_VALUES(X)                                                                       \
    X(clients, objects)     /* index → Rondo::Client, or a handler without a client */           \
    X(clients, subscribers) /* address of an rd_endpoint without a connection → block */

#define RD_TASKS_VALUES(X) X(tasks, objects) /* index → Rondo::Task that is not over */

#define RD_LOG_VALUES(X) X(log, output) /* answers write(lines), or nil */

#define RD_CLUSTER_VALUES(X)                                                                       \
    X(cluster, scoreboard) /* the Rondo::Scoreboard with server->score, or nil */                  \
    X(cluster, tickets)    /* a Rondo::TLS::Tickets, or nil */                                     \
    X(cluster, heirs)      /* that of another master's workers, or nil */

#define RD_BINDING_VALUES(X)                                                                       \
    RD_APP_VALUES(X)                                                                               \
    RD_ENV_VALUES(X)                                                                               \
    RD_STRINGS_VALUES(X)                                                                           \
    RD_LENT_VALUES(X)                                                                              \
    RD_CLIENTS_VALUES(X) RD_TASKS_VALUES(X) RD_LOG_VALUES(X) RD_CLUSTER_VALUES(X)

typedef struct rd_borrowed rd_borrowed;
typedef struct rd_cache_entry rd_cache_entry;
typedef struct rd_env_cache rd_env_cache;

#define RD_BINDING_VALUE(part, name) VALUE name;

/* The application and what runs it. */
typedef struct rd_app {
    RD_APP_VALUES(RD_BINDING_VALUE)
} rd_app;

/* What envs are made of; see rb_env_cache.c. */
typedef struct rd_env_parts {
    RD_ENV_VALUES(RD_BINDING_VALUE)
    rd_env_cache *cache;
    unsigned base_sizes[2]; /* keys of the plain and the secure template */
} rd_env_parts;

/* See rb_cache.c. */
typedef struct rd_strings {
    RD_STRINGS_VALUES(RD_BINDING_VALUE)
    rd_cache_entry *value_entries;
    rd_cache_entry *name_entries;
} rd_strings;

/* See rb_borrowed.c. */
typedef struct rd_lent {
    RD_LENT_VALUES(RD_BINDING_VALUE)
    rd_indexes indexes;
    rd_borrowed *released; /* under the loop lock: Strings whose bytes are no longer needed */
} rd_lent;

/* Upgraded connections and subscriptions of the application. */
typedef struct rd_clients {
    RD_CLIENTS_VALUES(RD_BINDING_VALUE)
    rd_indexes indexes;
    uintptr_t last_block; /* number of the newest block of a subscription */
} rd_clients;

/* Tasks and timers of the application; see rb_task.c. */
typedef struct rd_task_objects {
    RD_TASKS_VALUES(RD_BINDING_VALUE)
    rd_indexes indexes;
} rd_task_objects;

/* The request log; see rb_log.c. */
typedef struct rd_log {
    RD_LOG_VALUES(RD_BINDING_VALUE)
    bool json;
    bool ids;    /* lines show what env["rondo.ids"] has */
    char *bytes; /* request lines of this turn */
    size_t len, capacity;
    uint64_t lost; /* writes that failed */
    int64_t second;
    char time[RD_DATE_LOG_BYTES + 1];
} rd_log;

/* What the server shares with the workers of its cluster. */
typedef struct rd_cluster_board {
    RD_CLUSTER_VALUES(RD_BINDING_VALUE)
} rd_cluster_board;

/* Peers that may name the client, scheme and port. */
typedef struct rd_proxies {
    rd_network *trusted;
    size_t count;
} rd_proxies;

/* Files that the application names. */
typedef struct rd_named_files {
    rd_file_roots roots;      /* x_sendfile_root; none: X-Sendfile passes through */
    rd_boundaries boundaries; /* under the loop lock */
} rd_named_files;

/* Settings that are read for each request. */
typedef struct rd_call_rules {
    bool early_hints, frozen_headers, split_newlines;
} rd_call_rules;

#undef RD_BINDING_VALUE

struct rd_binding {
    rd_list in_all;
    rd_server *server;
    VALUE self; /* the Rondo::Server::Core; not marked, because it owns the binding */
    uint32_t refs;
    unsigned forks; /* rd_forks() when the binding was made */
    bool running;
    rd_call_rules rules;
    rd_app app;
    rd_env_parts env;
    rd_strings strings;
    rd_lent lent;
    rd_clients clients;
    rd_task_objects tasks;
    rd_log log;
    rd_cluster_board cluster;
    rd_proxies proxies;
    rd_named_files files;
    rd_tls_transports tls;
    rd_tls_transports tls_clients;
    rd_fd_waiters waiters; /* of fibers, on the loop of the server */
    rd_pool pool;
};

/* The alloc function of Rondo::Server::Core: a binding without a server. */
VALUE rd_binding_allocate(VALUE klass);

/* The binding of a Core, with or without a server. */
rd_binding *rd_binding_allocated(VALUE core);

/* The binding of a Core. Raises if there is no server yet. */
rd_binding *rd_binding_of(VALUE core);

/* The same, but also raises in a forked child, which has closed the descriptors. */
rd_binding *rd_own_binding_of(VALUE core);
void rd_binding_ref(rd_binding *binding);
void rd_binding_unref(rd_binding *binding);

static inline void rd_lock(rd_binding *binding) {
    rd_server_lock(binding->server);
}

static inline void rd_unlock(rd_binding *binding) {
    rd_server_unlock(binding->server);
}

/* Keeps `object` in `field`: a part and a name of RD_BINDING_VALUES, such as `env.scheme`. */
#define RD_BINDING_SET(binding, field, object)                                                     \
    RB_OBJ_WRITE((binding)->self, &(binding)->field, (object))

#endif
