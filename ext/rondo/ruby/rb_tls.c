/* SPDX-License-Identifier: MIT
 *
 * Certificates and keys as Strings of Ruby; see rb_tls.h.
 */
#include "ruby/rb_tls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/fd.h"
#include "server/server.h"
#include "ruby/rb_error.h"
#include "ruby/rb_tickets.h"
#include "ruby/rb_value.h"
#include "tls/tls_client.h"

static rd_slice bytes_of(VALUE hash, const char *name) {
    VALUE value = rd_option(hash, name);
    if (NIL_P(value)) return RD_SLICE("");
    StringValue(value);
    return rd_slice_of(RSTRING_PTR(value), (size_t)RSTRING_LEN(value));
}

static const char *text_of(VALUE hash, const char *name) {
    VALUE value = rd_option(hash, name);
    return NIL_P(value) ? NULL : StringValueCStr(value);
}

static rd_tls_pair read_pair(VALUE pair, bool is_checked) {
    return (rd_tls_pair){
        .is_checked = is_checked,
        .certificates = bytes_of(pair, "certificate"),
        .key = bytes_of(pair, "key"),
        .certificates_name = text_of(pair, "certificate_name"),
        .key_name = text_of(pair, "key_name"),
        .password = text_of(pair, "password"),
    };
}

static rd_tls_verify verify_mode(VALUE tls) {
    VALUE mode = rd_option(tls, "verify_mode");
    if (mode == ID2SYM(rb_intern("peer"))) return RD_TLS_VERIFY_PEER;
    if (mode == ID2SYM(rb_intern("force_peer"))) return RD_TLS_VERIFY_FORCE;
    return RD_TLS_VERIFY_NONE;
}

/* What was read, while the Hash lives. `room` is to be given back by rb_free_tmp_buffer(). */
static rd_tls_options read_options(VALUE tls, VALUE *room) {
    VALUE pairs = rd_option(tls, "certificates");
    const size_t count = (size_t)RARRAY_LEN(pairs);
    rd_tls_pair *read = rb_alloc_tmp_buffer_with_count(room, count * sizeof(*read), count);
    const bool is_checked = RTEST(rd_option(tls, "checked"));
    for (size_t i = 0; i < count; i++) {
        read[i] = read_pair(rb_ary_entry(pairs, (long)i), is_checked);
    }
    return (rd_tls_options){
        .pairs = read,
        .pair_count = count,
        .ca = bytes_of(tls, "ca"),
        .ca_name = text_of(tls, "ca_name"),
        .verify = verify_mode(tls),
        .verification_flags = text_of(tls, "verification_flags"),
        .ciphers = text_of(tls, "ciphers"),
        .ciphersuites = text_of(tls, "ciphersuites"),
        .protocols = bytes_of(tls, "protocols"),
    };
}

NORETURN(static void refuse(VALUE tls, const char *error));
static void refuse(VALUE tls, const char *error) {
    rb_raise(rd_eAddressError, "cannot listen on %s: %s", text_of(tls, "address"), error);
}

/* ---- transports by name ---- */

struct rd_tls_named {
    char *name; /* NULL: nobody shares it */
    const rd_transport *transport;
};

static const rd_transport *find(const rd_tls_transports *transports, const char *name) {
    for (size_t i = 0; name != NULL && i < transports->count; i++) {
        const rd_tls_named *row = &transports->rows[i];
        if (row->name != NULL && strcmp(row->name, name) == 0) return row->transport;
    }
    return NULL;
}

static char *copy_of(const char *name) {
    if (name == NULL) return NULL;
    const size_t size = strlen(name) + 1;
    return memcpy(rd_alloc(size), name, size);
}

static void add(rd_tls_transports *transports, const char *name, const rd_transport *transport) {
    const size_t size = (transports->count + 1) * sizeof(transports->rows[0]);
    transports->rows = rd_realloc(transports->rows, size);
    transports->rows[transports->count++] = (rd_tls_named){
        .name = copy_of(name),
        .transport = transport,
    };
}

void rd_tls_transports_clear(rd_tls_transports *transports) {
    for (size_t i = 0; i < transports->count; i++) {
        rd_free(transports->rows[i].name);
        rd_transport_unref(transports->rows[i].transport);
    }
    rd_free(transports->rows);
    transports->rows = NULL;
    transports->count = 0;
}

static const rd_transport *make(rd_tls_transports *transports, VALUE tickets, VALUE tls) {
    char error[RD_TLS_ERROR_MAX];
    VALUE room;
    rd_tls_options options = read_options(tls, &room);
    options.keys = rd_ticket_keys_of(tickets);
    const rd_transport *made = rd_tls_new(&options, error);
    rb_free_tmp_buffer(&room);
    RB_GC_GUARD(tls);
    if (made == NULL) refuse(tls, error);
    add(transports, text_of(tls, "name"), made);
    return made;
}

/* Keys take their time, so what is shown is made before the lock is taken. */
static void show(rd_server *server, const rd_transport *transport, VALUE tls) {
    char error[RD_TLS_ERROR_MAX];
    VALUE room;
    const rd_tls_options options = read_options(tls, &room);
    const bool is_same = rd_tls_shows(transport, &options);
    rd_tls_sets *sets = is_same ? NULL : rd_tls_sets_new(&options, error);
    rb_free_tmp_buffer(&room);
    RB_GC_GUARD(tls);
    if (is_same) return;
    if (sets == NULL) refuse(tls, error);
    rd_server_lock(server);
    sets = rd_tls_show(transport, sets);
    rd_server_unlock(server);
    rd_tls_sets_free(sets);
}

bool rd_tls_reload(rd_server *server, const rd_tls_transports *transports, VALUE tls) {
    const rd_transport *known = find(transports, text_of(tls, "name"));
    if (known != NULL) show(server, known, tls);
    return known != NULL;
}

const rd_transport *rd_tls_from(rd_server *server, rd_tls_transports *transports, VALUE tickets,
                                VALUE tls) {
    const rd_transport *known = find(transports, text_of(tls, "name"));
    if (known == NULL) return make(transports, tickets, tls);
    show(server, known, tls);
    return known;
}

/* ---- outgoing connections ---- */

/* Sets of options in use, and those that are kept beyond that: who connects again needs the same.
 */
enum { CLIENTS_MAX = 64, CLIENTS_KEPT = 8 };

NORETURN(static void refuse_client(VALUE tls, const char *error));
static void refuse_client(VALUE tls, const char *error) {
    rb_raise(rd_eAddressError, "cannot connect to %s: %s", text_of(tls, "address"), error);
}

static const rd_transport *make_client(VALUE tls, char error[RD_TLS_ERROR_MAX]) {
    VALUE pair = rd_option(tls, "pair");
    const rd_tls_pair read = NIL_P(pair) ? (rd_tls_pair){0} : read_pair(pair, true);
    const rd_tls_client_options options = {
        .verifies = RTEST(rd_option(tls, "verifies")),
        .ca = bytes_of(tls, "ca"),
        .ca_name = text_of(tls, "ca_name"),
        .pair = NIL_P(pair) ? NULL : &read,
        .protocols = bytes_of(tls, "protocols"),
    };
    return rd_tls_client_new(&options, error);
}

static size_t count_unused(const rd_tls_transports *transports) {
    size_t count = 0;
    for (size_t i = 0; i < transports->count; i++) {
        count += rd_tls_client_is_unused(transports->rows[i].transport);
    }
    return count;
}

static void drop_row(rd_tls_transports *transports, size_t index) {
    rd_tls_named *row = &transports->rows[index];
    rd_free(row->name);
    rd_transport_unref(row->transport);
    memmove(row, row + 1, (--transports->count - index) * sizeof(*row));
}

/* The row that was used longest ago stands first. Returns how many are in use. */
static size_t drop_unused(rd_tls_transports *transports) {
    size_t unused = count_unused(transports);
    for (size_t i = 0; unused > CLIENTS_KEPT;) {
        if (rd_tls_client_is_unused(transports->rows[i].transport)) {
            drop_row(transports, i);
            unused--;
        } else {
            i++;
        }
    }
    return transports->count - unused;
}

/* Brings the row of that name to the end. */
static const rd_transport *use(rd_tls_transports *transports, const char *name) {
    rd_tls_named *rows = transports->rows;
    for (size_t i = 0; i < transports->count; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        const rd_tls_named row = rows[i];
        memmove(rows + i, rows + i + 1, (transports->count - i - 1) * sizeof(row));
        rows[transports->count - 1] = row;
        return row.transport;
    }
    return NULL;
}

const rd_transport *rd_tls_client_from(rd_tls_transports *transports, VALUE tls) {
    char error[RD_TLS_ERROR_MAX];
    const rd_transport *known = use(transports, text_of(tls, "name"));
    if (known != NULL) return rd_transport_ref(known);
    if (drop_unused(transports) >= CLIENTS_MAX) {
        refuse_client(tls, "64 different sets of TLS options are in use");
    }
    const rd_transport *made = make_client(tls, error);
    RB_GC_GUARD(tls);
    if (made == NULL) refuse_client(tls, error);
    add(transports, text_of(tls, "name"), made);
    return rd_transport_ref(made);
}

/* Whether a listener could show these certificates.
 * @param tls [TLS::Material]
 * @return [Array<Array(String, Integer)>] of each pair a name and the end of its validity, in
 * seconds since 1970
 * @raise [AddressError] half a line: why not */
static VALUE tls_check(VALUE self, VALUE tls) {
    char error[RD_TLS_ERROR_MAX];
    VALUE room, result = rb_ary_new();
    (void)self;
    const rd_tls_options options = read_options(tls, &room);
    rd_tls_sets *sets = rd_tls_sets_new(&options, error);
    rb_free_tmp_buffer(&room);
    RB_GC_GUARD(tls);
    if (sets == NULL) rb_raise(rd_eAddressError, "%s", error);
    rd_tls_validity validity;
    for (size_t i = 0; rd_tls_sets_validity(sets, i, &validity); i++) {
        VALUE name = rb_str_new_cstr(validity.name);
        rb_ary_push(result, rb_assoc_new(name, LL2NUM(validity.ends_s)));
    }
    rd_tls_sets_free(sets);
    return result;
}

/* ---- for other processes ---- */

static bool write_all(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        const ssize_t written = write(fd, bytes, len);
        if (written < 0) return false;
        bytes += written;
        len -= (size_t)written;
    }
    return true;
}

static bool forbid_changes(int fd) {
#ifdef F_ADD_SEALS
    return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
#else
    (void)fd;
    return true;
#endif
}

/* Bytes that no disk ever has, and that nobody can change if the system can forbid it: for keys on
 * their way to a worker.
 * @param bytes [String]
 * @return [Integer] a descriptor that the caller owns, at the end of what was written */
static VALUE tls_seal(VALUE self, VALUE bytes) {
    (void)self;
    StringValue(bytes);
    bool can_be_sealed;
    const int fd = rd_fd_nameless_secret("rondo tls", &can_be_sealed);
    if (fd < 0) rb_sys_fail("tls");
    if (!write_all(fd, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes)) ||
        (can_be_sealed && !forbid_changes(fd))) {
        rd_close_keeping_errno(fd);
        rb_sys_fail("tls");
    }
    RB_GC_GUARD(bytes);
    return INT2NUM(fd);
}

/* @return [String, nil] the library and its version; nil: this build has no TLS */
static VALUE tls_library(VALUE self) {
    (void)self;
    const char *library = rd_tls_library();
    return library == NULL ? Qnil : rb_sprintf("OpenSSL %s", library);
}

void rd_init_tls(VALUE rondo) {
    VALUE tls = rb_define_module_under(rondo, "TLS");
    rb_define_singleton_method(tls, "seal", tls_seal, 1);
    rb_define_singleton_method(tls, "library", tls_library, 0);
    rb_define_singleton_method(tls, "check", tls_check, 1);
    rd_init_tickets(tls);
}
