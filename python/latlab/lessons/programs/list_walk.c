/* Walking a list: in the order of memory or in any other, with or without asking for lines ahead.
 *
 *     gcc -O3 -Wall -o list_walk list_walk.c
 *     ./list_walk 1000000 32 0       nodes, bytes from one to the next, where in a line the first begins
 */

#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct node {
    struct node *next;
    char text[20];
    uint32_t ahead; /* the node STEPS further on; it lies where the compiler would pad */
};

enum { STEPS = 16 };

static char *memory;
static size_t apart;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static struct node *at(uint32_t number) { return (struct node *)(memory + number * apart); }

static void link_up(const uint32_t *order, long nodes) {
    for (long i = 0; i < nodes; i++) {
        struct node *node = at(order[i]);
        memset(node->text, 1, sizeof node->text);
        node->next = i + 1 < nodes ? at(order[i + 1]) : NULL;
        node->ahead = order[i + STEPS < nodes ? i + STEPS : nodes - 1];
    }
}

/* Any order: each node changes places with one of those before it. */
static void shuffle(uint32_t *order, long nodes) {
    uint64_t draw = 88172645463325252u;
    for (long i = nodes - 1; i > 0; i--) {
        draw ^= draw << 13, draw ^= draw >> 7, draw ^= draw << 17;
        long other = draw % (i + 1);
        uint32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static void walk(const struct node *node, const char *name, int ahead) {
    long whole = 0;
    double begin = now();
    for (; node != NULL; node = node->next) {
        if (ahead)
            __builtin_prefetch(at(node->ahead));
        whole += node->text[0] & node->text[19];
    }
    printf("%s_s %.9f\n%s_whole %ld\n", name, now() - begin, name, whole);
}

int main(int count, char **words) {
    long nodes = count > 1 ? atol(words[1]) : 1000000;
    size_t from = count > 3 ? atol(words[3]) : 0;
    uint32_t *order = malloc(nodes * sizeof *order);
    apart = count > 2 ? atol(words[2]) : 32;
    memory = aligned_alloc(64, (nodes * apart + 4096) / 64 * 64);
    if (order == NULL || memory == NULL) {
        fputs("malloc has no memory left\n", stderr);
        return 1;
    }
    memory += from;
    for (long i = 0; i < nodes; i++)
        order[i] = i;
    link_up(order, nodes);
    walk(at(order[0]), "in_order", 0);
    shuffle(order, nodes);
    link_up(order, nodes);
    walk(at(order[0]), "shuffled", 0);
    walk(at(order[0]), "ahead", 1);
    return 0;
}
