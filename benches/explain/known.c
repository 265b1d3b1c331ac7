/* Programs that know where their time goes, for benches/explain/truth.py and overhead.py.
 *
 *     known NAME [FILE | PORT]
 *
 * Prints {"total": s, "parts": {NAME: {"cpu": s, "wait": s, "queue": s}}}: of each part the CPU time by the thread's own clock, the time ready to run
 * without a CPU (schedstat), and what is left of wall time, which it waited. None of the three grows because a machine is busy with other work.
 * Where several threads or processes work together, "busy" is the time in which at least one had work to do, and "processes" what each waited. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A test is content with a part of the work. */
#ifndef LESS
#define LESS 1
#endif
enum { PARTS = 8, MOST = 32768, ITEM = 4096 };

struct moment {
    double wall, cpu, queue;
};

struct part {
    const char *name;
    double wall, cpu, queue;
};

struct stretch {
    double from, to;
};

/* Shared, so that forked processes write here too. */
static struct shared {
    struct part parts[PARTS];
    struct stretch busy[MOST];
    atomic_int stretches;
    struct {
        int pid;
        double pipe;
    } processes[4];
    int forked;
    /* The part after the first is what the first is not. Only the first waits. */
    int rest;
} *known;

static struct moment begun;

static double at(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double now(void) { return at(CLOCK_MONOTONIC); }

static _Thread_local int schedstat = -1;

/* Time that this thread has spent ready to run, without a CPU. */
static double queued(void) {
    char line[128];
    if (schedstat < 0) schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t got = pread(schedstat, line, sizeof line - 1, 0);
    if (got <= 0) return 0;
    line[got] = 0;
    unsigned long long ran = 0, waited = 0;
    return sscanf(line, "%llu %llu", &ran, &waited) == 2 ? 1e-9 * (double)waited : 0;
}

/* Reading the queue is a system call: only where parts are long. Again when the thread was taken off its CPU meanwhile: the three belong to one
 * moment. */
static struct moment moment(int exact) {
    struct moment here = {0};
    do {
        if (exact) here.queue = queued();
        here.cpu = at(CLOCK_THREAD_CPUTIME_ID);
        here.wall = now();
    } while (exact && queued() > here.queue);
    return here;
}

static struct moment begin(int exact) { return moment(exact); }

static void add(struct part *to, struct moment from, struct moment until) {
    to->wall += until.wall - from.wall;
    to->cpu += until.cpu - from.cpu;
    to->queue += until.queue - from.queue;
}

static void end(int part, struct moment from, int exact) { add(&known->parts[part], from, moment(exact)); }

static void compute(double seconds) {
    volatile unsigned long state = 1;
    for (double until = now() + seconds; now() < until;)
        for (int step = 0; step < 2000; step++) state = state * 6364136223846793005UL + 1;
}

/* So much work, whatever the clock says meanwhile. */
static void work(int microseconds) {
    volatile unsigned long state = 1;
    for (int step = 0; step < 700 * microseconds; step++) state = state * 6364136223846793005UL + 1;
}

static unsigned long next(void) {
    static unsigned long state = 88172645463325252UL;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Lists of a million nodes. They are freed in no order of addresses, as they would be in a program that has run for long. */
static void list(void) {
    enum { NODES = 1000000 };
    struct node {
        struct node *next;
        long value[2];
    };
    static struct node *nodes[NODES];
    memset(nodes, 1, sizeof nodes);
    known->parts[0].name = "allocate", known->parts[1].name = "use";
    for (int round = 0; round < 15 / LESS; round++) {
        struct moment from = begin(1);
        for (int node = 0; node < NODES; node++) nodes[node] = malloc(sizeof **nodes);
        end(0, from, 1);
        from = begin(1);
        for (int node = NODES - 1; node > 0; node--) {
            int other = (int)(next() % (unsigned)node);
            struct node *kept = nodes[node];
            nodes[node] = nodes[other], nodes[other] = kept;
        }
        struct node *head = NULL;
        for (int node = 0; node < NODES; node++) {
            nodes[node]->next = head;
            nodes[node]->value[0] = node;
            head = nodes[node];
        }
        volatile long sum = 0;
        for (struct node *node = head; node; node = node->next) sum += node->value[0];
        end(1, from, 1);
        from = begin(1);
        for (int node = 0; node < NODES; node++) free(nodes[node]);
        /* So that each round gets its pages anew, as a program's first one does. */
        malloc_trim(0);
        end(0, from, 1);
    }
}

/* Several reads are one part: asking for the thread's CPU time is a system call, and as long as a read of what is in memory. */
static void random_reads(const char *path, int mapped) {
    enum { READS = 12000 / LESS, AT_ONCE = 8 };
    int file = open(path, O_RDONLY);
    struct stat about;
    fstat(file, &about);
    known->parts[0].name = "read", known->parts[1].name = "compute", known->rest = 1;
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
    volatile char *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);
    madvise((void *)map, (size_t)about.st_size, MADV_RANDOM);
    unsigned long pages = (unsigned long)about.st_size / 4096, sum = 0;
    char block[4096];
    for (int time = 0; time < READS; time += AT_ONCE) {
        struct moment from = begin(0);
        for (int read = 0; read < AT_ONCE; read++) {
            off_t offset = (off_t)(next() % pages) * 4096;
            if (mapped)
                sum += (unsigned char)map[offset];
            else if (pread(file, block, sizeof block, offset) < 0)
                exit(1);
        }
        end(0, from, 0);
        compute(AT_ONCE * 20e-6);
    }
}

static void sequential(const char *path, int cold) {
    int file = open(path, O_RDONLY);
    if (cold) posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    enum { BLOCK = 65536, AT_ONCE = 16 };
    static char blocks[AT_ONCE][BLOCK];
    memset(blocks, 1, sizeof blocks);
    known->parts[0].name = "read", known->parts[1].name = "compute", known->rest = 1;
    volatile unsigned long sum = 0;
    for (int time = 0; time < 4;) {
        struct moment from = begin(0);
        ssize_t got = 0;
        for (int block = 0; block < AT_ONCE; block++) {
            ssize_t here = read(file, blocks[block], BLOCK);
            if (here <= 0) break;
            got += here;
        }
        end(0, from, 0);
        for (ssize_t at = 0; at < got; at += 4) sum = sum * 31 + (unsigned char)blocks[at / BLOCK][at % BLOCK];
        if (got > 0) continue;
        if (cold) posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        lseek(file, 0, SEEK_SET);
        time++;
    }
}

static void faults(void) {
    size_t bytes = 64UL << 20;
    known->parts[0].name = "touch", known->parts[1].name = "unmap", known->parts[2].name = "compute";
    for (int round = 0; round < 30 / LESS; round++) {
        char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(map, bytes, MADV_NOHUGEPAGE);
        struct moment from = begin(1);
        for (size_t byte = 0; byte < bytes; byte += 4096) map[byte] = 1;
        end(0, from, 1);
        from = begin(1);
        munmap(map, bytes);
        end(1, from, 1);
        from = begin(1);
        compute(0.02);
        end(2, from, 1);
    }
}

static void client(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address)) exit(1);
    known->parts[0].name = "reply", known->parts[1].name = "sleep", known->parts[2].name = "compute";
    char byte = 0;
    for (int time = 0; time < 200; time++) {
        struct moment from = begin(1);
        if (write(server, &byte, 1) != 1 || read(server, &byte, 1) != 1) exit(1);
        end(0, from, 1);
        from = begin(1);
        usleep(3000);
        end(1, from, 1);
        from = begin(1);
        work(4000);
        end(2, from, 1);
    }
}

/* Since when this thread has had something to do. */
static _Thread_local double since;

/* It may wait now. */
static struct moment idle(void) {
    struct moment from = moment(1);
    int place = atomic_fetch_add(&known->stretches, 1);
    if (place < MOST) known->busy[place] = (struct stretch){since, from.wall};
    return from;
}

/* A wait is over: its end was spent ready to run, without a CPU. */
static void busy(struct part *mine, struct moment from) {
    struct moment until = moment(1);
    add(mine, from, until);
    since = until.wall - (until.queue - from.queue) - (until.cpu - from.cpu);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;

static void *locker(void *unused) {
    struct part mine = {0};
    since = now();
    for (int time = 0; time < 2500 / LESS; time++) {
        struct moment from = idle();
        pthread_mutex_lock(&mutex);
        busy(&mine, from);
        work(500);
        pthread_mutex_unlock(&mutex);
        work(100);
    }
    idle();
    pthread_mutex_lock(&books);
    known->parts[0].wall += mine.wall, known->parts[0].cpu += mine.cpu, known->parts[0].queue += mine.queue;
    pthread_mutex_unlock(&books);
    return unused;
}

/* Three threads on one mutex: nearly all the time one of them computes, so of wall time the lock takes nothing. */
static void lock(void) {
    pthread_t threads[3];
    known->parts[0].name = "lock", known->parts[1].name = "join";
    for (int at = 0; at < 3; at++) pthread_create(&threads[at], NULL, locker, NULL);
    struct moment from = begin(1);
    for (int at = 0; at < 3; at++) pthread_join(threads[at], NULL);
    end(1, from, 1);
}

static void stage(int number, int from, int to, int microseconds) {
    static char item_of[ITEM];
    struct part mine = {0};
    /* The parent's was inherited. */
    schedstat = -1;
    since = now();
    for (int item = 0; item < 1500 / LESS; item++) {
        struct moment here = idle();
        if (from >= 0 && read(from, item_of, ITEM) != ITEM) _exit(1);
        busy(&mine, here);
        work(microseconds);
        here = idle();
        if (to >= 0 && write(to, item_of, ITEM) != ITEM) _exit(1);
        busy(&mine, here);
    }
    idle();
    known->processes[number].pid = (int)getpid();
    known->processes[number].pipe = mine.wall - mine.cpu - mine.queue;
}

/* Three processes, of which the second is the slow one; a pipe holds one item, so that each stage can be one ahead. */
static void pipeline(void) {
    static const int microseconds[] = {800, 2000, 300};
    int ends[2][2];
    if (pipe(ends[0]) || pipe(ends[1])) exit(1);
    if (fcntl(ends[0][1], F_SETPIPE_SZ, ITEM) < 0 || fcntl(ends[1][1], F_SETPIPE_SZ, ITEM) < 0) exit(1);
    for (int number = 0; number < 3; number++)
        if (!fork()) {
            int from = number ? ends[number - 1][0] : -1, to = number < 2 ? ends[number][1] : -1;
            stage(number, from, to, microseconds[number]);
            _exit(0);
        }
    for (int number = 0; number < 3; number++) wait(NULL);
    known->forked = 3;
}

static void pingpong(void) {
    int there[2], back[2];
    char byte = 0;
    if (pipe(there) || pipe(back)) exit(1);
    if (!fork()) {
        for (int time = 0; time < 150000; time++)
            if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) _exit(1);
        _exit(0);
    }
    for (int time = 0; time < 150000; time++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) exit(1);
    wait(NULL);
}

static int earlier(const void *a, const void *b) {
    double difference = ((const struct stretch *)a)->from - ((const struct stretch *)b)->from;
    return (difference > 0) - (difference < 0);
}

/* Time in which at least one stretch lay. */
static double together(void) {
    int stretches = known->stretches < MOST ? known->stretches : MOST;
    qsort(known->busy, (size_t)stretches, sizeof *known->busy, earlier);
    double sum = 0, to = 0;
    for (int at = 0; at < stretches; at++) {
        struct stretch here = known->busy[at];
        if (here.to <= to) continue;
        sum += here.to - (here.from > to ? here.from : to);
        to = here.to;
    }
    return sum;
}

static void tell(void) {
    struct moment ended = moment(1);
    struct part all = {0}, *first = known->parts, *rest = first + 1;
    add(&all, begun, ended);
    if (known->rest) {
        rest->wall = all.wall - first->wall, rest->cpu = all.cpu - first->cpu;
        /* What computes does not wait: what it took beyond its CPU time, it stood in the queue. The rest of the queue was the first part's. */
        rest->queue = rest->wall - rest->cpu;
        first->queue = all.queue > rest->queue ? all.queue - rest->queue : 0;
    }
    printf("{\"total\": %.6f, \"queue\": %.6f, \"parts\": {", all.wall, all.queue);
    for (struct part *part = known->parts; part < known->parts + PARTS && part->name; part++)
        printf("%s\"%s\": {\"cpu\": %.6f, \"wait\": %.6f, \"queue\": %.6f}", part > known->parts ? ", " : "", part->name, part->cpu,
               part->wall - part->cpu - part->queue, part->queue);
    printf("}, \"busy\": %.6f, \"processes\": [", together());
    for (int at = 0; at < known->forked; at++)
        printf("%s{\"pid\": %d, \"pipe\": %.6f}", at ? ", " : "", known->processes[at].pid, known->processes[at].pipe);
    printf("]}\n");
}

int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "", *argument = count > 2 ? words[2] : "";
    known = mmap(NULL, sizeof *known, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (known == MAP_FAILED) return 1;
    begun = moment(1);
    if (!strcmp(name, "list")) list();
    else if (!strcmp(name, "random")) random_reads(argument, 0);
    else if (!strcmp(name, "mapped")) random_reads(argument, 1);
    else if (!strcmp(name, "cold")) sequential(argument, 1);
    else if (!strcmp(name, "warm")) sequential(argument, 0);
    else if (!strcmp(name, "faults")) faults();
    else if (!strcmp(name, "client")) client(atoi(argument));
    else if (!strcmp(name, "lock")) lock();
    else if (!strcmp(name, "pipeline")) pipeline();
    else if (!strcmp(name, "pingpong")) pingpong();
    else return 2;
    tell();
    return 0;
}
