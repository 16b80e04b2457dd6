/* SPDX-License-Identifier: MIT
 *
 * The transport of a listener for TLS, out of what lib/rondo/config/tls.rb has read.
 */
#ifndef RD_RUBY_RB_TLS_H
#define RD_RUBY_RB_TLS_H

#include <ruby.h>

typedef struct rd_transport rd_transport;

/* `tls`: a Hash with address (for messages), certificates (an Array of Hashes: certificate, key,
 * certificate_name, key_name, password), ca, ca_name, verify_mode, verification_flags, ciphers,
 * ciphersuites. Returns a transport with one owner. Raises Rondo::AddressError. */
const rd_transport *rd_tls_from(VALUE tls);

/* Defines Rondo::TLS.seal and Rondo::TLS.library. */
void rd_init_tls(VALUE rondo);

#endif
