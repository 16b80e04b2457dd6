/* SPDX-License-Identifier: MIT
 *
 * Reads Accept-Encoding; see accept_encoding.h.
 */
#include "files/accept_encoding.h"

#include "http/field_list.h"

/* Weights are in thousandths. */
enum { UNSAID = -1, WHOLE = 1000 };

/* Weights of the known codings, and of "*": all others. */
typedef struct weights {
    int of[RD_CODING_COUNT];
    int others;
} weights;

static int parse_digit(char byte) {
    return byte >= '0' && byte <= '9' ? byte - '0' : UNSAID;
}

/* Parses "0" to "1" with up to three decimals. UNSAID for anything else. */
static int parse_weight(rd_slice text) {
    int weight;
    if (text.len == 0 || text.len > 5 || (text.len > 1 && text.ptr[1] != '.')) return UNSAID;
    weight = parse_digit(text.ptr[0]) * WHOLE;
    for (size_t i = 2, worth = WHOLE / 10; i < text.len; i++, worth /= 10) {
        const int digit = parse_digit(text.ptr[i]);
        if (digit == UNSAID) return UNSAID;
        weight += digit * (int)worth;
    }
    return weight >= 0 && weight <= WHOLE ? weight : UNSAID;
}

/* Reads what follows the name of a coding: nothing, or one parameter, its weight. */
static int read_weight(rd_slice parameters) {
    rd_slice parameter;
    if (!rd_field_list_next(&parameters, ';', &parameter)) return WHOLE;
    if (parameters.ptr != NULL) return UNSAID;
    if (parameter.len < 2 || (parameter.ptr[0] | 0x20) != 'q' || parameter.ptr[1] != '=')
        return UNSAID;
    return parse_weight(rd_slice_of(parameter.ptr + 2, parameter.len - 2));
}

/* The place for the weight of this coding; NULL for an unknown coding. */
static int *find(weights *all, rd_slice name) {
    if (rd_field_is_word(name, RD_SLICE("gzip"))) return &all->of[RD_CODING_GZIP];
    if (rd_field_is_word(name, RD_SLICE("br"))) return &all->of[RD_CODING_BR];
    if (rd_field_is_word(name, RD_SLICE("zstd"))) return &all->of[RD_CODING_ZSTD];
    if (rd_field_is_word(name, RD_SLICE("identity"))) return &all->of[RD_CODING_IDENTITY];
    if (rd_field_is_word(name, RD_SLICE("x-gzip"))) return &all->of[RD_CODING_GZIP];
    return name.len == 1 && name.ptr[0] == '*' ? &all->others : NULL;
}

static void read_element(weights *all, rd_slice element) {
    rd_slice name;
    if (!rd_field_list_next(&element, ';', &name)) return;
    int *const said = find(all, name);
    if (said == NULL) return;
    const int weight = read_weight(element);
    if (weight != UNSAID && (*said == UNSAID || weight < *said)) *said = weight;
}

static void read_lines(weights *all, const rd_request *request) {
    for (unsigned i = 0; i < request->head.header_count; i++) {
        const rd_header *line = &request->head.headers[i];
        if (line->id != RD_HEADER_ACCEPT_ENCODING) continue;
        rd_slice element, list = rd_request_header_value(request, line);
        while (rd_field_list_next(&list, ',', &element)) read_element(all, element);
    }
}

static int weight_of(const weights *all, unsigned encoding) {
    return all->of[encoding] == UNSAID ? all->others : all->of[encoding];
}

unsigned rd_accept_encoding(const rd_request *request, unsigned available) {
    weights all = {.of = {UNSAID, UNSAID, UNSAID, UNSAID}, .others = UNSAID};
    unsigned best = RD_CODING_IDENTITY;
    int weight = 0;
    if (!rd_head_has(&request->head, RD_HEADER_ACCEPT_ENCODING)) return RD_CODING_IDENTITY;
    read_lines(&all, request);
    for (unsigned encoding = RD_CODING_BR; encoding < RD_CODING_COUNT; encoding++) {
        if (!(available & 1u << encoding) || weight_of(&all, encoding) <= weight) continue;
        best = encoding;
        weight = weight_of(&all, encoding);
    }
    return weight_of(&all, RD_CODING_IDENTITY) > weight ? RD_CODING_IDENTITY : best;
}
