/* SPDX-License-Identifier: MIT
 *
 * A ring of lines; see journal.h. A writer takes the next number, which is its place. The number of
 * an entry is 0 while it is written, so a reader sees whether it has read one line, and which.
 */
#include "cluster/journal.h"

#include <string.h>
#include <unistd.h>

#include "system/clock.h"

typedef union rd_journal_copy {
    rd_journal_line line;
    uint64_t words[RD_JOURNAL_WORDS];
} rd_journal_copy;

const char *rd_journal_level_name(unsigned level) {
    static const char *const names[RD_JOURNAL_LEVEL_COUNT] = {"info", "warn", "error"};
    return level < RD_JOURNAL_LEVEL_COUNT ? names[level] : "unknown";
}

static bool continues(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* How much of UTF-8 has room without cutting a character. */
static size_t fitting(const char *text, size_t len) {
    if (len <= RD_JOURNAL_TEXT_MAX) return len;
    size_t fit = RD_JOURNAL_TEXT_MAX;
    while (fit > RD_JOURNAL_TEXT_MAX - 4 && continues(text[fit])) fit--;
    return fit;
}

/* A writer that slept while the others wrote RD_JOURNAL_LINES lines meets another one at its place.
 * What they leave there together has another sum. */
static uint64_t sum_of(const rd_journal_copy *copy) {
    uint64_t sum = 0;
    for (size_t i = 0; i < RD_JOURNAL_WORDS; i++) {
        sum = (sum ^ copy->words[i]) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 32;
    }
    return sum;
}

static rd_journal_entry *entry_of(const rd_journal *journal, uint64_t number) {
    return (rd_journal_entry *)&journal->entries[(number - 1) % RD_JOURNAL_LINES];
}

void rd_journal_add(rd_journal *journal, rd_journal_level level, int worker, const char *text,
                    size_t len) {
    rd_journal_copy copy = {0};
    const uint64_t number = atomic_fetch_add(&journal->last, 1) + 1;
    const size_t fit = fitting(text, len);
    copy.line = (rd_journal_line){.number = number,
                                  .time_ms = rd_clock_ms(),
                                  .pid = (uint32_t)getpid(),
                                  .worker = (int16_t)worker,
                                  .level = (uint8_t)level,
                                  .is_cut = fit < len,
                                  .len = (uint16_t)fit};
    memcpy(copy.line.text, text, fit);
    rd_journal_entry *entry = entry_of(journal, number);
    atomic_store_explicit(&entry->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < RD_JOURNAL_WORDS; i++) {
        atomic_store_explicit(&entry->words[i], copy.words[i], memory_order_relaxed);
    }
    atomic_store_explicit(&entry->sum, sum_of(&copy), memory_order_relaxed);
    atomic_store_explicit(&entry->number, number, memory_order_release);
}

bool rd_journal_read(const rd_journal *journal, uint64_t number, rd_journal_line *line) {
    rd_journal_copy copy;
    if (number == 0) return false;
    const rd_journal_entry *entry = entry_of(journal, number);
    if (atomic_load_explicit(&entry->number, memory_order_acquire) != number) return false;
    for (size_t i = 0; i < RD_JOURNAL_WORDS; i++) {
        copy.words[i] = atomic_load_explicit(&entry->words[i], memory_order_relaxed);
    }
    const uint64_t sum = atomic_load_explicit(&entry->sum, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&entry->number, memory_order_relaxed) != number) return false;
    if (sum != sum_of(&copy) || copy.line.number != number) return false;
    if (copy.line.len > RD_JOURNAL_TEXT_MAX) return false;
    *line = copy.line;
    return true;
}

uint64_t rd_journal_newest(const rd_journal *journal) {
    return atomic_load_explicit(&journal->last, memory_order_acquire);
}

uint64_t rd_journal_oldest(const rd_journal *journal) {
    const uint64_t newest = rd_journal_newest(journal);
    return newest > RD_JOURNAL_LINES ? newest - RD_JOURNAL_LINES + 1 : 1;
}
