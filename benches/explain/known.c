/* Programs whose wall time is known by their own clocks, for benches/explain/truth.py.
 *
 *     known NAME [FILE | PORT]
 *
 * Prints {"total": seconds, "part": seconds}: `part` is what the program is about. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double begun, part;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void compute(double seconds) {
    volatile unsigned long state = 1;
    for (double end = now() + seconds; now() < end;)
        for (int step = 0; step < 2000; step++) state = state * 6364136223846793005UL + 1;
}

static unsigned long next(void) {
    static unsigned long state = 88172645463325252UL;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Lists of a million nodes: the allocator, with its page faults. */
static void list(void) {
    struct node {
        struct node *next;
        long value[2];
    };
    for (int round = 0; round < 10; round++) {
        struct node *head = NULL;
        double from = now();
        for (int at = 0; at < 1000000; at++) {
            struct node *node = malloc(sizeof *node);
            node->next = head;
            node->value[0] = at;
            head = node;
        }
        while (head) {
            struct node *rest = head->next;
            free(head);
            head = rest;
        }
        part += now() - from;
    }
}

static void random_reads(const char *path, int mapped) {
    int file = open(path, O_RDONLY);
    struct stat about;
    fstat(file, &about);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
    volatile char *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);
    madvise((void *)map, (size_t)about.st_size, MADV_RANDOM);
    unsigned long pages = (unsigned long)about.st_size / 4096, sum = 0;
    char block[4096];
    for (int at = 0; at < 4000; at++) {
        off_t offset = (off_t)(next() % pages) * 4096;
        double from = now();
        if (mapped)
            sum += (unsigned char)map[offset];
        else if (pread(file, block, sizeof block, offset) < 0)
            exit(1);
        part += now() - from;
        compute(5e-6);
    }
}

static void sequential(const char *path, int cold) {
    int file = open(path, O_RDONLY);
    if (cold) posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    static char block[65536];
    volatile unsigned long sum = 0;
    for (;;) {
        double from = now();
        ssize_t got = read(file, block, sizeof block);
        part += now() - from;
        if (got <= 0) break;
        for (ssize_t at = 0; at < got; at++) sum = sum * 31 + (unsigned char)block[at];
    }
}

static void faults(void) {
    size_t bytes = 64UL << 20;
    for (int round = 0; round < 12; round++) {
        char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(map, bytes, MADV_NOHUGEPAGE);
        double from = now();
        for (size_t at = 0; at < bytes; at += 4096) map[at] = 1;
        part += now() - from;
        munmap(map, bytes);
        compute(0.01);
    }
}

static void client(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address)) exit(1);
    char byte = 0;
    for (int at = 0; at < 100; at++) {
        double from = now();
        if (write(server, &byte, 1) != 1 || read(server, &byte, 1) != 1) exit(1);
        part += now() - from;
        usleep(3000);
        compute(0.004);
    }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *locker(void *unused) {
    for (int at = 0; at < 300; at++) {
        pthread_mutex_lock(&mutex);
        compute(0.0005);
        pthread_mutex_unlock(&mutex);
        compute(0.0001);
    }
    return unused;
}

/* Three threads on one mutex: nearly all the time one of them computes, so of wall time the lock takes nothing. */
static void lock(void) {
    pthread_t threads[3];
    double from = now();
    for (int at = 0; at < 3; at++) pthread_create(&threads[at], NULL, locker, NULL);
    for (int at = 0; at < 3; at++) pthread_join(threads[at], NULL);
    part = now() - from;
}

static void pingpong(void) {
    int there[2], back[2];
    char byte = 0;
    if (pipe(there) || pipe(back)) exit(1);
    double from = now();
    if (!fork()) {
        for (int at = 0; at < 50000; at++)
            if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) _exit(1);
        _exit(0);
    }
    for (int at = 0; at < 50000; at++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) exit(1);
    part = now() - from;
    wait(NULL);
}

int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "", *argument = count > 2 ? words[2] : "";
    begun = now();
    if (!strcmp(name, "list")) list();
    else if (!strcmp(name, "random")) random_reads(argument, 0);
    else if (!strcmp(name, "mapped")) random_reads(argument, 1);
    else if (!strcmp(name, "cold")) sequential(argument, 1);
    else if (!strcmp(name, "warm")) sequential(argument, 0);
    else if (!strcmp(name, "faults")) faults();
    else if (!strcmp(name, "client")) client(atoi(argument));
    else if (!strcmp(name, "lock")) lock();
    else if (!strcmp(name, "pingpong")) pingpong();
    else return 2;
    printf("{\"total\": %.6f, \"part\": %.6f}\n", now() - begun, part);
    return 0;
}
