// SPDX-License-Identifier: Apache-2.0
/** \file
 * omnibal for C: groups, parts and steps as offsets and items, errors as codes with a text.
 *
 * No exception leaves these functions, and none keeps a pointer to what it is given. An array of
 * demands has the numbers of a sample beside each other: `kinds` numbers for each, 1 to 3. Each
 * function is the one of its name in omnibal, whose header has the contract.
 *
 *     omnibal_groups* groups = NULL;
 *     omnibal_error error;
 *     if (omnibal_pack(OMNIBAL_BEST_PACKING, lengths, count, 1, &capacity, 0, &groups, &error)) {
 *       fprintf(stderr, "%s\n", error.text);
 *     }
 */
#ifndef OMNIBAL_C_H
#define OMNIBAL_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a function returns. */
enum omnibal_code {
  OMNIBAL_OK = 0,
  /** A wrong argument, or a sum that exceeds 64 bits; the text names it. */
  OMNIBAL_INVALID = 1,
  /** There is no solution, or none was found; the text says what is missing. */
  OMNIBAL_NO_SOLUTION = 2,
  OMNIBAL_NO_MEMORY = 3,
  /** A fault of the library. */
  OMNIBAL_FAULT = 4
};

/** What went wrong, cut to its size. Empty after OMNIBAL_OK. May be NULL as an argument. */
typedef struct omnibal_error {
  char text[512];
} omnibal_error;

/** Groups of indices, made by the functions below and freed by `omnibal_free`. */
typedef struct omnibal_groups omnibal_groups;

/** Frees groups; NULL is allowed. */
void omnibal_free(omnibal_groups* groups);

/** The number of groups. */
size_t omnibal_group_count(omnibal_groups const* groups);
/** One more than there are groups: those of group g are the items [offsets[g], offsets[g + 1]). */
uint32_t const* omnibal_offsets(omnibal_groups const* groups);
uint32_t const* omnibal_items(omnibal_groups const* groups);
/** Of a packing, the samples that exceed the capacity alone, which are in no group. */
size_t omnibal_oversized_count(omnibal_groups const* groups);
uint32_t const* omnibal_oversized(omnibal_groups const* groups);
/** Of a packing, a number of groups that no packing can do without; else 0. */
size_t omnibal_lower_bound(omnibal_groups const* groups);
/** Of steps and micro-batches: group s * ranks + r is what rank r runs in step s; else 0. */
size_t omnibal_ranks(omnibal_groups const* groups);

enum omnibal_packer {
  OMNIBAL_NEXT_FIT = 0,
  OMNIBAL_ISF = 1,
  OMNIBAL_BEST_FIT_DECREASING = 2,
  OMNIBAL_BEST_PACKING = 3
};

/** Groups under a capacity of `kinds` numbers. `packer` is an omnibal_packer, `seed` that of
 * OMNIBAL_ISF. */
int omnibal_pack(int packer, int64_t const* demands, size_t samples, size_t kinds,
                 int64_t const* capacity, uint64_t seed, omnibal_groups** result,
                 omnibal_error* error);

/** A number of groups that no packing can do without. */
int omnibal_packing_bound(int64_t const* demands, size_t samples, size_t kinds,
                          int64_t const* capacity, size_t* bound, omnibal_error* error);

/** Even parts. */
int omnibal_lpt(int64_t const* costs, size_t samples, size_t parts, omnibal_groups** result,
                omnibal_error* error);

/** Given parts, evener: their offsets and items as above. */
int omnibal_refine_parts(int64_t const* costs, size_t samples, uint32_t const* offsets,
                         uint32_t const* items, size_t parts, omnibal_groups** result,
                         omnibal_error* error);

/** Micro-batches under a capacity, as many on each rank: steps of one micro-batch for each. */
int omnibal_micro_batches(int64_t const* costs, int64_t const* demands, size_t samples,
                          size_t kinds, int64_t const* capacity, size_t ranks,
                          omnibal_groups** result, omnibal_error* error);

/** Steps of groups with the given loads, `kinds` numbers for each, in one epoch. */
int omnibal_schedule_steps(int64_t const* loads, size_t groups, size_t kinds, size_t ranks,
                           uint64_t seed, uint64_t epoch, omnibal_groups** result,
                           omnibal_error* error);

/** The most even stages of a chain of layers: `boundaries` has room for `stages + 1` numbers. */
int omnibal_partition_minimax(int64_t const* costs, size_t layers, size_t stages,
                              uint32_t* boundaries, int64_t* bottleneck, omnibal_error* error);

/** A choice for each layer within a budget of bytes. Those of layer l are the times and bytes
 * [offsets[l], offsets[l + 1]); `choices` has room for `layers` numbers. `proven`, where it is not
 * NULL, says whether no choices take less time. */
int omnibal_select_recompute(int64_t const* times, int64_t const* bytes, uint32_t const* offsets,
                             size_t layers, int64_t budget, uint32_t* choices, int64_t* time,
                             int* proven, omnibal_error* error);

#ifdef __cplusplus
}
#endif

#endif
