// The plain C loops that the kernels are measured against.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Best of k: one comparison chain, ties to the lowest position.
uint32_t limit_gather_argmax(const float *row, const uint32_t *ids, size_t k) {
    float best = -INFINITY;
    uint32_t token = ids[0];
    for (size_t i = 0; i < k; i++) {
        const float logit = row[ids[i]];
        if (logit > best) {
            best = logit;
            token = ids[i];
        }
    }
    return token;
}

// Gather k, fill the row, scatter k.
void limit_mask(float *row, size_t n, const uint32_t *ids, size_t k, float *saved) {
    for (size_t i = 0; i < k; i++) saved[i] = row[ids[i]];
    for (size_t i = 0; i < n; i++) row[i] = -INFINITY;
    for (size_t i = 0; i < k; i++) row[ids[i]] = saved[i];
}
