/* SPDX-License-Identifier: MIT
 *
 * Opening, keeping and closing listening sockets; see rb_listen.h. Methods of Rondo::Server::Core
 * like those in rb_server.c. lib/rondo/config/address.rb has parsed what people write.
 */
#include "ruby/rb_listen.h"

#include "base/alloc.h"
#include "ruby/rb_error.h"
#include "ruby/rb_value.h"
#include "server/retire.h"

static int int_option(VALUE address, const char *name, int fallback) {
    VALUE value = rd_option(address, name);
    return NIL_P(value) ? fallback : NUM2INT(value);
}

/* What to open, with everything that may raise behind it. */
typedef struct rd_listen_request {
    rd_listen_options options;
    int fd; /* >= 0: adopt it */
    bool owns_file;
    const char *path; /* else a Unix socket, where not NULL */
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
        return rd_listen_inherited(listener, wanted->fd, wanted->owns_file, error);
    }
    if (wanted->path != NULL) {
        return rd_listen_unix(listener, wanted->path, &wanted->options, error);
    }
    return rd_listen_tcp(listener, wanted->host, wanted->port, &wanted->options, error);
}

rd_listener *rd_listener_from(const rd_settings *settings, VALUE address) {
    char error[RD_LISTENER_ERROR_MAX];
    rd_listen_request wanted = read_address(settings, address);
    rd_listener *listener = rd_alloc_zero(sizeof(*listener));
    if (open_listener(listener, &wanted, error) < 0) {
        rd_free(listener);
        rb_raise(rd_eAddressError, "%s", error);
    }
    return listener;
}

static void drop_listener(rd_listener *listener) {
    rd_listener_close(listener);
    rd_free(listener);
}

/* Binds and listens at once; {url:, host:, port:, fd:}. */
static VALUE core_listen(VALUE self, VALUE address) {
    rd_binding *binding = rd_own_binding_of(self);
    rd_listener *listener = rd_listener_from(&binding->server->settings, address);
    rd_lock(binding);
    int added = rd_server_add_listener(binding->server, listener);
    rd_unlock(binding);
    if (added != 0) {
        drop_listener(listener);
        rb_raise(rd_eAddressError, "the poller does not take the listening socket");
    }
    VALUE result = rb_hash_new();
    rb_hash_aset(result, ID2SYM(rb_intern("url")), rb_str_new_cstr(listener->url));
    rb_hash_aset(result, ID2SYM(rb_intern("host")), rb_str_new_cstr(listener->host));
    rb_hash_aset(result, ID2SYM(rb_intern("port")), UINT2NUM(listener->port));
    rb_hash_aset(result, ID2SYM(rb_intern("fd")), INT2NUM(listener->source.fd));
    RB_GC_GUARD(address);
    return result;
}

/* Before another process takes over: the files of Unix sockets stay. */
static VALUE core_keep_files(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) return Qnil;
    rd_list *all = &binding->server->listeners;
    rd_lock(binding);
    for (rd_list *node = all->next; node != all; node = node->next) {
        rd_listener_keep_file(RD_CONTAINER(node, rd_listener, in_server));
    }
    rd_unlock(binding);
    return Qnil;
}

/* For whoever only opens sockets: without a turn, which would accept from them. */
static VALUE core_close_listeners(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) return Qnil;
    rd_lock(binding);
    for (rd_list *node; (node = rd_list_shift(&binding->server->listeners)) != NULL;) {
        drop_listener(RD_CONTAINER(node, rd_listener, in_server));
    }
    rd_unlock(binding);
    return Qnil;
}

/* inode: of a listening socket. */
static VALUE core_retire(VALUE self, VALUE inode) {
    rd_binding *binding = rd_binding_of(self);
    uint64_t number = NUM2ULL(inode);
    if (rd_is_forked(binding)) return Qnil;
    rd_lock(binding);
    rd_retire_socket(binding->server, number);
    rd_unlock(binding);
    return Qnil;
}

static VALUE core_addresses(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    VALUE urls = rb_ary_new();
    rd_list *all = &binding->server->listeners;
    for (rd_list *node = all->next; node != all; node = node->next) {
        rb_ary_push(urls, rb_str_new_cstr(RD_CONTAINER(node, rd_listener, in_server)->url));
    }
    return urls;
}

void rd_init_core_listening(VALUE core) {
    rb_define_method(core, "listen", core_listen, 1);
    rb_define_method(core, "keep_files", core_keep_files, 0);
    rb_define_method(core, "close_listeners", core_close_listeners, 0);
    rb_define_method(core, "retire", core_retire, 1);
    rb_define_method(core, "addresses", core_addresses, 0);
}
