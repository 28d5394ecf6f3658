/* The floor: move an array between its files and memory, everything known beforehand, nothing checked.
 *
 * A job is one chunk: a range of a file, a codec, and copies between the decoded chunk and the array. Threads take jobs
 * from a common list. A chunk that lies contiguous in the array is read or decoded straight into it.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RAW, BLOSC, ZSTD, GZIP, ZSTD_CRC32C };
enum { THREADS = 16 };

typedef struct {
    int64_t file, start, stored; /* where the bytes are; stored is not used for writing */
    int64_t decoded;             /* bytes of the chunk in memory */
    int64_t direct;              /* its place in the array, if it lies contiguous there; else -1 */
    int64_t first, last;         /* else its copies */
    int64_t tail, tail_bytes;    /* what a written file ends with: the index of a shard */
} job;

/* n0 x n1 runs of `run` bytes, between the chunk (begins at chunk, steps c0, c1) and the array (array, a0, a1). */
typedef struct {
    int64_t chunk, array, n0, n1, run, c0, c1, a0, a1;
} copy;

static struct {
    void *(*zstd_dctx)(void);
    size_t (*zstd_decode)(void *, void *, size_t, const void *, size_t);
    void *(*zstd_cctx)(void);
    size_t (*zstd_encode)(void *, void *, size_t, const void *, size_t, int);
    void *(*gzip_d)(void);
    int (*gzip_decode)(void *, const void *, size_t, void *, size_t, size_t *);
    void *(*gzip_c)(int);
    size_t (*gzip_encode)(void *, const void *, size_t, void *, size_t);
    int (*blosc_decode)(const void *, void *, size_t, int);
    int (*blosc_encode)(int, int, size_t, size_t, const void *, void *, size_t, const char *, size_t, int);
    uint32_t (*crc32c)(uint32_t, const uint8_t *, size_t);
} lib;

/* Memory and contexts of a thread; they stay from run to run. */
typedef struct {
    char *chunk, *bytes;
    size_t chunk_size, bytes_size;
    void *zd, *zc, *gd, *gc;
} workspace;
static workspace spaces[THREADS];

typedef struct {
    const char **paths;
    const job *jobs;
    const copy *copies;
    int64_t count, batch;
    char *array;
    const char *tails;
    int codec, level, itemsize, writing;
    atomic_llong next;
    atomic_int failed;
} task;

typedef struct {
    task *task;
    workspace *space;
} seat;

void floor_bind(void **functions) { memcpy(&lib, functions, sizeof lib); }

static char *room(char **place, size_t *size, size_t wanted) {
    if (*size < wanted) {
        free(*place);
        *place = malloc(wanted);
        *size = wanted;
    }
    return *place;
}

static void runs(char *to, int64_t to0, int64_t to1, const char *from, int64_t from0, int64_t from1, const copy *c) {
    for (int64_t i = 0; i < c->n0; i++) {
        char *d = to + i * to0;
        const char *s = from + i * from0;
        switch (c->run) {
        case 2:
            for (int64_t j = 0; j < c->n1; j++) memcpy(d + j * to1, s + j * from1, 2);
            break;
        case 4:
            for (int64_t j = 0; j < c->n1; j++) memcpy(d + j * to1, s + j * from1, 4);
            break;
        default:
            for (int64_t j = 0; j < c->n1; j++) memcpy(d + j * to1, s + j * from1, (size_t)c->run);
        }
    }
}

static int all_read(int file, char *to, int64_t n, int64_t at) {
    while (n > 0) {
        ssize_t got = pread(file, to, (size_t)n, at);
        if (got <= 0) return -1;
        to += got, n -= got, at += got;
    }
    return 0;
}

static int all_written(int file, const char *from, int64_t n) {
    while (n > 0) {
        ssize_t put = write(file, from, (size_t)n);
        if (put <= 0) return -1;
        from += put, n -= put;
    }
    return 0;
}

static int decode(const task *t, workspace *w, const char *from, int64_t n, char *to, int64_t size) {
    size_t actual = 0;
    switch (t->codec) {
    case BLOSC:
        return lib.blosc_decode(from, to, (size_t)size, 1) == size ? 0 : -1;
    case GZIP:
        if (!w->gd) w->gd = lib.gzip_d();
        return lib.gzip_decode(w->gd, from, (size_t)n, to, (size_t)size, &actual);
    case ZSTD_CRC32C: {
        uint32_t sum;
        n -= 4;
        memcpy(&sum, from + n, 4);
        if (lib.crc32c(0, (const uint8_t *)from, (size_t)n) != sum) return -1;
    } /* fall through */
    default:
        if (!w->zd) w->zd = lib.zstd_dctx();
        return lib.zstd_decode(w->zd, to, (size_t)size, from, (size_t)n) == (size_t)size ? 0 : -1;
    }
}

static int64_t encode(const task *t, workspace *w, const char *from, int64_t n, char *to, int64_t size) {
    switch (t->codec) {
    case BLOSC:
        return lib.blosc_encode(t->level, 1, (size_t)t->itemsize, (size_t)n, from, to, (size_t)size, "lz4", 0, 1);
    case GZIP:
        if (!w->gc) w->gc = lib.gzip_c(t->level);
        return (int64_t)lib.gzip_encode(w->gc, from, (size_t)n, to, (size_t)size);
    default: {
        if (!w->zc) w->zc = lib.zstd_cctx();
        int64_t done = (int64_t)lib.zstd_encode(w->zc, to, (size_t)size, from, (size_t)n, t->level);
        if (t->codec == ZSTD_CRC32C && done > 0) {
            uint32_t sum = lib.crc32c(0, (const uint8_t *)to, (size_t)done);
            memcpy(to + done, &sum, 4);
            done += 4;
        }
        return done;
    }
    }
}

static int read_one(task *t, workspace *w, const job *j, int file) {
    char *to = j->direct >= 0 ? t->array + j->direct : room(&w->chunk, &w->chunk_size, (size_t)j->decoded);
    if (t->codec == RAW) {
        if (all_read(file, to, j->decoded, j->start)) return -1;
    } else {
        char *bytes = room(&w->bytes, &w->bytes_size, (size_t)j->stored);
        if (all_read(file, bytes, j->stored, j->start) || decode(t, w, bytes, j->stored, to, j->decoded)) return -1;
    }
    if (j->direct < 0)
        for (int64_t i = j->first; i < j->last; i++) {
            const copy *c = t->copies + i;
            runs(t->array + c->array, c->a0, c->a1, to + c->chunk, c->c0, c->c1, c);
        }
    return 0;
}

static int write_one(task *t, workspace *w, const job *j, int file) {
    const char *from = t->array + j->direct;
    int64_t n = j->decoded;
    if (j->direct < 0) {
        char *chunk = room(&w->chunk, &w->chunk_size, (size_t)n);
        for (int64_t i = j->first; i < j->last; i++) {
            const copy *c = t->copies + i;
            runs(chunk + c->chunk, c->c0, c->c1, t->array + c->array, c->a0, c->a1, c);
        }
        from = chunk;
    }
    if (t->codec != RAW) {
        int64_t size = n + n / 8 + 4096;
        char *bytes = room(&w->bytes, &w->bytes_size, (size_t)size);
        n = encode(t, w, from, n, bytes, size);
        if (n <= 0) return -1;
        from = bytes;
    }
    if (all_written(file, from, n)) return -1;
    return j->tail_bytes ? all_written(file, t->tails + j->tail, j->tail_bytes) : 0;
}

static void *work(void *argument) {
    seat *s = argument;
    task *t = s->task;
    int64_t open_now = -1;
    int file = -1;
    for (;;) {
        int64_t begin = atomic_fetch_add(&t->next, t->batch);
        if (begin >= t->count) break;
        int64_t end = begin + t->batch < t->count ? begin + t->batch : t->count;
        for (int64_t i = begin; i < end; i++) {
            const job *j = t->jobs + i;
            if (j->file != open_now) {
                if (file >= 0) close(file);
                file = t->writing ? open(t->paths[j->file], O_WRONLY | O_CREAT | O_TRUNC, 0666)
                                  : open(t->paths[j->file], O_RDONLY);
                open_now = j->file;
            }
            if (file < 0 || (t->writing ? write_one(t, s->space, j, file) : read_one(t, s->space, j, file))) {
                atomic_store(&t->failed, 1);
                break;
            }
        }
        if (atomic_load(&t->failed)) break;
    }
    if (file >= 0) close(file);
    return NULL;
}

/* Do all jobs on so many threads; the calling one is the first. Returns 0, or -1 if a job failed. */
int floor_run(const char **paths, const job *jobs, int64_t count, const copy *copies, char *array, const char *tails,
              int codec, int level, int itemsize, int writing, int threads) {
    task t = {paths, jobs, copies, count, 1, array, tails, codec, level, itemsize, writing, 0, 0};
    seat seats[THREADS];
    pthread_t others[THREADS];
    int started = 0;
    if (count < threads) threads = (int)count;
    if (threads > THREADS) threads = THREADS;
    /* Threads that make many files do so in directories of their own. */
    t.batch = count / (threads * (writing && count > 1024 ? 4 : 32)) + 1;
    for (int i = 0; i < threads; i++) seats[i] = (seat){&t, spaces + i};
    for (int i = 1; i < threads; i++) started += !pthread_create(others + i, NULL, work, seats + i);
    if (threads > 0) work(seats);
    for (int i = 1; i <= started; i++) pthread_join(others[i], NULL);
    return atomic_load(&t.failed) ? -1 : 0;
}
