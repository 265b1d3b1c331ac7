/* Counts the words on standard input, the most frequent first: in one small buffer, in place, in a table of our own. */
#include "latlab_stage.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *word;
    size_t length;
    unsigned long count, hash;
} entry;

static entry *table; /* open addressing, never more than half full */
static size_t slots = 1 << 16, used;

static void *checked(void *memory) {
    if (!memory) exit(1);
    return memory;
}

static entry *place(const char *word, size_t length, unsigned long hash) {
    size_t at = hash & (slots - 1);
    while (table[at].word && (table[at].hash != hash || table[at].length != length ||
                              memcmp(table[at].word, word, length) != 0))
        at = (at + 1) & (slots - 1);
    return table + at;
}

static void grow(void) {
    entry *old = table;
    size_t count = slots, at;
    slots *= 2;
    table = checked(calloc(slots, sizeof *table));
    for (at = 0; at < count; at++)
        if (old[at].word) *place(old[at].word, old[at].length, old[at].hash) = old[at];
    free(old);
}

static void add(const char *word, size_t length, unsigned long hash) {
    entry *found;
    if (length == 0) return;
    hash ^= hash >> 29; /* the lowest bits choose the slot */
    found = place(word, length, hash);
    if (!found->word) {
        found->word = memcpy(checked(malloc(length)), word, length);
        found->length = length;
        found->hash = hash;
        used++;
    }
    found->count++;
    if (2 * used > slots) grow();
}

static int more_frequent(const void *one, const void *other) {
    unsigned long a = ((const entry *)one)->count, b = ((const entry *)other)->count;
    return (a < b) - (a > b);
}

int main(void) {
    const unsigned long start_hash = 14695981039346656037ul; /* FNV-1a */
    size_t size = 1 << 16, kept = 0, start, at, filled = 0;
    unsigned long hash = start_hash;
    char *buffer = checked(malloc(size));
    table = checked(calloc(slots, sizeof *table));
    for (;;) {
        latlab_stage reading = latlab_begin("reading"), processing;
        ssize_t got = read(0, buffer + kept, size - kept);
        if (got < 0) return 1;
        latlab_end(&reading, (size_t)got);
        if (got == 0) break;
        processing = latlab_begin("processing");
        for (start = 0, at = kept; at < kept + (size_t)got; at++) {
            unsigned char c = (unsigned char)buffer[at];
            if (c == ' ' || (c >= '\t' && c <= '\r')) {
                add(buffer + start, at - start, hash);
                start = at + 1;
                hash = start_hash;
                continue;
            }
            if (c >= 'A' && c <= 'Z') buffer[at] = (char)(c += 'a' - 'A');
            hash = (hash ^ c) * 1099511628211ul;
        }
        kept += (size_t)got - start; /* a word that has begun and not ended */
        memmove(buffer, buffer + start, kept);
        if (kept == size) buffer = checked(realloc(buffer, size *= 2));
        latlab_end(&processing, (size_t)got);
    }
    add(buffer, kept, hash);

    latlab_stage sorting = latlab_begin("sorting");
    for (at = 0; at < slots; at++)
        if (table[at].word) table[filled++] = table[at];
    qsort(table, filled, sizeof *table, more_frequent);
    latlab_end(&sorting, 0);

    latlab_stage outputting = latlab_begin("outputting");
    for (at = 0; at < filled; at++) {
        fwrite(table[at].word, 1, table[at].length, stdout);
        printf(" %lu\n", table[at].count);
    }
    if (fflush(stdout) != 0) return 1;
    latlab_end(&outputting, 0);
    return 0;
}
