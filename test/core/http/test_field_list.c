/* SPDX-License-Identifier: MIT
 *
 * http/field_list: words, blanks, lists.
 */
#include "check.h"
#include "http/field_list.h"

static rd_slice slice(const char *text) {
    return rd_slice_of(text, strlen(text));
}

static void test_blanks(void) {
    static const char *const rows[][2] = {
        {"", ""}, {" ", ""}, {"\t \t", ""}, {"a", "a"}, {" \ta b\t ", "a b"}, {"\ra\n", "\ra\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const rd_slice text = rd_field_trim(slice(rows[i][0]));
        CHECK_BYTES(text.ptr, text.len, rows[i][1]);
    }
}

static void test_words(void) {
    CHECK(rd_field_is_word(slice("X-Gzip"), RD_SLICE("x-gzip")));
    CHECK(rd_field_is_word(slice("TEXT/html"), RD_SLICE("text/html")));
    CHECK(rd_field_is_word(slice(""), RD_SLICE("")));
    CHECK(!rd_field_is_word(slice("x-gzip "), RD_SLICE("x-gzip")));
    CHECK(!rd_field_is_word(slice("x_gzip"), RD_SLICE("x-gzip")));
    CHECK(!rd_field_is_word(slice("x-gzi"), RD_SLICE("x-gzip")));
}

/* The elements, each in brackets. */
static const struct {
    char separator;
    const char *list, *elements;
} rows[] = {
    {',', "", "[]"},
    {',', "a", "[a]"},
    {',', "a,b", "[a][b]"},
    {',', " a\t,  b c ", "[a][b c]"},
    {',', ",a,,", "[][a][][]"},
    {';', "a,b ; c;d", "[a,b][c][d]"},
    {',', "\"a,b\",c", "[\"a,b\"][c]"},
    {',', "x=\"a,b\" , c", "[x=\"a,b\"][c]"},
    {',', "\"a\\\",b\",c", "[\"a\\\",b\"][c]"},
    {',', "a\\,b", "[a\\][b]"},
    {',', "\"a,b", "[\"a,b]"},
    {',', "\"a\\", "[\"a\\]"},
    {',', "\"\",\"\"", "[\"\"][\"\"]"},
};

static void test_lists(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rd_slice rest = slice(rows[i].list), element;
        char text[64] = "";
        while (rd_field_list_next(&rest, rows[i].separator, &element)) {
            const size_t len = strlen(text);
            snprintf(text + len, sizeof text - len, "[%.*s]", (int)element.len, element.ptr);
        }
        CHECK_STR(text, rows[i].elements);
        CHECK(!rd_field_list_next(&rest, rows[i].separator, &element));
    }
}

static void test_no_list_has_no_element(void) {
    rd_slice none = {NULL, 0}, element;
    CHECK(!rd_field_list_next(&none, ',', &element));
}

int main(void) {
    test_blanks();
    test_words();
    test_lists();
    test_no_list_has_no_element();
    return check_summary();
}
