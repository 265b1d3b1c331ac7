/* Marks stages of a C or C++ program for `latlab explain`. One header, no library.
 *
 *     latlab_stage read = latlab_begin("read");
 *     n = fread(buffer, 1, sizeof buffer, file);
 *     latlab_end(&read, n);
 *
 * or, for a scope (gcc, clang):   LATLAB_STAGE("parse");
 *
 * Nothing happens unless the environment names a ring in LATLAB_STAGES, which `latlab explain` does. Its form is
 * written in latlab_stage.rs (`latlab stages rust`). Linux, 64 bits, C11 or C++11 with the GNU atomics. */
#ifndef LATLAB_STAGE_H
#define LATLAB_STAGE_H
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LATLAB_UNUSED __attribute__((unused))

typedef struct {
    uint64_t begun, bytes;
    uint32_t name;
} latlab_stage;

static struct {
    pthread_once_t once;
    uint8_t *base;
    uint64_t mask;
    uint32_t forks;
} latlab_ring = {PTHREAD_ONCE_INIT, 0, 0, 0};
static __thread uint32_t latlab_who[3]; /* forks + 1, process, thread */

LATLAB_UNUSED static void latlab_forked(void) { latlab_ring.forks++; }

LATLAB_UNUSED static void latlab_open(void) {
    const char *path = getenv("LATLAB_STAGES");
    struct stat is;
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    if (fstat(file, &is) == 0 && is.st_size > 64 + 256 * 64) {
        uint8_t *base = (uint8_t *)mmap(0, (size_t)is.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (base != MAP_FAILED) {
            uint32_t slots = *(uint32_t *)(base + 8);
            if (memcmp(base, "LATSTG01", 8) == 0 && slots && !(slots & (slots - 1)) &&
                is.st_size >= 64 + 256 * 64 + (int64_t)slots * 64) {
                latlab_ring.mask = slots - 1;
                latlab_ring.base = base;
                pthread_atfork(0, 0, latlab_forked);
            } else
                munmap(base, (size_t)is.st_size);
        }
    }
    close(file);
}

LATLAB_UNUSED static uint32_t latlab_name(const char *name) {
    size_t length = strlen(name);
    uint32_t number;
    if (length > 56) /* never in the middle of a character of UTF-8 */
        for (length = 56; length && ((unsigned char)name[length] & 0xC0) == 0x80;) length--;
    for (number = 0; number < 256; number++) {
        uint8_t *at = latlab_ring.base + 64 + number * 64;
        uint32_t *state = (uint32_t *)at, nothing = 0;
        const char *text = number < 255 ? name : "(further names)";
        size_t bytes = number < 255 ? length : 15;
        int turn;
        if (__atomic_compare_exchange_n(state, &nothing, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            memcpy(at + 8, text, bytes);
            *(uint32_t *)(at + 4) = (uint32_t)bytes;
            __atomic_store_n(state, 2, __ATOMIC_RELEASE);
            return number;
        }
        for (turn = 0; turn < 10000 && __atomic_load_n(state, __ATOMIC_ACQUIRE) != 2; turn++) {}
        if (__atomic_load_n(state, __ATOMIC_ACQUIRE) == 2 && *(uint32_t *)(at + 4) == bytes &&
            memcmp(at + 8, text, bytes) == 0)
            return number;
    }
    return 255;
}

LATLAB_UNUSED static uint64_t latlab_write(uint32_t name, uint32_t kind, uint64_t begun, uint64_t bytes) {
    uint64_t index = __atomic_fetch_add((uint64_t *)(latlab_ring.base + 16), 1, __ATOMIC_RELAXED);
    uint64_t *slot = (uint64_t *)(latlab_ring.base + 64 + 256 * 64 + (index & latlab_ring.mask) * 64);
    uint32_t *last = (uint32_t *)(slot + 4);
    struct timespec now;
    if (latlab_who[0] != latlab_ring.forks + 1) {
        latlab_who[0] = latlab_ring.forks + 1;
        latlab_who[1] = (uint32_t)getpid();
        latlab_who[2] = (uint32_t)syscall(SYS_gettid);
    }
    __atomic_store_n(slot, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    clock_gettime(CLOCK_MONOTONIC, &now);
    __atomic_store_n(slot + 1, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, __ATOMIC_RELAXED);
    __atomic_store_n(slot + 2, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(slot + 3, begun, __ATOMIC_RELAXED);
    __atomic_store_n(last, latlab_who[1], __ATOMIC_RELAXED);
    __atomic_store_n(last + 1, latlab_who[2], __ATOMIC_RELAXED);
    __atomic_store_n(last + 2, name, __ATOMIC_RELAXED);
    __atomic_store_n(last + 3, kind, __ATOMIC_RELAXED);
    __atomic_store_n(slot, index + 1, __ATOMIC_RELEASE);
    return index + 1;
}

/* Begins a stage. */
LATLAB_UNUSED static latlab_stage latlab_begin(const char *name) {
    latlab_stage stage = {0, 0, 0};
    pthread_once(&latlab_ring.once, latlab_open);
    if (latlab_ring.base) {
        stage.name = latlab_name(name);
        stage.begun = latlab_write(stage.name, 0, 0, 0);
    }
    return stage;
}

/* Ends it; `bytes` is what it has gone through, or 0. */
LATLAB_UNUSED static void latlab_end(latlab_stage *stage, uint64_t bytes) {
    if (latlab_ring.base && stage->begun) latlab_write(stage->name, 1, stage->begun, bytes);
    stage->begun = 0;
}

LATLAB_UNUSED static void latlab_end_of_scope(latlab_stage *stage) { latlab_end(stage, stage->bytes); }
#define LATLAB_JOIN_(a, b) a##b
#define LATLAB_JOIN(a, b) LATLAB_JOIN_(a, b)
#define LATLAB_STAGE(name)                                                                               \
    latlab_stage LATLAB_JOIN(latlab_stage_, __LINE__) __attribute__((cleanup(latlab_end_of_scope))) =    \
        latlab_begin(name)
#endif
