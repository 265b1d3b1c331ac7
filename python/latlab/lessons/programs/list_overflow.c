/* What the document's program copies, and into what.
 *
 *     gcc -O3 -o list_overflow list_overflow.c && ./list_overflow
 *     gcc -g -fsanitize=address -o list_overflow list_overflow.c && ./list_overflow          finds nothing
 *     gcc -g -fsanitize=address -DEXACT -o list_overflow list_overflow.c && ./list_overflow  finds it
 */

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    char buffer[20];
};

enum { END = offsetof(struct node, buffer) + 20 };

#ifdef EXACT
static const size_t ROOM = END; /* without the bytes by which the compiler rounds up */
#else
static const size_t ROOM = sizeof(struct node);
#endif

/* As the document frees: it stops at the node that has no next one. */
static int freed_as_published(struct node *node) {
    int freed = 0;
    while (node->next != NULL) {
        struct node *next = node->next;
        free(node);
        freed++;
        node = next;
    }
    free(node); /* not in the document's, and not counted */
    return freed;
}

int main(void) {
    const char text[] = "This is a sample text";
    volatile size_t copied = strlen(text);
    struct node *first = malloc(ROOM), *last = first;
    int created = 1;
    if (first == NULL)
        return 1;
    printf("node %zu\nend %d\ncopied %zu\nfield %zu\n", sizeof(struct node), END, copied, sizeof first->buffer);
    printf("usable %zu\n", malloc_usable_size(first));
    memset(first, '.', ROOM);
    memcpy(first->buffer, text, copied);
    printf("behind %c\n", ROOM > END ? ((char *)first)[END] : '-');
    printf("zero %d\n", memchr(first->buffer, 0, ROOM - offsetof(struct node, buffer)) != NULL);
    for (first->next = NULL; created < 1000; created++) {
        struct node *node = malloc(sizeof *node);
        if (node == NULL)
            return 1;
        node->next = NULL;
        last->next = node;
        last = node;
    }
    printf("created %d\nfreed %d\n", created, freed_as_published(first));
    return 0;
}
