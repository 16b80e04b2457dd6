/* SPDX-License-Identifier: MIT
 *
 * What a static folder has for a path, kept and looked at again, against files/file_cache.h.
 */
#include "files/file_cache.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "disk_jobs.h"
#include "folder.h"

static rd_loop loop;
static rd_file_cache cache;
static rd_file_opening *opened; /* the last opening that finished */
static unsigned openings;

static void note_opened(void *owner, rd_file_opening *opening) {
    CHECK(owner == &cache && opened == NULL);
    opened = opening;
    openings++;
}

static void begin(uint32_t most, bool adds_html) {
    rd_file_root root;
    CHECK_INT(rd_file_root_open(&root, folder), 0);
    rd_file_cache_init(&cache, &loop, root, most, adds_html);
    cache.on_opened = note_opened;
    cache.owner = &cache;
}

static void finish(void) {
    rd_file_cache_clear(&cache);
    finish_jobs(&loop);
}

/* No answer uses the entry: only the cache holds it. */
static rd_file_entry *without_reference(rd_file_entry *entry) {
    CHECK_INT(entry->refs, 2);
    rd_file_entry_unref(entry);
    return entry;
}

/* The result of the opening in flight; NULL with errno. */
static rd_file_entry *await_opening(void) {
    finish_jobs(&loop);
    if (!CHECK(opened != NULL)) return NULL;
    rd_file_entry *entry = opened->entry;
    errno = opened->error;
    rd_file_opening_free(opened);
    opened = NULL;
    return entry;
}

static rd_file_entry *find(const char *path, uint64_t now_ms) {
    rd_file_entry *entry = NULL;
    rd_file_opening *opening = NULL;
    loop.now_ms = now_ms;
    switch (rd_file_cache_ask(&cache, rd_slice_of(path, strlen(path)), now_ms, &entry, &opening)) {
    case RD_FILE_THERE:
        return without_reference(entry);
    case RD_FILE_ASKED:
        return await_opening();
    default:
        errno = ENOENT;
        return NULL;
    }
}

static const rd_file_variant *original_of(const rd_file_entry *entry) {
    return entry->is.variants[RD_CODING_IDENTITY];
}

static void test_small_and_large(void) {
    static char bytes[RD_FILE_BYTES_MAX + 1];
    memset(bytes, 'x', sizeof(bytes));
    make_file("small.txt", bytes, RD_FILE_BYTES_MAX, WRITTEN);
    make_file("large.txt", bytes, RD_FILE_BYTES_MAX + 1, WRITTEN);
    make_text("empty", "");
    begin(8, false);
    const rd_file_variant *small = original_of(find("/small.txt", 0));
    CHECK(small->file == NULL && memcmp(small->bytes, bytes, RD_FILE_BYTES_MAX) == 0);
    CHECK_STR(small->modified, "Sun, 06 Nov 1994 08:49:37 GMT");
    const rd_file_variant *large = original_of(find("/large.txt", 0));
    CHECK(large->file != NULL && large->bytes == NULL);
    CHECK_INT(large->facts.st_size, RD_FILE_BYTES_MAX + 1);
    CHECK_INT(original_of(find("/empty", 0))->facts.st_size, 0);
    finish();
}

static void test_kept_for_a_second(void) {
    make_text("a.txt", "one");
    begin(8, false);
    rd_file_entry *entry = find("/a.txt", 5000);
    const rd_file_variant *first = original_of(entry);
    make_file("a.txt", "other", 5, WRITTEN + 1);
    CHECK(find("/a.txt", 5999) == entry && original_of(entry) == first);
    CHECK(find("/a.txt", 6000) == entry && original_of(entry) != first);
    CHECK_INT(original_of(entry)->facts.st_size, 5);
    CHECK(find("/a.txt", 7000) == entry);
    unlink(in_folder("a.txt"));
    CHECK(find("/a.txt", 7999) == entry);
    CHECK(find("/a.txt", 8000) == NULL && errno == ENOENT);
    CHECK_INT(cache.entries.count, 0);
    make_text("a.txt", "again"); /* a missing file is not kept */
    CHECK(find("/a.txt", 8000) != NULL);
    finish();
}

/* Answers share the descriptor as long as the file is the same. */
static void test_the_same_file(void) {
    static char bytes[RD_FILE_BYTES_MAX + 1];
    make_file("same", bytes, sizeof(bytes), WRITTEN);
    begin(8, false);
    rd_file_entry *entry = find("/same", 0);
    const rd_file_variant *first = original_of(entry);
    CHECK(find("/same", 1000) == entry && original_of(entry) == first);
    make_file("same", bytes, sizeof(bytes), WRITTEN + 1);
    CHECK(find("/same", 2000) == entry && original_of(entry)->facts.st_mtim.tv_sec == WRITTEN + 1);
    finish();
}

static void test_siblings(void) {
    const unsigned identity = 1u << RD_CODING_IDENTITY;
    make_text("s.js", "original");
    make_file("s.js.gz", "gz", 2, WRITTEN);
    make_file("s.js.br", "br", 2, WRITTEN + 5);
    make_file("s.js.zst", "old", 3, WRITTEN - 1);
    make_text("alone.js.gz", "gz");
    begin(8, false);
    rd_file_entry *entry = find("/s.js", 0);
    CHECK_INT(entry->is.available, identity | 1u << RD_CODING_GZIP | 1u << RD_CODING_BR);
    CHECK(entry->is.variants[RD_CODING_ZSTD] == NULL);
    CHECK_BYTES(entry->is.type.ptr, entry->is.type.len, "text/javascript; charset=utf-8");
    CHECK(find("/alone.js", 0) == NULL);
    unlink(in_folder("s.js.gz"));
    CHECK_INT(find("/s.js", 1000)->is.available, identity | 1u << RD_CODING_BR);
    finish();
}

/* Nanoseconds since the epoch do not fit in 64 bits here. */
static void test_times_far_away(void) {
    const time_t year_2264 = 9300000000;
    make_file("far.js", "original", 8, year_2264);
    make_file("far.js.gz", "old", 3, WRITTEN);
    make_file("far.js.br", "br", 2, year_2264 + 1);
    begin(8, false);
    const unsigned wanted = 1u << RD_CODING_IDENTITY | 1u << RD_CODING_BR;
    CHECK_INT(find("/far.js", 0)->is.available, wanted);
    finish();
}

static void test_folders(void) {
    mkdir(in_folder("with"), 0755);
    mkdir(in_folder("without"), 0755);
    make_text("with/index.html", "index");
    make_text("page.html", "page");
    begin(8, false);
    CHECK(find("/with", 0)->is.is_folder);
    CHECK(!find("/with/", 0)->is.is_folder);
    CHECK_INT(original_of(find("/with/", 0))->facts.st_size, 5);
    CHECK(find("/without", 0) == NULL && find("/without/", 0) == NULL);
    CHECK(find("/", 0) == NULL && find("/page", 0) == NULL && find("/../x", 0) == NULL);
    CHECK(find("/page.html/", 0) == NULL);
    make_text("index.html", "root");
    CHECK_INT(original_of(find("/", 0))->facts.st_size, 4);
    unlink(in_folder("index.html"));
    finish();
    begin(8, true);
    CHECK(find("/page", 0) != NULL && find("/without", 0) == NULL && find("/nothing", 0) == NULL);
    finish();
}

static const struct {
    const char *name;
    bool has_digest;
} digests[] = {
    {"app-3f2a9c1b.js", true},      {"app.3f2a9c1b.css", true},
    {"app-3f2a9c1b.js.map", true},  {"app-12345678901234567890.js", true},
    {"report-20240101.pdf", false}, {"app-3f2a9c1.js", false},
    {"app-deadbeef.js", false},     {"3f2a9c1b.js", false},
    {"app-3f2a9c1b", false},        {"app-3F2A9C1B.js", false},
    {"app-3f2a9c1bz.js", false},    {"v-3f2a9c1b.d/app.js", false},
};

static void test_digests(void) {
    mkdir(in_folder("v-3f2a9c1b.d"), 0755);
    begin(64, false);
    for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++) {
        char path[64];
        make_text(digests[i].name, "x");
        snprintf(path, sizeof(path), "/%s", digests[i].name);
        rd_file_entry *entry = find(path, 0);
        CHECK_SAYS(entry != NULL && entry->is.has_digest == digests[i].has_digest, "%s", path);
    }
    CHECK(find("/app%2D3f2a9c1b%2ejs", 0)->is.has_digest); /* the file's name counts */
    CHECK(find("/app-3f2a9c1b.js", 1000)->is.has_digest);  /* the file was checked again */
    finish();
}

static void test_the_least_used_goes(void) {
    make_text("1", "1");
    make_text("2", "2");
    make_text("3", "3");
    begin(2, false);
    rd_file_entry *first = find("/1", 0);
    find("/2", 0);
    CHECK(find("/1", 1) == first);
    find("/3", 1);
    CHECK_INT(cache.entries.count, 2);
    CHECK(find("/1", 2) == first);
    finish();
}

/* Siblings are files, too; so is the index of a folder that is redirected to. */
static void test_each_file_counts(void) {
    begin(3, false);
    make_text("1.gz", "1");
    make_text("1.br", "1");
    find("/1", 0);
    CHECK_INT(cache.files, 3);
    find("/2", 0);
    CHECK_INT(cache.entries.count, 1);
    CHECK_INT(cache.files, 1);
    find("/with", 0);
    find("/3", 0);
    CHECK_INT(cache.files, 3);
    find("/1", 0);
    CHECK_INT(cache.entries.count, 1);
    unlink(in_folder("1.gz"));
    unlink(in_folder("1.br"));
    find("/1", 1000);
    CHECK_INT(cache.files, 1);
    find("/2", 1000);
    finish();
    begin(2, false); /* more files than allowed: the entry is kept alone */
    make_text("1.gz", "1");
    make_text("1.br", "1");
    CHECK(find("/1", 0) != NULL && find("/1", 0) != NULL && find("/2", 0) != NULL);
    CHECK_INT(cache.entries.count, 1);
    unlink(in_folder("1.gz"));
    unlink(in_folder("1.br"));
    finish();
}

static void test_no_more_open_than_there_may_be(void) {
    static char bytes[RD_FILE_BYTES_MAX + 1];
    char path[32];
    begin(64, false);
    cache.most_open = 2;
    find("/1", 0);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "open%d", i);
        make_file(path, bytes, sizeof(bytes), WRITTEN);
        snprintf(path, sizeof(path), "/open%d", i);
        find("/1", 0);
        find(path, 0);
        CHECK_INT(cache.open, i < 2 ? i + 1 : 2);
    }
    make_text("open3", "small now");
    find("/open3", 1000);
    CHECK_INT(cache.open, 1);
    CHECK_INT(cache.files, 3);
    finish();
}

/* A file is kept once, however its path is spelled, and no path is decoded twice. */
static void test_spellings(void) {
    make_text("a.txt", "one");
    make_text("%61.txt", "escape");
    begin(8, false);
    rd_file_entry *entry = find("/%61.txt", 0);
    CHECK(entry != NULL && find("/a.txt", 0) == entry && find("/a%2Etx%74", 0) == entry);
    rd_file_entry *folder_entry = find("/with/", 0);
    CHECK(find("/%77ith/", 0) == folder_entry && find("/with", 0) != folder_entry);
    rd_file_entry *other = find("/%2561.txt", 0);
    CHECK(other != entry && original_of(other)->facts.st_size == 6);
    CHECK(find("/%61.txt", 0) == entry && find("/%25%36%31.txt", 0) == other);
    CHECK(find("//a.txt", 0) == NULL && find("a.txt", 0) == NULL && find("/a.txt%2f", 0) == NULL);
    make_text("index.html", "root");
    CHECK(find("/", 0) != NULL && find("", 0) == NULL);
    CHECK(find("*", 0) == NULL && find("*a.txt", 0) == NULL && find("/with%2f", 0) == NULL &&
          find("/./a.txt", 0) == NULL);
    CHECK_INT(cache.entries.count, 5);
    unlink(in_folder("index.html"));
    finish();
}

/* Two writes within one tick of the file system's clock leave the same time and size. */
static void test_bytes_that_change_unseen(void) {
    make_text("unseen", "1");
    int fd = open(in_folder("unseen"), O_RDWR | O_CLOEXEC);
    char *bytes = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!CHECK(bytes != MAP_FAILED)) return;
    bytes[0] = '2'; /* the page is dirty from now on: the kernel notes no further write */
    begin(8, false);
    CHECK_INT(original_of(find("/unseen", 0))->bytes[0], '2');
    bytes[0] = '3';
    CHECK_INT(original_of(find("/unseen", 1000))->bytes[0], '3');
    finish();
    munmap(bytes, 1);
    close(fd);
}

/* Cached descriptors are closed before a request is refused for lack of one. */
static void test_out_of_descriptors(void) {
    static char bytes[RD_FILE_BYTES_MAX + 1];
    struct rlimit before, limit;
    char path[32];
    begin(64, false);
    find("/1", 0);
    for (int i = 0; i < 9; i++) {
        snprintf(path, sizeof(path), "large%d", i);
        make_file(path, bytes, sizeof(bytes), WRITTEN);
    }
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(lowest);
    limit.rlim_cur = (rlim_t)lowest + 4;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < 9; i++) {
        snprintf(path, sizeof(path), "/large%d", i);
        CHECK(find(path, 0) != NULL);
    }
    CHECK(cache.entries.count <= 5);
    CHECK(find("/1", 0) != NULL); /* in memory: closing it frees no descriptor */
    rd_file *held = original_of(find("/large8", 0))->file;
    rd_file_ref(held); /* is being sent: it stays open */
    limit.rlim_cur = (rlim_t)held->fd;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (dup(0) >= 0) {
    }
    find("/large0", 5000); /* takes the descriptor that can be freed */
    while (dup(0) >= 0) {
    }
    CHECK(find("/2", 5000) == NULL || cache.open == 1);
    while (dup(0) >= 0) {
    }
    CHECK(find("/3", 5000) == NULL && errno == EMFILE);
    /* Facts that are a second old must be enough here: none of these answers needs a descriptor. */
    CHECK_INT(original_of(find("/1", 5000))->bytes[0], '1');
    CHECK(original_of(find("/large8", 5000))->file == held);
    CHECK(find("/nothing", 5000) == NULL && errno == ENOENT);
    setrlimit(RLIMIT_NOFILE, &before);
    rd_file_unref(held);
    finish();
    for (int fd = lowest; fd < (int)limit.rlim_cur; fd++) close(fd);
}

/* An answer that is about to be sent needs the descriptor as much as one that is being sent. */
static void test_an_entry_in_use_makes_no_room(void) {
    struct rlimit before, limit;
    begin(64, false);
    rd_file_entry *entry = find("/large0", 0);
    entry->refs++;
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)original_of(entry)->file->fd + 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    const int lowest = dup(0);
    while (dup(0) >= 0) {
    }
    CHECK(find("/large1", 0) == NULL && errno == EMFILE);
    CHECK(original_of(entry)->file->fd >= 0);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int fd = lowest; fd >= 0 && fd < (int)limit.rlim_cur; fd++) {
        if (fd != original_of(entry)->file->fd) close(fd);
    }
    rd_file_entry_unref(entry);
    finish();
}

/* ---- while an opening is in flight ---- */

static rd_file_opening *ask(const char *path) {
    rd_file_entry *entry = NULL;
    rd_file_opening *opening = NULL;
    CHECK_INT(
        rd_file_cache_ask(&cache, rd_slice_of(path, strlen(path)), loop.now_ms, &entry, &opening),
        RD_FILE_ASKED);
    return opening;
}

/* Takes the openings one after the other, and runs the other posted work in between. */
static void take_openings(int count) {
    while (count > 0) {
        rd_disk_wait_idle(&loop);
        rd_loop_lock(&loop);
        rd_list *first = rd_list_shift(&loop.posted);
        rd_posted *posted = RD_CONTAINER(first, rd_posted, node);
        if (CHECK(first != NULL)) posted->run(posted);
        rd_loop_unlock(&loop);
        if (first == NULL) return;
        if (opened == NULL) continue;
        CHECK(opened->entry != NULL);
        rd_file_opening_free(opened);
        opened = NULL;
        count--;
    }
}

/* The same file in several spellings shares one opening. */
static void test_many_ask_for_one(void) {
    begin(8, false);
    make_text("joined", "1");
    const unsigned before = openings;
    hold_volume(&loop, RD_DISK_FOLDER);
    rd_file_opening *opening = ask("/joined");
    CHECK(ask("/joined") == opening && ask("/%6Aoined") == opening && ask("/1") != opening);
    CHECK_INT(cache.openings.count, 2);
    release_jobs(&loop);
    CHECK_INT(openings, before);
    take_openings(2);
    CHECK_INT(cache.openings.count, 0);
    finish();
}

/* An opening that was dropped meanwhile lasts until its last answer has ended. */
static void test_an_entry_outlives_its_place(void) {
    begin(1, false);
    rd_file_entry *entry = find("/joined", 0);
    entry->refs++;
    CHECK(find("/1", 0) != NULL && cache.entries.count == 1);
    CHECK_INT(original_of(entry)->bytes[0], '1');
    rd_file_entry_unref(entry);
    finish();
}

static void test_no_more_openings_than_there_may_be(void) {
    char path[32];
    rd_file_entry *entry = NULL;
    rd_file_opening *opening = NULL;
    begin(8, false);
    hold_volume(&loop, RD_DISK_FOLDER);
    mkdir(in_folder("many"), 0755);
    for (int i = 0; i <= RD_FILE_OPENINGS_MAX; i++) {
        snprintf(path, sizeof(path), "many/%d", i);
        make_text(path, "x");
        snprintf(path, sizeof(path), "/many/%d", i);
        if (i < RD_FILE_OPENINGS_MAX) ask(path);
    }
    CHECK_INT(rd_file_cache_ask(&cache, rd_slice_of(path, strlen(path)), 0, &entry, &opening),
              RD_FILE_BUSY);
    ask("/many/0"); /* may still be joined */
    release_jobs(&loop);
    take_openings(RD_FILE_OPENINGS_MAX);
    CHECK(find(path, 0) != NULL);
    finish();
}

/* If the kernel knows that a file is missing, the request needs no opening. */
static void test_what_is_surely_nowhere(void) {
    rd_file_root root;
    CHECK_INT(rd_file_root_open(&root, folder), 0);
    const bool was_there = access(in_folder("nowhere"), F_OK) == 0; /* in memory from now on */
    const bool is_told = !was_there && rd_file_is_absent(&root, "nowhere");
    rd_file_root_close(&root);
    if (!is_told) return; /* before Linux 5.12, or no disk at all */
    begin(8, true);
    mkdir(in_folder("deep"), 0755);
    const unsigned before = openings;
    CHECK(find("/nowhere/1", 0) == NULL && find("/nowhere/2", 500) == NULL);
    CHECK_INT(openings, before);
    CHECK(find("/deep/nothing", 0) == NULL && find("/deep/nothing", 0) == NULL);
    CHECK(openings <= before + 1);
    make_text("nowhere", "now"); /* a missing file is not kept */
    CHECK(find("/nowhere", 600) != NULL);
    unlink(in_folder("nowhere"));
    finish();
}

/* A name that was never looked up on the disk is not taken for another name with the same hash. */
static void test_a_name_that_collides(void) {
    const char *walked = "absent008122", *other = "absent010181";
    rd_file_root root;
    CHECK_INT(rd_hash_weak(rd_slice_of(walked, strlen(walked))),
              rd_hash_weak(rd_slice_of(other, strlen(other))));
    CHECK_INT(rd_file_root_open(&root, folder), 0);
    const bool was_there = access(in_folder(walked), F_OK) == 0; /* in memory from now on */
    const bool tells = !was_there && rd_file_is_absent(&root, walked);
    const bool tells_other = rd_file_is_absent(&root, other);
    rd_file_root_close(&root);
    if (!tells || tells_other) return; /* before Linux 5.12, or no disk at all */
    begin(8, false);
    cache.folder.root.is_memory = false; /* the folder of this test may be there */
    const unsigned before = openings;
    CHECK(find("/absent008122", 0) == NULL && openings == before);
    CHECK(find("/absent010181", 0) == NULL && openings == before + 1);
    finish();
}

int main(void) {
    CHECK_INT(rd_loop_init(&loop, false), 0);
    make_folder();
    test_small_and_large();
    test_kept_for_a_second();
    test_the_same_file();
    test_siblings();
    test_times_far_away();
    test_folders();
    test_digests();
    test_the_least_used_goes();
    test_each_file_counts();
    test_no_more_open_than_there_may_be();
    test_spellings();
    test_bytes_that_change_unseen();
    test_out_of_descriptors();
    test_an_entry_in_use_makes_no_room();
    test_many_ask_for_one();
    test_an_entry_outlives_its_place();
    test_no_more_openings_than_there_may_be();
    test_what_is_surely_nowhere();
    test_a_name_that_collides();
    rd_disk_stop(&loop);
    rd_loop_clear(&loop);
    return check_summary();
}
