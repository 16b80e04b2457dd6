/* SPDX-License-Identifier: MIT
 *
 * files/file_path: which paths name a file, and which one.
 */
#include "check.h"

#include "files/file_path.h"

typedef struct row {
    const char *path, *name; /* NULL if the path is refused */
    bool is_folder;
} row;

static const row rows[] = {
    {"/", "", true},
    {"/a", "a", false},
    {"/a/", "a", true},
    {"/a/b.c", "a/b.c", false},
    {"/a/b/c/", "a/b/c", true},
    {"/a b+c~d;e=f,g@h:i", "a b+c~d;e=f,g@h:i", false},
    {"/a%20b", "a b", false},
    {"/%61%62", "ab", false},
    {"/%4a%4A", "JJ", false},
    {"/a%3fb%23c", "a?b#c", false},
    {"/%c3%a4\xc3\xa4", "\xc3\xa4\xc3\xa4", false},
    {"/%ff\xff", "\xff\xff", false},
    {"/a.", "a.", false},
    {"/a..", "a..", false},
    {"/a../b", "a../b", false},
    {"/a...b", "a...b", false},
    {"/~root", "~root", false},
    {"/-", "-", false},
    {"/con", "con", false},
    {"/a:$DATA", "a:$DATA", false},
    /* decoded once, not twice */
    {"/%252e", "%2e", false},
    {"/%252e%252e/a", "%2e%2e/a", false},
    {"/%252f", "%2f", false},
    {"/%2500", "%00", false},
    {"/%255c", "%5c", false},
    {"/%25252e", "%252e", false},
    {"/a%25", "a%", false},
    {"/%25%32%65", "%2e", false},
    /* overlong forms are not decoded */
    {"/%c0%ae", "\xc0\xae", false},
    {"/%c0%ae%c0%ae/%c0%afa",
     "\xc0\xae\xc0\xae/\xc0\xaf"
     "a",
     false},
    {"/%e0%80%ae", "\xe0\x80\xae", false},
    {"/%ef%bc%8f", "\xef\xbc\x8f", false},
    {"/%e2%88%95", "\xe2\x88\x95", false},
    {"/%u002e", NULL, false},
    /* no path, or not an absolute one */
    {"", NULL, false},
    {"a", NULL, false},
    {"*", NULL, false},
    {"%2fa", NULL, false},
    {"../a", NULL, false},
    {"\\a", NULL, false},
    {"http://a/b", NULL, false},
    /* invalid escapes */
    {"/%", NULL, false},
    {"/a%", NULL, false},
    {"/a%4", NULL, false},
    {"/a%4/b", NULL, false},
    {"/a%/bc", NULL, false},
    {"/%zz", NULL, false},
    {"/%4g", NULL, false},
    {"/%g4", NULL, false},
    {"/%%41", NULL, false},
    {"/% 41", NULL, false},
    {"/%+1", NULL, false},
    {"/%0x41", NULL, false},
    {"/%-1", NULL, false},
    /* control bytes */
    {"/%00", NULL, false},
    {"/a%00.png", NULL, false},
    {"/a.png%00", NULL, false},
    {"/%01", NULL, false},
    {"/%0a", NULL, false},
    {"/%0d%0aset-cookie:a", NULL, false},
    {"/%09", NULL, false},
    {"/%1f", NULL, false},
    {"/%7f", NULL, false},
    {"/a\nb", NULL, false},
    {"/a\tb", NULL, false},
    {"/a\x7f", NULL, false},
    /* dots, in all their spellings */
    {"/.", NULL, false},
    {"/..", NULL, false},
    {"/./", NULL, false},
    {"/../", NULL, false},
    {"/../a", NULL, false},
    {"/a/..", NULL, false},
    {"/a/../b", NULL, false},
    {"/a/./b", NULL, false},
    {"/a/.", NULL, false},
    {"/%2e", NULL, false},
    {"/%2E%2e", NULL, false},
    {"/.%2e/a", NULL, false},
    {"/%2e./a", NULL, false},
    {"/%2e%2e/%2e%2e/etc/passwd", NULL, false},
    {"/../../../../etc/passwd", NULL, false},
    {"/a/../../../etc/passwd", NULL, false},
    {"/..;/a", NULL, false},
    {"/..;a=b/c", NULL, false},
    {"/.;/a", NULL, false},
    {"/...", NULL, false},
    {"/..../", NULL, false},
    {"/.. /a", NULL, false},
    {"/..%20/a", NULL, false},
    {"/..%c0%af", NULL, false},
    /* names with a dot in front */
    {"/.env", NULL, false},
    {"/.git/config", NULL, false},
    {"/a/.htaccess", NULL, false},
    {"/%2egit/HEAD", NULL, false},
    {"/.hidden/a", NULL, false},
    {"/.well-known", ".well-known", false},
    {"/.well-known/", ".well-known", true},
    {"/.well-known/acme-challenge/a", ".well-known/acme-challenge/a", false},
    {"/%2ewell-known/a", ".well-known/a", false},
    {"/.well-known/.a", NULL, false},
    {"/.well-known/..", NULL, false},
    {"/.well-known/../a", NULL, false},
    {"/.well-known/%2e%2e/a", NULL, false},
    {"/.well-known/.well-known", NULL, false},
    {"/a/.well-known/b", NULL, false},
    {"/.well-knownX/a", NULL, false},
    {"/.well-know/a", NULL, false},
    {"/.Well-Known/a", NULL, false},
    /* bytes that are no separators, or empty segments */
    {"/a%2fb", NULL, false},
    {"/a%2Fb", NULL, false},
    {"/%2f", NULL, false},
    {"/..%2fa", NULL, false},
    {"/..%2f..%2fetc%2fpasswd", NULL, false},
    {"/a\\b", NULL, false},
    {"/..\\a", NULL, false},
    {"/a%5cb", NULL, false},
    {"/..%5c..%5cetc", NULL, false},
    {"/%5C", NULL, false},
    {"//", NULL, false},
    {"///", NULL, false},
    {"//a", NULL, false},
    {"//etc/passwd", NULL, false},
    {"/a//b", NULL, false},
    {"/a//", NULL, false},
    {"/a/b//", NULL, false},
};

static void test_rows(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *row = &rows[i];
        rd_file_path path;
        const bool is_name = rd_file_path_parse(&path, rd_slice_of(row->path, strlen(row->path)));

        if (!CHECK_SAYS(is_name == !!row->name, "%s: %d", row->path, is_name)) continue;
        if (!is_name) continue;
        CHECK_STR(path.name, row->name);
        CHECK_INT(path.len, strlen(row->name));
        CHECK_SAYS(path.is_folder == row->is_folder, "%s: %d", row->path, path.is_folder);
    }
}

static void test_nul_as_it_is(void) {
    rd_file_path path;

    CHECK(!rd_file_path_parse(&path, RD_SLICE("/a\0")));
    CHECK(!rd_file_path_parse(&path, RD_SLICE("/\0/a")));
    CHECK(!rd_file_path_parse(&path, RD_SLICE("\0/a")));
}

/* Each byte alone: raw, and escaped. */
static void test_every_byte(void) {
    for (int byte = 0; byte < 256; byte++) {
        const bool is_text = byte >= 0x20 && byte != 0x7f && !strchr("/\\", byte);
        rd_file_path path;
        char raw[] = {'/', 'a', (char)byte}, escaped[8];

        if (byte != '/' && byte != '%') {
            CHECK_SAYS(rd_file_path_parse(&path, rd_slice_of(raw, 3)) == is_text, "%d", byte);
        }
        snprintf(escaped, sizeof escaped, "/a%%%02x", (unsigned)byte);
        CHECK_SAYS(rd_file_path_parse(&path, rd_slice_of(escaped, 5)) == is_text, "%%%02x", byte);
        if (is_text) CHECK_SAYS(path.len == 2 && (path.name[1] & 0xff) == byte, "%%%02x", byte);
    }
}

/* A path of segments of `segment` bytes, `len` bytes in all without the slash in front. */
static bool parse_long(rd_file_path *path, size_t len, size_t segment, const char *end) {
    static char text[3 * RD_FILE_PATH_MAX];

    text[0] = '/';
    for (size_t i = 0; i < len; i++) text[i + 1] = i % (segment + 1) == segment ? '/' : 'x';
    memcpy(text + 1 + len, end, strlen(end));
    return rd_file_path_parse(path, rd_slice_of(text, 1 + len + strlen(end)));
}

static void test_limits(void) {
    rd_file_path path;

    CHECK(parse_long(&path, 255, 255, ""));
    CHECK(parse_long(&path, 255, 255, "/"));
    CHECK_INT(path.len, 255);
    CHECK(!parse_long(&path, 256, 256, ""));
    CHECK(!parse_long(&path, 256, 256, "/"));
    CHECK(!parse_long(&path, 256, 256, "/a"));
    CHECK(parse_long(&path, 254, 255, "%41"));
    CHECK(!parse_long(&path, 255, 255, "%41"));

    CHECK(parse_long(&path, RD_FILE_PATH_MAX, 100, ""));
    CHECK_INT(path.len, RD_FILE_PATH_MAX);
    CHECK(parse_long(&path, RD_FILE_PATH_MAX, 100, "/"));
    CHECK_INT(path.len, RD_FILE_PATH_MAX);
    CHECK(path.is_folder);
    CHECK_INT(strlen(path.name), RD_FILE_PATH_MAX);
    CHECK(!parse_long(&path, RD_FILE_PATH_MAX, 100, "//"));
    CHECK(!parse_long(&path, RD_FILE_PATH_MAX, 100, "/a"));
    CHECK(!parse_long(&path, RD_FILE_PATH_MAX + 1, 100, ""));
    CHECK(!parse_long(&path, 2 * RD_FILE_PATH_MAX, 100, ""));
    CHECK(!parse_long(&path, 2 * RD_FILE_PATH_MAX, 3 * RD_FILE_PATH_MAX, ""));
}

int main(void) {
    test_rows();
    test_nul_as_it_is();
    test_every_byte();
    test_limits();
    return check_summary();
}
