/* SPDX-License-Identifier: MIT
 *
 * Runs one fuzz target over the files named on the command line, without libFuzzer, so that any
 * compiler checks the corpora in seconds. No target itself: it must not name the function.
 */
#include "fuzz.h"

static int replay(const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 20);
    size_t len;

    if (!file || !bytes) {
        perror(path);
        return 1;
    }
    len = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    bytes = realloc(bytes, len ? len : 1); /* exactly as long: reading beyond it shows */
    FUZZ_ONE_INPUT(bytes, len);
    free(bytes);
    return 0;
}

int main(int argc, char **argv) {
    int failed = 0;

    for (int i = 1; i < argc; i++) failed |= replay(argv[i]);
    printf("%d replayed\n", argc - 1);
    return failed;
}
