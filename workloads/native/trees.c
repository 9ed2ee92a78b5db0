/* Binary trees, one malloc per node: each new tree takes the place of the oldest of those alive, which is walked and torn
 * down first. */
#include "block.h"
#include "crew.h"
#include "report.h"
#include "store.h"

enum { DEPTH_MOST = 30 };

static uint64_t depth = 13, alive = 4, trees = 1000, threads = 1;

static const struct parameter parameters[] = {
    {"depth", COUNT, &depth, 0, DEPTH_MOST, NULL, "of a tree; it has 2^(depth+1) - 1 nodes of 32 bytes"},
    {"alive", COUNT, &alive, 1, 1000, NULL, "trees at a time in each thread"},
    {"trees", COUNT, &trees, 1, 1e12, NULL, "built by all threads together"},
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "each with its own trees"},
};
static const struct program program = {"trees", "Binary trees built and torn down, one malloc per node.", parameters,
                                       sizeof parameters / sizeof *parameters};

/* The first and the last word are the marks of a block; the children are followed only after they were checked. */
struct node {
    uint64_t first_mark;
    struct node *left, *right;
    uint64_t last_mark;
};

struct forest {
    struct node **roots;
    uint64_t checksum;
};

static struct forest *forests;
static uint64_t depth_now, trees_each;

/* Numbers of nodes are those of a heap: the children of n are 2 n and 2 n + 1; the tree's own comes on top. */
static uint64_t owner_of(uint64_t tree, uint64_t node) { return tree << 32 ^ node; }

ALWAYS_INLINE struct node *node_take(const struct allocator *a, uint64_t owner, struct node *left, struct node *right) {
    struct node *node = block_take(a, sizeof *node, owner);
    node->left = left;
    node->right = right;
    return node;
}

/* Both subtrees before their parent, without recursion, which could not be compiled twice: `waiting` holds the left
 * subtree of each height whose sibling is not yet built, as a binary counter holds its ones. */
ALWAYS_INLINE struct node *build(const struct allocator *a, uint64_t tree, uint64_t levels) {
    struct node *waiting[DEPTH_MOST] = {0}, *done = NULL;
    const uint64_t leaves = UINT64_C(1) << levels;
    for (uint64_t leaf = 0; leaf < leaves; leaf++) {
        uint64_t number = leaves + leaf, height = 0;
        done = node_take(a, owner_of(tree, number), NULL, NULL);
        for (; number % 2 == 1 && number > 1; height++) {
            number /= 2;
            done = node_take(a, owner_of(tree, number), waiting[height], done);
        }
        waiting[height] = done;
    }
    return done;
}

struct step {
    struct node *node;
    uint64_t number;
};

/* Each node before its subtrees, the left one first. */
ALWAYS_INLINE uint64_t visit(const struct allocator *a, struct node *root, uint64_t tree, bool tear_down) {
    struct step steps[DEPTH_MOST + 2] = {{root, 1}};
    uint64_t checksum = 0;
    for (size_t count = 1; count > 0;) {
        const struct step step = steps[--count];
        checksum = checksum_add(checksum, block_check(a, step.node, sizeof *step.node, owner_of(tree, step.number)));
        if (step.node->left != NULL) {
            steps[count++] = (struct step){step.node->right, 2 * step.number + 1};
            steps[count++] = (struct step){step.node->left, 2 * step.number};
        }
        if (tear_down)
            a->free(step.node);
    }
    return checksum;
}

ALWAYS_INLINE void plant(const struct allocator *a, size_t member) {
    struct forest *forest = &forests[member];
    forest->checksum = 0;
    for (uint64_t tree = 0; tree < trees_each; tree++) {
        struct node **root = &forest->roots[tree % alive];
        if (tree >= alive) {
            forest->checksum += visit(a, *root, tree - alive, false);
            forest->checksum += visit(a, *root, tree - alive, true);
        }
        *root = build(a, tree, depth_now);
    }
    for (uint64_t tree = trees_each < alive ? 0 : trees_each - alive; tree < trees_each; tree++)
        forest->checksum += visit(a, forest->roots[tree % alive], tree, true);
}

static void plant_measured(size_t member, void *unused) {
    (void)unused;
    plant(&measured, member);
}

static void plant_floor(size_t member, void *unused) {
    (void)unused;
    plant(&null_allocator, member);
}

static uint64_t nodes_of(uint64_t levels) { return (UINT64_C(2) << levels) - 1; }

static struct measurement run(void (*work)(size_t, void *), uint64_t levels, uint64_t count, size_t null_pool) {
    depth_now = levels;
    trees_each = count;
    const double seconds = crew_run((struct crew){threads, work, NULL, null_pool});
    struct measurement result = {2 * threads * count * nodes_of(levels), seconds, 0};
    for (uint64_t i = 0; i < threads; i++)
        result.checksum += forests[i].checksum;
    return result;
}

/* All trees alive and the next one fit into the null allocator's pool, so that it goes round onto dead trees only. */
static struct measurement run_floor(uint64_t count) {
    const size_t pool = null_pool_for(UINT64_MAX, 0, threads);
    uint64_t levels = depth;
    while (levels > 0 && (alive + 2) * nodes_of(levels) * sizeof(struct node) > pool)
        levels--;
    uint64_t trees_now = count * nodes_of(depth) / nodes_of(levels) / 8;
    trees_now = trees_now < 1 ? 1 : trees_now;
    return run(plant_floor, levels, levels == depth && trees_now > count ? count : trees_now, pool);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    forests = store_take(threads * sizeof *forests);
    for (uint64_t i = 0; i < threads; i++)
        forests[i].roots = store_take(alive * sizeof(void *));
    const uint64_t each = trees / threads == 0 ? 1 : trees / threads;
    const struct measurement result = run(plant_measured, depth, each, 0);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor())
        report_floor_of(run_floor(each), result);
    else
        report_no_floor();
    report_real("ns_per_node", result.seconds * 2e9 / (double)result.operations);
    report_close();
    return 0;
}
