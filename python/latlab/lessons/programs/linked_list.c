/* A list of nodes, each from a call of malloc.
 *
 *     gcc -O3 -Wall -o linked_list linked_list.c -ldl
 *     ./linked_list 1000000          the list is created, timed, and freed
 *     ./linked_list 1000000 proof    and walked before; then created once more
 *     ./linked_list 1000000 alone    each node is timed alone, by two clocks
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct node {
    struct node *next;
    char text[20];
};

static const char TEXT[] = "This is a sample tex"; /* 20 bytes: what there is room for */

static struct node *add(struct node *last) {
    struct node *node = malloc(sizeof *node);
    if (node == NULL) {
        fputs("malloc has no memory left\n", stderr);
        exit(1);
    }
    memcpy(node->text, TEXT, sizeof node->text);
    node->next = NULL;
    if (last != NULL)
        last->next = node;
    return node;
}

static void free_all(struct node *node) {
    while (node != NULL) {
        struct node *next = node->next;
        free(node);
        node = next;
    }
}

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

/* Creates the rest of a list and says how long it took. */
static void create(struct node *first, long nodes, const char *when) {
    struct node *last = first;
    long before = faults();
    double begin = now();
    for (long i = 1; i < nodes; i++)
        last = add(last);
    printf("%s_s %.9f\n", when, now() - begin);
    printf("%s_faults %ld\n", when, faults() - before);
}

static void prove(const struct node *first) {
    Dl_info library = {0};
    long whole = 0, across = 0;
    double begin = now();
    for (const struct node *node = first; node != NULL; node = node->next)
        whole += memcmp(node->text, TEXT, sizeof node->text) == 0;
    printf("walked_s %.9f\nwhole %ld\n", now() - begin, whole);
    for (const struct node *node = first; node != NULL; node = node->next)
        across += (uintptr_t)node % 64 + sizeof *node > 64;
    printf("across %ld\n", across);
    printf("apart %ld\n", first->next ? labs((char *)first->next - (char *)first) : 0);
    printf("usable %zu\n", malloc_usable_size((void *)first));
    printf("ahead %ld\n", (long)((char *)sbrk(0) - (char *)first));
    dladdr(dlsym(RTLD_DEFAULT, "malloc"), &library);
    printf("library %s\n", library.dli_fname ? library.dli_fname : "unknown");
}

/* Each by itself: microseconds by the document's clock, then nanoseconds by a finer one. */
static void alone(struct node *last, long nodes) {
    long *taken = calloc(2 * nodes, sizeof *taken);
    if (taken == NULL)
        exit(1);
    for (long i = 0; i < nodes; i++) {
        struct timeval begin, end;
        gettimeofday(&begin, NULL);
        last = add(last);
        gettimeofday(&end, NULL);
        taken[i] = (end.tv_sec - begin.tv_sec) * 1000000 + end.tv_usec - begin.tv_usec;
    }
    for (long i = nodes; i < 2 * nodes; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        last = add(last);
        clock_gettime(CLOCK_MONOTONIC, &end);
        taken[i] = (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
    }
    for (long i = 0; i < 2 * nodes; i++)
        printf("%s %ld\n", i < nodes ? "us" : "ns", taken[i]);
    free(taken);
}

int main(int count, char **words) {
    long nodes = count > 1 ? atol(words[1]) : 1000000;
    const char *more = count > 2 ? words[2] : "";
    struct node *first = add(NULL);
    if (strcmp(more, "alone") == 0) {
        alone(first, nodes);
        free_all(first);
        return 0;
    }
    create(first, nodes, "created");
    if (strcmp(more, "proof") == 0) {
        double begin;
        prove(first);
        begin = now();
        free_all(first);
        printf("freed_s %.9f\n", now() - begin);
        first = add(NULL);
        create(first, nodes, "again");
    }
    free_all(first);
    return 0;
}
