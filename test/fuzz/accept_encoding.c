/* SPDX-License-Identifier: MIT
 *
 * Accept-Encoding fields. The first byte of the input says which codings there are, the rest is the
 * value of the field, each LF the start of another line. Holds: no crash; the answer is that of a
 * reader that blots out quoted strings, cuts at every comma, and takes what a regular expression
 * takes.
 */
#include <regex.h>
#include <strings.h>

#include "fuzz.h"
#include "files/accept_encoding.h"

static const char *const names[] = {"identity", "br", "zstd", "gzip", "x-gzip", "*"};
enum { NAMES = 6, X_GZIP = 4, OTHERS = 5 };

/* In quoted strings nothing but '!', which is in no coding we know and in no weight. */
static void blot(char *text, size_t len) {
    int quoted = 0;
    for (size_t i = 0; i < len; i++) {
        const int ends = text[i] == '"', escaped = text[i] == '\\' && quoted;
        if (quoted || ends) text[i] = '!';
        if (ends) quoted = !quoted;
        if (escaped && i + 1 < len) text[++i] = '!';
    }
}

static const regex_t *element_pattern(void) {
    static regex_t pattern;
    static int is_ready;
    if (!is_ready) {
        FUZZ_CHECK(regcomp(&pattern,
                           "^[ \t]*([-a-z*]+)[ \t]*(;[ \t]*q=(0(\\.[0-9]{0,3})?|1(\\.0{0,3})?)[ "
                           "\t]*)?$",
                           REG_EXTENDED | REG_ICASE) == 0);
        is_ready = 1;
    }
    return &pattern;
}

/* The lowest weight each name was given in that line. */
static void read_line(const char *value, size_t len, double weights[NAMES]) {
    char *text = malloc(len + 1), *rest = text, *element;
    regmatch_t found[4];
    FUZZ_CHECK(text);
    memcpy(text, value, len);
    text[len] = '\0';
    blot(text, len);
    while ((element = strsep(&rest, ",")) != NULL) {
        if (regexec(element_pattern(), element, 4, found, 0) != 0) continue;
        const double weight = found[3].rm_so < 0 ? 1.0 : atof(element + found[3].rm_so);
        element[found[1].rm_eo] = '\0';
        for (int i = 0; i < NAMES; i++)
            if (strcasecmp(element + found[1].rm_so, names[i]) == 0 &&
                (weights[i] < 0 || weight < weights[i]))
                weights[i] = weight;
    }
    free(text);
}

static unsigned reference(double weights[NAMES], unsigned available) {
    unsigned best = RD_CODING_IDENTITY;
    double most = 0;
    if (weights[X_GZIP] >= 0 &&
        (weights[RD_CODING_GZIP] < 0 || weights[X_GZIP] < weights[RD_CODING_GZIP]))
        weights[RD_CODING_GZIP] = weights[X_GZIP];
    for (unsigned i = 0; i < RD_CODING_COUNT; i++)
        if (weights[i] < 0) weights[i] = weights[OTHERS];
    for (unsigned i = RD_CODING_COUNT - 1; i >= 1; i--)
        if (available >> i & 1 && weights[i] > 0 && weights[i] >= most) most = weights[best = i];
    return weights[RD_CODING_IDENTITY] > most ? RD_CODING_IDENTITY : best;
}

static void add(rd_head *head, size_t at, size_t len) {
    *rd_head_next_header(head) = (rd_header){
        .id = RD_HEADER_ACCEPT_ENCODING, .value_at = (uint32_t)at, .value_len = (uint32_t)len};
    head->header_count++;
    head->seen[RD_HEADER_ACCEPT_ENCODING / 64] |= UINT64_C(1) << RD_HEADER_ACCEPT_ENCODING % 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    static rd_request request;
    double weights[NAMES] = {-1, -1, -1, -1, -1, -1};
    if (len == 0 || len > 4096) return 0;
    const unsigned available = *bytes++;
    len--;
    /* control bytes are no part of a value */
    for (size_t i = 0; i < len; i++)
        if ((bytes[i] < ' ' && bytes[i] != '\t' && bytes[i] != '\n') || bytes[i] == 0x7f) return 0;
    rd_head_init(&request.head);
    request.bytes = fuzz_copy(bytes, len);
    for (size_t at = 0, end; at <= len; at = end + 1) {
        for (end = at; end < len && bytes[end] != '\n';) end++;
        add(&request.head, at, end - at);
        read_line(request.bytes + at, end - at, weights);
    }
    FUZZ_CHECK(rd_accept_encoding(&request, available) == reference(weights, available));
    rd_head_clear(&request.head);
    free(request.bytes);
    return 0;
}
