/* SPDX-License-Identifier: MIT
 *
 * Opens listening sockets; see rb_listen.h. lib/rondo/config/address.rb has already parsed the
 * address.
 */
#include "ruby/rb_listen.h"

#include "base/alloc.h"
#include "ruby/rb_error.h"
#include "ruby/rb_value.h"

static int int_option(VALUE address, const char *name, int fallback) {
    VALUE value = rd_option(address, name);
    return NIL_P(value) ? fallback : NUM2INT(value);
}

/* What to open. Once this is filled in, nothing raises any more. */
typedef struct rd_listen_request {
    rd_listen_options options;
    int fd; /* >= 0: adopt it */
    bool owns_file;
    const char *path; /* else, if not NULL: a Unix socket */
    const char *host; /* else TCP */
    uint16_t port;
} rd_listen_request;

static rd_listen_request read_address(const rd_settings *settings, VALUE address) {
    VALUE kind = rd_option(address, "kind"), reuse = rd_option(address, "reuse_port");
    VALUE low_latency = rd_option(address, "low_latency");
    rd_listen_request wanted = {.fd = -1};
    wanted.options = (rd_listen_options){
        .backlog = int_option(address, "backlog", (int)settings->backlog),
        .reuse_port = NIL_P(reuse) ? settings->reuse_port != 0 : RTEST(reuse),
        .nodelay = NIL_P(low_latency) ? settings->tcp_nodelay != 0 : RTEST(low_latency),
        .reserves = RTEST(rd_option(address, "reserves")),
        .mode = int_option(address, "mode", -1),
    };
    if (kind == ID2SYM(rb_intern("fd"))) {
        wanted.fd = NUM2INT(rd_option(address, "fd"));
        wanted.owns_file = RTEST(rd_option(address, "owns_file"));
    } else if (kind == ID2SYM(rb_intern("unix"))) {
        VALUE path = rd_option(address, "path");
        wanted.path = StringValueCStr(path);
    } else {
        VALUE host = rd_option(address, "host");
        int port = NUM2INT(rd_option(address, "port"));
        if (port < 0 || port > 65535) rb_raise(rd_eAddressError, "port %d is out of range", port);
        wanted.host = StringValueCStr(host);
        wanted.port = (uint16_t)port;
    }
    return wanted;
}

static int open_listener(rd_listener *listener, const rd_listen_request *wanted,
                         char error[RD_LISTENER_ERROR_MAX]) {
    if (wanted->fd >= 0) {
        return rd_listen_inherited(listener, wanted->fd, wanted->options.transport,
                                   wanted->owns_file, error);
    }
    if (wanted->path != NULL) {
        return rd_listen_unix(listener, wanted->path, &wanted->options, error);
    }
    return rd_listen_tcp(listener, wanted->host, wanted->port, &wanted->options, error);
}

/* What is encrypted must not come back plain. */
static void check_scheme(VALUE address, const rd_transport *transport) {
    VALUE scheme = rd_option(address, "scheme");
    if (NIL_P(scheme) || transport != NULL) return;
    if (strcmp(StringValueCStr(scheme), "http") == 0) return;
    rb_raise(rd_eAddressError, "cannot listen on inherited descriptor %d: no certificate for %s",
             NUM2INT(rd_option(address, "fd")), StringValueCStr(scheme));
}

rd_listener *rd_listener_from(const rd_settings *settings, VALUE address,
                              const rd_transport *transport) {
    char error[RD_LISTENER_ERROR_MAX];
    rd_listen_request wanted = read_address(settings, address);
    check_scheme(address, transport);
    wanted.options.transport = transport;
    rd_listener *listener = rd_alloc_zero(sizeof(*listener));
    if (open_listener(listener, &wanted, error) < 0) {
        rd_free(listener);
        rb_raise(rd_eAddressError, "%s", error);
    }
    return listener;
}
