/* Trees planted and felled in a fixed order lie in memory as they do where nothing is guarded: a block that is left out for a guarded one would
 * shift all that follow, for ever, and scatter what the program walks along. */
#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { DEPTH = 13, ALIVE = 4, TREES = 1600, NODES = (2 << DEPTH) - 1, FEW_PAGES = NODES / 5 };

struct node {
    struct node *left, *right;
    uint64_t depth;
};

static const struct node *last;
static unsigned pages; /* steps from one node to the next that leave the page */

static struct node *plant(uint64_t depth) {
    struct node *node = unseen(malloc(sizeof *node));
    EXPECT(node != NULL, "no memory");
    pages += (uintptr_t)node >> 12 != (uintptr_t)last >> 12;
    last = node;
    *node = (struct node){.depth = depth};
    if (depth > 0) {
        node->left = plant(depth - 1);
        node->right = plant(depth - 1);
    }
    return node;
}

static void fell(struct node *node) {
    if (node != NULL) {
        fell(node->left);
        fell(node->right);
        free(node);
    }
}

static size_t guarded(void) {
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    return stats.guarded;
}

int main(void) {
    require_serving();
    struct node *trees[ALIVE] = {0};
    for (int tree = 0; tree < TREES; tree++) {
        fell(trees[tree % ALIVE]);
        pages = 0;
        trees[tree % ALIVE] = plant(DEPTH);
    }
    for (int tree = 0; tree < ALIVE; tree++) {
        fell(trees[tree]);
    }
    EXPECT(guarded() > 0, "no block was guarded");
    EXPECT(pages < FEW_PAGES, "%u of %d nodes lie on another page than the one before", pages, NODES);
    return 0;
}
