/* SPDX-License-Identifier: MIT
 *
 * Tokens, browsers and loopback addresses; see access.h.
 */
#include "control/access.h"

#include <string.h>

#include "control/token.h"
#include "http/field_list.h"

/* How a browser says where the request comes from (W3C Fetch Metadata); NULL: it does not say it.
 */
static rd_slice site_of(const rd_request *request) {
    const rd_header *site = rd_head_find(&request->head, RD_HEADER_SEC_FETCH_SITE);
    static const rd_slice none;
    return site != NULL ? rd_request_header_value(request, site) : none;
}

/* The status page sends no Referer, and reads its events without Origin: both are of its own
 * origin. */
static bool is_own_page(const rd_request *request) {
    return rd_slice_equal(site_of(request), RD_SLICE("same-origin")) &&
           request->head.method_id != RD_METHOD_POST;
}

/* A page of any site, in a browser on this machine, can send requests to the server, too. */
static bool is_from_a_page(const rd_request *request, bool is_page) {
    const rd_head *head = &request->head;
    if (rd_head_has(head, RD_HEADER_ORIGIN) || rd_head_has(head, RD_HEADER_REFERER)) return true;
    const rd_slice site = site_of(request);
    if (is_page && is_own_page(request)) return false;
    return site.ptr != NULL && !rd_slice_equal(site, RD_SLICE("none"));
}

/* A password that the browser keeps goes along with requests of other sites, too. */
static bool has_token(const char *token, const rd_request *request, bool is_page) {
    if (!is_page || is_from_a_page(request, true)) return rd_token_matches(token, request);
    return rd_token_is_password(token, request);
}

static bool is_loopback(const rd_address *address) {
    static const uint8_t loopback[16] = {[15] = 1};
    if (address->kind == RD_ADDRESS_V4) return address->bytes[0] == 127;
    return address->kind == RD_ADDRESS_V6 && memcmp(address->bytes, loopback, 16) == 0;
}

/* DNS rebinding: a page whose name was made to resolve to this machine is of the same origin for
 * its browser, which sends none of these fields. But Host is then that name. */
static bool is_for_this_machine(const rd_request *request) {
    rd_slice host = rd_request_slice(request, request->head.host);
    rd_address address;
    if (host.len == 0 || rd_field_is_word(host, RD_SLICE("localhost"))) return true;
    return rd_address_parse(&address, host.ptr, host.len) && is_loopback(&address);
}

/* A browser cannot connect to a Unix socket. */
static bool is_guarded_by_file(const rd_request *request) {
    return request->conn->peer.kind == RD_ADDRESS_UNIX;
}

const char *rd_access_refusal(const char *token, const rd_request *request, bool is_page) {
    if (token != NULL) {
        return has_token(token, request, is_page) ? NULL : RD_ACCESS_WRONG_TOKEN;
    }
    if (is_from_a_page(request, is_page)) return "a request from a page in a browser needs a token";
    if (is_guarded_by_file(request) || is_for_this_machine(request)) return NULL;
    return "Host is neither localhost nor a loopback address: such a request needs a token";
}

/* Without a token a verb cannot be called by GET: the address of an image would be enough to call
 * one. pumactl uses GET, with its token or through a Unix socket. */
const char *rd_access_methods(const char *token, const rd_request *request, bool is_verb) {
    if (!is_verb) return "GET, HEAD, POST";
    return token != NULL || is_guarded_by_file(request) ? "GET, POST" : "POST";
}

bool rd_access_has_method(const rd_request *request, const char *methods) {
    switch (request->head.method_id) {
    case RD_METHOD_GET:
        return strstr(methods, "GET") != NULL;
    case RD_METHOD_HEAD:
        return strstr(methods, "HEAD") != NULL;
    default:
        return request->head.method_id == RD_METHOD_POST;
    }
}

bool rd_access_is_public(const rd_listener *listener) {
    rd_address address;
    if (listener->port == 0) return false; /* a Unix socket */
    if (!rd_address_parse(&address, listener->host, strlen(listener->host))) return true;
    return !is_loopback(&address);
}
