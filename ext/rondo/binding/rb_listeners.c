/* SPDX-License-Identifier: MIT
 *
 * The listening sockets of a server: methods of Rondo::Server::Core that open, keep and close them.
 */
#include "binding/rb_listeners.h"

#include "base/alloc.h"
#include "server/stop.h"
#include "ruby/rb_error.h"
#include "ruby/rb_listen.h"
#include "ruby/rb_value.h"
#include "binding/rb_binding.h"
#include "binding/rb_fork.h"

static void drop_listener(rd_listener *listener) {
    rd_listener_close(listener);
    rd_free(listener);
}

/* A raw listener's number is the index of what makes the handlers of its connections, which the
 * binding keeps for as long as the server; connections may be claimed after their listener ended. A
 * process that only opens the socket has nothing of the kind. */
static void make_raw(rd_binding *binding, rd_listener *listener, VALUE maker) {
    const uint32_t number = rd_indexes_acquire(&binding->clients.indexes);
    rb_ary_store(binding->clients.objects, number, maker);
    rd_listener_make_raw(listener, number,
                         (unsigned)(binding->server->settings.ping_interval_ms / 1000));
}

/* Binds and listens at once. Returns {url:, host:, port:, fd:}. */
static VALUE core_listen(VALUE self, VALUE address) {
    rd_binding *binding = rd_own_binding_of(self);
    VALUE tls = rd_option(address, "tls");
    const rd_transport *transport = NULL;
    if (!NIL_P(tls)) {
        transport = rd_tls_from(binding->server, &binding->tls, binding->cluster.tickets, tls);
    }
    rd_listener *listener = rd_listener_from(&binding->server->settings, address, transport);
    VALUE maker = rd_option(address, "raw"), site = rd_option(address, "site");
    if (RTEST(maker)) make_raw(binding, listener, maker);
    rd_lock(binding);
    if (!NIL_P(site)) {
        listener->site = (uint16_t)FIX2UINT(site);
        rd_server_begin_sites(binding->server);
    }
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

/* Listeners that have these words of TLS show these certificates from the next handshake on.
 * Returns whether there are any. Raises AddressError. */
static VALUE core_show_certificates(VALUE self, VALUE tls) {
    rd_binding *binding = rd_own_binding_of(self);
    return rd_tls_reload(binding->server, &binding->tls, tls) ? Qtrue : Qfalse;
}

/* Before another process takes over: the files of Unix sockets stay. */
static VALUE core_keep_files(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) return Qnil;
    rd_list *all = &binding->server->accepting.listeners;
    rd_lock(binding);
    for (rd_list *node = all->next; node != all; node = node->next) {
        rd_listener_keep_file(RD_CONTAINER(node, rd_listener, in_server));
    }
    rd_unlock(binding);
    return Qnil;
}

/* For a process that only opens sockets: closes them without a turn, which would accept. */
static VALUE core_close_listeners(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    if (rd_is_forked(binding)) return Qnil;
    rd_lock(binding);
    for (rd_list *node; (node = rd_list_shift(&binding->server->accepting.listeners)) != NULL;) {
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
    rd_server_retire_socket(binding->server, number);
    rd_unlock(binding);
    return Qnil;
}

static VALUE core_addresses(VALUE self) {
    rd_binding *binding = rd_binding_of(self);
    VALUE urls = rb_ary_new();
    rd_list *all = &binding->server->accepting.listeners;
    for (rd_list *node = all->next; node != all; node = node->next) {
        rb_ary_push(urls, rb_str_new_cstr(RD_CONTAINER(node, rd_listener, in_server)->url));
    }
    return urls;
}

void rd_init_core_listening(VALUE core) {
    rb_define_method(core, "listen", core_listen, 1);
    rb_define_method(core, "show_certificates", core_show_certificates, 1);
    rb_define_method(core, "keep_files", core_keep_files, 0);
    rb_define_method(core, "close_listeners", core_close_listeners, 0);
    rb_define_method(core, "retire", core_retire, 1);
    rb_define_method(core, "addresses", core_addresses, 0);
}
