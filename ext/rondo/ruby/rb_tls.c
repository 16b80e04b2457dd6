/* SPDX-License-Identifier: MIT
 *
 * Certificates and keys as Strings of Ruby; see rb_tls.h.
 */
#include "ruby/rb_tls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "system/fd.h"
#include "ruby/rb_error.h"
#include "ruby/rb_value.h"
#include "tls/tls_context.h"

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

const rd_transport *rd_tls_from(VALUE tls) {
    char error[RD_TLS_ERROR_MAX];
    VALUE pairs = rd_option(tls, "certificates"), room;
    const size_t count = (size_t)RARRAY_LEN(pairs);
    rd_tls_pair *read = rb_alloc_tmp_buffer_with_count(&room, count * sizeof(*read), count);
    const bool is_checked = RTEST(rd_option(tls, "checked"));
    for (size_t i = 0; i < count; i++) {
        read[i] = read_pair(rb_ary_entry(pairs, (long)i), is_checked);
    }
    const rd_tls_options options = {
        .pairs = read,
        .pair_count = count,
        .ca = bytes_of(tls, "ca"),
        .ca_name = text_of(tls, "ca_name"),
        .verify = verify_mode(tls),
        .verification_flags = text_of(tls, "verification_flags"),
        .ciphers = text_of(tls, "ciphers"),
        .ciphersuites = text_of(tls, "ciphersuites"),
    };
    const rd_transport *transport = rd_tls_new(&options, error);
    rb_free_tmp_buffer(&room);
    RB_GC_GUARD(tls);
    if (transport == NULL) {
        rb_raise(rd_eAddressError, "cannot listen on %s: %s", text_of(tls, "address"), error);
    }
    return transport;
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

/* Bytes that no disk ever has, and that nobody can change: for keys on their way to a worker.
 * @param bytes [String]
 * @return [Integer] a descriptor that the caller owns, at the end of what was written */
static VALUE tls_seal(VALUE self, VALUE bytes) {
    (void)self;
    StringValue(bytes);
    const int fd = memfd_create("rondo tls", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) rb_sys_fail("tls");
    const unsigned seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (!write_all(fd, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes)) ||
        fcntl(fd, F_ADD_SEALS, seals) != 0) {
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
}
