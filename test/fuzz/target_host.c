/* SPDX-License-Identifier: MIT
 *
 * Request targets and hosts. First byte: which method, and whether the rest is a target or a host.
 * Holds: no crash; the parts lie inside and in order; putting them together again gives the input,
 * and a host with its port, taken for itself, is read the same.
 */
#include "fuzz.h"
#include "base/error.h"
#include "http/target.h"

static void check_host(const char *ptr, size_t len) {
    uint32_t host_len = 0, again_len = 0;
    uint16_t port = 0, again_port = 0;

    if (rd_authority_parse(ptr, len, &host_len, &port) < 0) return;
    FUZZ_CHECK(host_len > 0 && host_len <= len);
    FUZZ_CHECK(host_len == len ? port == 0 : ptr[host_len] == ':');
    for (size_t i = 0; i < len; i++)
        FUZZ_CHECK(ptr[i] > ' ' && !strchr("/@,?#\\\"<>^`{|}", ptr[i]));
    FUZZ_CHECK(rd_authority_parse(ptr, host_len, &again_len, &again_port) == 0);
    FUZZ_CHECK(again_len == host_len && again_port == 0);
}

static void check_split(const rd_head *head, const char *buf) {
    const uint32_t end = head->target.at + head->target.len;
    const uint32_t path_end = head->path.at + head->path.len;

    FUZZ_CHECK(head->path.at <= end && path_end <= end && head->query.at >= path_end);
    FUZZ_CHECK(head->query.at + head->query.len == end);
    FUZZ_CHECK(head->query.at == path_end || buf[path_end] == '?');
    FUZZ_CHECK(memchr(buf + head->path.at, '?', head->path.len) == NULL);
    switch (head->form) {
    case RD_TARGET_ORIGIN:
        FUZZ_CHECK(head->path.at == head->target.at && buf[head->path.at] == '/');
        break;
    case RD_TARGET_ABSOLUTE:
        FUZZ_CHECK(head->authority.at + head->authority.len == head->path.at);
        FUZZ_CHECK(head->path.len == 0 || buf[head->path.at] == '/');
        check_host(buf + head->authority.at, head->authority.len);
        break;
    case RD_TARGET_ASTERISK:
        FUZZ_CHECK(head->target.len == 1 && buf[0] == '*');
        break;
    default:
        FUZZ_CHECK(head->port > 0 && head->authority.len == head->target.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    rd_head head;
    char *buf;

    if (len < 2 || len > 4096) return 0;
    buf = fuzz_copy(bytes + 1, --len);
    if (bytes[0] & 0x80) {
        check_host(buf, len);
    } else {
        rd_head_init(&head);
        head.method_id = (uint8_t)(bytes[0] % RD_METHOD_COUNT);
        head.target = (rd_span){0, (uint32_t)len};
        if (rd_target_parse(&head, buf, bytes[0] & 0x40) == 0) check_split(&head, buf);
        rd_head_clear(&head);
    }
    free(buf);
    return 0;
}
