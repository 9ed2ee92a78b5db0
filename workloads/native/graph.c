/* A random graph, built edge by edge: every vertex has a list of its neighbours that realloc doubles when it is full.
 * Then the graph is walked, and all lists are freed in random order. */
#include "block.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "store.h"

static uint64_t vertices = 20000, edges = 400000, rounds = 24;

static const struct parameter parameters[] = {
    {"vertices", COUNT, &vertices, 1, 1u << 30, NULL, "of the graph"},
    {"edges", COUNT, &edges, 1, 1u << 30, NULL, "of the graph; each stands in two lists"},
    {"rounds", COUNT, &rounds, 1, 1e9, NULL, "of building, walking and tearing down"},
};
static const struct program program = {"graph", "A random graph whose lists of neighbours grow by realloc.", parameters,
                                       sizeof parameters / sizeof *parameters};

enum { LIST_LEAST = 4 };

struct vertex {
    uint32_t *neighbours;
    uint32_t count, capacity;
    uint64_t mark; /* of all neighbours in their order: the list must say the same when it is walked */
};

struct edge {
    uint32_t from, to;
};

struct plan {
    struct edge *edges;
    uint32_t *order;
    struct vertex *table;
    uint64_t vertices, edges_each, rounds;
};

struct counts {
    uint64_t operations, checksum;
};

ALWAYS_INLINE void connect(const struct allocator *a, struct counts *counts, struct vertex *vertex, uint32_t to) {
    if (vertex->count == vertex->capacity) {
        const uint32_t capacity = vertex->capacity == 0 ? LIST_LEAST : vertex->capacity * 2;
        const size_t bytes = capacity * sizeof *vertex->neighbours;
        uint32_t *grown = a->realloc(vertex->neighbours, bytes);
        if (UNLIKELY(grown == NULL))
            out_of_memory(bytes);
        vertex->neighbours = grown;
        vertex->capacity = capacity;
        counts->operations++;
    }
    *(volatile uint32_t *)&vertex->neighbours[vertex->count++] = to;
    vertex->mark = checksum_add(vertex->mark, to);
}

ALWAYS_INLINE void walk(const struct allocator *a, struct counts *counts, const struct plan *plan) {
    for (uint64_t i = 0; i < plan->vertices; i++) {
        const struct vertex *vertex = &plan->table[i];
        uint64_t mark = 0;
        for (uint32_t n = 0; n < vertex->count; n++)
            mark = checksum_add(mark, *(volatile uint32_t *)&vertex->neighbours[n]);
        if (UNLIKELY(mark != vertex->mark))
            a->lost(vertex->neighbours, vertex->capacity * sizeof *vertex->neighbours, i);
        counts->checksum = checksum_add(counts->checksum, vertex->mark);
    }
}

ALWAYS_INLINE void tear_down(const struct allocator *a, struct counts *counts, const struct plan *plan) {
    for (uint64_t i = 0; i < plan->vertices; i++) {
        struct vertex *vertex = &plan->table[plan->order[i]];
        if (vertex->neighbours != NULL) {
            a->free(vertex->neighbours);
            counts->operations++;
        }
        *vertex = (struct vertex){0};
    }
}

ALWAYS_INLINE struct measurement run(const struct allocator *a, const struct plan *plan) {
    struct counts counts = {0};
    const uint64_t from = moment_ns();
    for (uint64_t round = 0; round < plan->rounds; round++) {
        for (uint64_t i = 0; i < plan->edges_each; i++) {
            const struct edge edge = plan->edges[i];
            connect(a, &counts, &plan->table[edge.from], edge.to);
            connect(a, &counts, &plan->table[edge.to], edge.from);
        }
        walk(a, &counts, plan);
        tear_down(a, &counts, plan);
    }
    return (struct measurement){counts.operations, seconds_between(from, moment_ns()), counts.checksum};
}

static __attribute__((noinline)) struct measurement run_measured(const struct plan *plan) {
    return run(&measured, plan);
}
static __attribute__((noinline)) struct measurement run_floor(const struct plan *plan) {
    return run(&null_allocator, plan);
}

static void draw(struct plan *plan) {
    struct random random;
    random_seed(&random, 8);
    for (uint64_t i = 0; i < plan->edges_each; i++)
        plan->edges[i] = (struct edge){random_below(&random, plan->vertices), random_below(&random, plan->vertices)};
    random_order(&random, plan->order, plan->vertices);
}

static uint64_t longest_list(const struct plan *plan) {
    uint64_t longest = 0;
    for (uint64_t i = 0; i < plan->edges_each; i++) {
        const uint32_t ends[] = {plan->edges[i].from, plan->edges[i].to};
        for (size_t end = 0; end < 2; end++) {
            const uint32_t count = ++plan->table[ends[end]].count;
            longest = count > longest ? count : longest;
        }
    }
    for (uint64_t i = 0; i < plan->vertices; i++)
        plan->table[i] = (struct vertex){0};
    return longest;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    struct plan plan = {
        .edges = store_take(edges * sizeof *plan.edges),
        .order = store_take(vertices * sizeof *plan.order),
        .table = store_take(vertices * sizeof *plan.table),
        .vertices = vertices,
        .edges_each = edges,
        .rounds = rounds,
    };
    draw(&plan);
    const struct measurement result = run_measured(&plan);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        plan.rounds = rounds < 4 ? 1 : rounds / 4;
        const uint64_t longest = 2 * longest_list(&plan) + LIST_LEAST; /* entries; capacities double */
        null_open(null_pool_for(4 * edges * sizeof(uint32_t), longest * sizeof(uint32_t), 1));
        report_floor_of(run_floor(&plan), result);
        null_close();
    } else {
        report_no_floor();
    }
    report_real("ns_per_edge", result.seconds * 1e9 / (double)(edges * rounds));
    report_close();
    return 0;
}
