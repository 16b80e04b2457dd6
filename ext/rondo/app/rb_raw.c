/* SPDX-License-Identifier: MIT
 *
 * Raw connections and their handlers: those that a listener accepts, and descriptors that the
 * application has connected. rb_upgrade.c has those that begin as a request.
 */
#include "app/rb_raw.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ruby/rb_names.h"
#include "binding/rb_fork.h"
#include "app/rb_client.h"

static VALUE new_client(rd_binding *binding, VALUE handler) {
    if (!rd_handler_wants_events(handler)) return Qnil;
    return rd_client_new(binding, &rd_upgrade_raw, handler, Qnil);
}

void rd_raw_claim(rd_binding *binding, rd_endpoint *endpoint, VALUE handler) {
    if (!RTEST(handler)) return;
    VALUE self = new_client(binding, handler);
    const rd_client_seat seat = rd_client_seat_new(binding, self, handler);
    rd_lock(binding);
    rd_endpoint_ref(endpoint);
    rd_client_attach(&seat, endpoint);
    rd_unlock(binding);
    RB_GC_GUARD(self);
}

/* ---- descriptors of the application ---- */

static bool has_option(int fd, int option, int wanted) {
    int value = 0;
    socklen_t len = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == wanted;
}

/* What is wrong with it, or NULL. */
static const char *complaint(int fd, rd_address *peer) {
    struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(from);
    if (fd < 0 || fcntl(fd, F_GETFD) < 0) return "it is closed";
    if (!has_option(fd, SO_TYPE, SOCK_STREAM)) return "it is not a stream socket";
    if (has_option(fd, SO_ACCEPTCONN, 1)) return "it is a listening socket";
    if (getpeername(fd, (struct sockaddr *)&from, &len) != 0) return "it is not connected";
    rd_address_from_sockaddr(peer, (const struct sockaddr *)&from);
    if (peer->kind == RD_ADDRESS_NONE) peer->kind = RD_ADDRESS_UNIX;
    return NULL;
}

/* A duplicate that does not block, like all descriptors of the loop; -1 with errno. */
static int duplicate(int fd, const rd_settings *settings) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return -1;
    fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) | O_NONBLOCK);
    rd_tcp_keep_alive(copy, (unsigned)(settings->ping_interval_ms / 1000));
    return copy;
}

static bool has_room(const rd_server *server) {
    return server->conns.count < server->accepting.limit &&
           !rd_ledger_lacks_descriptors(&server->conns.ledger);
}

/* The loop hears of it at once. */
static void open_raw(rd_server *server, int fd, const rd_address *peer,
                     const rd_client_seat *seat) {
    rd_endpoint *endpoint = rd_raw_open(&server->conns, fd, peer);
    rd_conn *conn = endpoint->conn;
    rd_client_attach(seat, endpoint);
    rd_conn_read_now(conn);
    rd_accept_limit(server);
    rd_loop_wakeup(&server->loop);
}

static bool try_open(rd_binding *binding, int fd, const rd_address *peer,
                     const rd_client_seat *seat) {
    rd_server *server = binding->server;
    rd_lock(binding);
    const bool may = has_room(server) && !server->conns.stopping;
    if (may) open_raw(server, fd, peer, seat);
    rd_unlock(binding);
    return may;
}

/* attach_fd(descriptor, handler) */
static VALUE core_attach_fd(VALUE self, VALUE descriptor, VALUE handler) {
    rd_binding *binding = rd_own_binding_of(self);
    const int fd = NUM2INT(descriptor);
    rd_address peer = {0};
    VALUE client = new_client(binding, handler);
    const rd_client_seat seat = rd_client_seat_new(binding, client, handler);
    const char *wrong = complaint(fd, &peer); /* from here on nothing but the end raises */
    const int copy = wrong != NULL ? -1 : duplicate(fd, &binding->server->settings);
    if (copy < 0 && wrong == NULL) wrong = strerror(errno);
    if (copy >= 0 && !try_open(binding, copy, &peer, &seat)) {
        close(copy);
        wrong = "there is no room for another connection, or the server stops";
    }
    RB_GC_GUARD(client);
    if (wrong == NULL) return Qnil;
    rd_client_let_go(binding, seat.index);
    rb_raise(rb_eArgError, "cannot attach descriptor %d: %s", fd, wrong);
}

void rd_init_core_raw(VALUE core) {
    rb_define_method(core, "attach_fd", core_attach_fd, 2);
}
