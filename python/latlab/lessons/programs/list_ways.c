/* The same list without a call for each node: from memory that the program divides itself.
 *
 *     gcc -O3 -Wall -o list_ways list_ways.c
 *     ./list_ways linear 1000000     any way of the table below, or: pool
 */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

struct node {
    struct node *next;
    char text[20];
};

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, AHEAD = 512 };

static const struct way {
    const char *name;
    size_t apart, from; /* bytes from node to node, and where in a 64-byte line the first one begins */
    enum { PLAIN, TOUCHED, POPULATED, HUGE, PREFETCHED } how;
} WAYS[] = {
    {"linear", 32, 0, PLAIN},         /* one after the other */
    {"aligned", 64, 0, PLAIN},        /* each at the beginning of a line of its own */
    {"across", 64, 48, PLAIN},        /* each in the end of one line and the beginning of the next */
    {"touched", 32, 0, TOUCHED},      /* all pages were there before, untimed */
    {"populated", 32, 0, POPULATED},  /* all pages in one call: MAP_POPULATE */
    {"huge", 32, 0, HUGE},            /* pages of 2 MiB: madvise */
    {"prefetched", 32, 0, PREFETCHED} /* a line is asked for 512 bytes before it is written */
};

static const char TEXT[] = "This is a sample tex";

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static long faults(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
}

static void stop_unless(int fine, const char *what) {
    if (!fine) {
        perror(what);
        exit(1);
    }
}

/* Memory from the kernel: no page of it is there yet, unless it is populated. */
static char *map(size_t bytes, int how) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (how == POPULATED ? MAP_POPULATE : 0);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    stop_unless(memory != MAP_FAILED, "mmap");
    if (how == HUGE) {
        stop_unless(madvise(memory, bytes, MADV_HUGEPAGE) == 0, "madvise");
        memory += -(uintptr_t)memory % HUGE_PAGE;
    } else if (how != POPULATED) {
        madvise(memory, bytes, MADV_NOHUGEPAGE); /* so that all the others have the same pages */
    }
    return memory;
}

static struct node *set(struct node *node, struct node *last) {
    memcpy(node->text, TEXT, sizeof node->text);
    node->next = NULL;
    if (last != NULL)
        last->next = node;
    return node;
}

static void from_memory(char *place, size_t apart, long nodes, int ahead) {
    struct node *last = NULL;
    for (long i = 0; i < nodes; i++, place += apart) {
        if (ahead)
            __builtin_prefetch(place + AHEAD, 1);
        last = set((struct node *)place, last);
    }
}

/* Nodes that were given back before, the last one first. */
static void from_pool(struct node *pool, long nodes) {
    struct node *last = NULL;
    for (long i = 0; i < nodes; i++) {
        struct node *node = pool;
        pool = node->next;
        last = set(node, last);
    }
}

static void told(struct node *first, double created, long faulted) {
    long whole = 0, across = 0;
    double begin = now();
    for (struct node *node = first; node != NULL; node = node->next)
        whole += memcmp(node->text, TEXT, sizeof node->text) == 0;
    printf("created_s %.9f\ncreated_faults %ld\nwalked_s %.9f\nwhole %ld\n", created, faulted, now() - begin, whole);
    for (struct node *node = first; node != NULL; node = node->next)
        across += (uintptr_t)node % 64 + sizeof *node > 64;
    printf("across %ld\n", across);
}

int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "linear";
    long nodes = count > 2 ? atol(words[2]) : 1000000, before;
    size_t number = 0, bytes;
    struct way way = {"pool", 32, 0, TOUCHED};
    char *memory;
    double begin;

    while (number < sizeof WAYS / sizeof *WAYS && strcmp(WAYS[number].name, name) != 0)
        number++;
    if (number < sizeof WAYS / sizeof *WAYS)
        way = WAYS[number];
    bytes = nodes * way.apart + 64 + AHEAD + (way.how == HUGE ? 2 * HUGE_PAGE : 0);

    before = faults();
    begin = now();
    memory = map(bytes, way.how);
    if (way.how == TOUCHED) {
        memset(memory, 1, bytes);
        printf("touched_s %.9f\ntouched_faults %ld\n", now() - begin, faults() - before);
        before = faults();
        begin = now();
    }
    if (strcmp(name, "pool") == 0) {
        struct node *pool = NULL;
        for (long i = 0; i < nodes; i++) { /* each is given back: it becomes the first free one */
            struct node *node = (struct node *)memory + i;
            node->next = pool;
            pool = node;
        }
        begin = now();
        from_pool(pool, nodes);
        told(pool, now() - begin, faults() - before);
    } else {
        from_memory(memory + way.from, way.apart, nodes, way.how == PREFETCHED);
        told((struct node *)(memory + way.from), now() - begin, faults() - before);
    }
    begin = now();
    munmap(memory, bytes - (way.how == HUGE ? 2 * HUGE_PAGE : 0));
    printf("freed_s %.9f\n", now() - begin);
    return 0;
}
