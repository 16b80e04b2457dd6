/* SPDX-License-Identifier: MIT
 *
 * Accept fields. The input is the value of one; with a LF in it, of two. Holds: no crash; the
 * answer is that of a reader that blots out quoted strings first and cuts the rest at every
 * separator.
 */
#include <ctype.h>

#include "fuzz.h"
#include "endpoint/sse_accept.h"

/* In quoted strings nothing but 'x'; everything in lower case. */
static void blot(char *text, size_t len) {
    int quoted = 0;
    for (size_t i = 0; i < len; i++) {
        const int ends = text[i] == '"', escaped = text[i] == '\\' && quoted;
        text[i] = (char)(quoted ? 'x' : tolower((unsigned char)text[i]));
        if (ends) quoted = !quoted;
        if (escaped && i + 1 < len) text[++i] = 'x';
    }
}

static char *trim(char *text) {
    while (*text == ' ' || *text == '\t') text++;
    for (size_t len = strlen(text); len && (text[len - 1] == ' ' || text[len - 1] == '\t');)
        text[--len] = '\0';
    return text;
}

static int refuses(const char *parameter) {
    if (strncmp(parameter, "q=0", 3) != 0) return 0;
    if (parameter[3] == '\0') return 1;
    return parameter[3] == '.' && strspn(parameter + 4, "0") == strlen(parameter + 4);
}

static int wants(char *element) {
    char *rest = element, *type = trim(strsep(&rest, ";")), *part;
    int refused = 0;
    while ((part = strsep(&rest, ";")) != NULL) refused |= refuses(trim(part));
    return !refused && strcmp(type, "text/event-stream") == 0;
}

static int reference(const char *value, size_t len) {
    char *text = malloc(len + 1), *rest = text, *element;
    int answer = 0;
    FUZZ_CHECK(text);
    memcpy(text, value, len);
    text[len] = '\0';
    blot(text, len);
    while ((element = strsep(&rest, ",")) != NULL) answer |= wants(element);
    free(text);
    return answer;
}

static void add(rd_head *head, size_t at, size_t len) {
    *rd_head_next_header(head) =
        (rd_header){.id = RD_HEADER_ACCEPT, .value_at = (uint32_t)at, .value_len = (uint32_t)len};
    head->header_count++;
    head->seen[RD_HEADER_ACCEPT / 64] |= UINT64_C(1) << (RD_HEADER_ACCEPT % 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    rd_head head;
    /* control bytes are no part of a value */
    for (size_t i = 0; i < len; i++)
        if ((bytes[i] < ' ' && bytes[i] != '\t' && bytes[i] != '\n') || bytes[i] == 0x7f) return 0;
    if (len > 4096) return 0;
    char *text = fuzz_copy(bytes, len);
    const char *end = len ? memchr(text, '\n', len) : NULL;
    const size_t first = end ? (size_t)(end - text) : len, second = end ? first + 1 : len;
    if (end && memchr(end + 1, '\n', len - second)) {
        free(text);
        return 0;
    }
    rd_head_init(&head);
    add(&head, 0, first);
    if (end) add(&head, second, len - second);
    FUZZ_CHECK(rd_sse_is_accepted(&head, text) ==
               (reference(text, first) | reference(text + second, len - second)));
    rd_head_clear(&head);
    free(text);
    return 0;
}
