/* SPDX-License-Identifier: MIT
 *
 * Paths of requests as names of files. Holds: no crash; what is accepted is relative, terminated,
 * and has no segment that is empty, too long or hidden; which paths are accepted and what they name
 * is what comes out of doing one thing after the other: cut, decode, look at each piece.
 */
#include "fuzz.h"
#include "files/file_path.h"

static int naive_digit(char byte) {
    const char *digits = "00112233445566778899aAbBcCdDeEfF";
    const char *at = byte ? strchr(digits, byte) : NULL;

    return at ? (int)(at - digits) / 2 : -1;
}

/* Decodes into `piece`, which has room; -1 if an escape is broken. */
static long naive_decode(const char *ptr, size_t len, char *piece) {
    long decoded = 0;

    for (size_t i = 0; i < len; i++) {
        if (ptr[i] != '%') {
            piece[decoded++] = ptr[i];
            continue;
        }
        if (len - i < 3 || naive_digit(ptr[i + 1]) < 0 || naive_digit(ptr[i + 2]) < 0) return -1;
        piece[decoded++] = (char)(naive_digit(ptr[i + 1]) << 4 | naive_digit(ptr[i + 2]));
        i += 2;
    }
    return decoded;
}

static bool naive_accepts(const char *piece, size_t len, bool is_first) {
    for (size_t i = 0; i < len; i++) {
        const unsigned char byte = (unsigned char)piece[i];

        if (byte < ' ' || byte == 127 || byte == '/' || byte == '\\') return false;
    }
    if (len > 0 && piece[0] == '.')
        return is_first && len == 11 && memcmp(piece, ".well-known", 11) == 0;
    return len > 0 && len <= 255;
}

/* The name with a slash before each piece, or -1. */
static long naive_name(const char *path, size_t len, char *name) {
    long end = 0;

    if (len == 0 || path[0] != '/') return -1;
    for (size_t at = 0; at < len;) {
        const char *slash = memchr(path + at + 1, '/', len - at - 1);
        const size_t next = slash ? (size_t)(slash - path) : len;
        const bool is_end = next == at + 1 && next == len;
        const long piece = naive_decode(path + at + 1, next - at - 1, name + end + 1);

        if (is_end) break;
        if (piece < 0 || !naive_accepts(name + end + 1, (size_t)piece, at == 0)) return -1;
        name[end] = '/';
        end += piece + 1;
        at = next;
    }
    return end - 1 > RD_FILE_PATH_MAX ? -1 : end;
}

static void check_name(const rd_file_path *path) {
    FUZZ_CHECK(path->len <= RD_FILE_PATH_MAX && strlen(path->name) == path->len);
    FUZZ_CHECK(path->name[0] != '/' && !strstr(path->name, "//") && !strstr(path->name, "/."));
    if (path->len == 0) return;
    FUZZ_CHECK(path->name[path->len - 1] != '/');
    FUZZ_CHECK(path->name[0] != '.' || strncmp(path->name, ".well-known", 11) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    char *text = fuzz_copy(bytes, len), *name = malloc(len + 2);
    rd_file_path *path = malloc(sizeof *path);
    FUZZ_CHECK(name && path);
    const bool is_name = rd_file_path_parse(path, rd_slice_of(text, len));
    const long expected = naive_name(text, len, name);

    FUZZ_CHECK(is_name == (expected >= 0));
    if (is_name) {
        check_name(path);
        FUZZ_CHECK(path->len == (size_t)(expected > 0 ? expected - 1 : 0));
        FUZZ_CHECK(memcmp(path->name, name + 1, path->len) == 0);
        FUZZ_CHECK(path->is_folder == (text[len - 1] == '/'));
    }
    free(path);
    free(name);
    free(text);
    return 0;
}
