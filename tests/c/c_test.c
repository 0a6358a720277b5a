/* The interface to C: results, properties, errors. */
#include <omnibal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int faults = 0;

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition); \
      ++faults;                                                      \
    }                                                                \
  } while (0)

enum { samples = 500, kinds = 2 };

static uint32_t state = 1;

static int64_t draw(int64_t most) {
  state = state * 1664525u + 1013904223u;
  return (int64_t)(state >> 8) % most + 1;
}

/* Every index comes once, in a group or among the oversized samples. */
static void check_complete(omnibal_groups const* groups, size_t count) {
  unsigned char seen[samples] = {0};
  size_t const number = omnibal_group_count(groups);
  uint32_t const* offsets = omnibal_offsets(groups);
  uint32_t const* items = omnibal_items(groups);
  size_t i;
  CHECK(offsets[0] == 0);
  CHECK(offsets[number] + omnibal_oversized_count(groups) == count);
  for (i = 0; i != offsets[number]; ++i) ++seen[items[i]];
  for (i = 0; i != omnibal_oversized_count(groups); ++i) ++seen[omnibal_oversized(groups)[i]];
  for (i = 0; i != count; ++i) CHECK(seen[i] == 1);
}

static void check_capacity(omnibal_groups const* groups, int64_t const* demands,
                           int64_t const* capacity) {
  uint32_t const* offsets = omnibal_offsets(groups);
  size_t g, i, k;
  for (g = 0; g != omnibal_group_count(groups); ++g) {
    int64_t load[kinds] = {0, 0};
    for (i = offsets[g]; i != offsets[g + 1]; ++i) {
      for (k = 0; k != kinds; ++k) load[k] += demands[omnibal_items(groups)[i] * kinds + k];
    }
    for (k = 0; k != kinds; ++k) CHECK(load[k] <= capacity[k]);
  }
}

static void test_packing(int64_t const* demands) {
  int64_t const capacity[kinds] = {12, 4096};
  omnibal_error error;
  omnibal_groups* groups = NULL;
  size_t bound = 0;
  int packer;
  CHECK(omnibal_packing_bound(demands, samples, kinds, capacity, &bound, &error) == OMNIBAL_OK);
  CHECK(bound > 1);
  for (packer = OMNIBAL_NEXT_FIT; packer <= OMNIBAL_BEST_PACKING; ++packer) {
    CHECK(omnibal_pack(packer, demands, samples, kinds, capacity, 1, &groups, &error) ==
          OMNIBAL_OK);
    CHECK(error.text[0] == '\0');
    CHECK(omnibal_group_count(groups) >= omnibal_lower_bound(groups));
    CHECK(omnibal_lower_bound(groups) == bound);
    CHECK(omnibal_ranks(groups) == 0);
    check_complete(groups, samples);
    check_capacity(groups, demands, capacity);
    omnibal_free(groups);
  }
  groups = NULL;
  CHECK(omnibal_pack(OMNIBAL_BEST_PACKING, demands, 0, kinds, capacity, 0, &groups, NULL) ==
        OMNIBAL_OK);
  CHECK(omnibal_group_count(groups) == 0);
  omnibal_free(groups);
  omnibal_free(NULL);
}

static void test_balancing(int64_t const* costs, int64_t const* demands) {
  int64_t const capacity[kinds] = {12, 4096};
  omnibal_error error;
  omnibal_groups* parts = NULL;
  omnibal_groups* evener = NULL;
  CHECK(omnibal_lpt(costs, samples, 7, &parts, &error) == OMNIBAL_OK);
  CHECK(omnibal_group_count(parts) == 7);
  check_complete(parts, samples);
  CHECK(omnibal_refine_parts(costs, samples, omnibal_offsets(parts), omnibal_items(parts), 7, &evener,
                       &error) == OMNIBAL_OK);
  check_complete(evener, samples);
  omnibal_free(parts);
  omnibal_free(evener);
  CHECK(omnibal_micro_batches(costs, demands, samples, kinds, capacity, 4, &parts, &error) ==
        OMNIBAL_OK);
  CHECK(omnibal_ranks(parts) == 4);
  CHECK(omnibal_group_count(parts) % 4 == 0);
  check_complete(parts, samples);
  check_capacity(parts, demands, capacity);
  omnibal_free(parts);
  CHECK(omnibal_schedule_steps(demands, samples, kinds, 8, 3, 1, &parts, &error) == OMNIBAL_OK);
  CHECK(omnibal_ranks(parts) == 8);
  check_complete(parts, samples);
  omnibal_free(parts);
}

static void test_planning(void) {
  int64_t const layers[6] = {1, 1, 1, 3, 3, 3};
  int64_t const times[4] = {1, 3, 1, 3};
  int64_t const bytes[4] = {10, 1, 10, 1};
  uint32_t const offsets[3] = {0, 2, 4};
  uint32_t boundaries[3];
  uint32_t choices[2];
  int64_t bottleneck = 0;
  int64_t time = 0;
  int proven = 0;
  omnibal_error error;
  CHECK(omnibal_partition_minimax(layers, 6, 2, boundaries, &bottleneck, &error) == OMNIBAL_OK);
  CHECK(bottleneck == 6 && boundaries[0] == 0 && boundaries[1] == 4 && boundaries[2] == 6);
  CHECK(omnibal_select_recompute(times, bytes, offsets, 2, 11, choices, &time, &proven, &error) ==
        OMNIBAL_OK);
  CHECK(time == 4 && proven == 1 && choices[0] + choices[1] == 1);
  CHECK(omnibal_select_recompute(times, bytes, offsets, 2, 1, choices, &time, NULL, &error) ==
        OMNIBAL_NO_SOLUTION);
  CHECK(strstr(error.text, "lacks 1 bytes") != NULL);
}

static void test_errors(int64_t const* demands) {
  int64_t const none[kinds] = {0, 4096};
  int64_t const capacity[kinds] = {12, 4096};
  int64_t negative[kinds] = {-1, 1};
  int64_t huge[2] = {INT64_MAX, INT64_MAX};
  omnibal_error error;
  omnibal_groups* groups = NULL;
  CHECK(omnibal_pack(OMNIBAL_ISF, demands, samples, kinds, none, 0, &groups, &error) ==
        OMNIBAL_INVALID);
  CHECK(strstr(error.text, "omnibal::isf: capacity[0] is 0") != NULL);
  CHECK(omnibal_pack(OMNIBAL_ISF, negative, 1, kinds, capacity, 0, &groups, NULL) ==
        OMNIBAL_INVALID);
  CHECK(omnibal_pack(OMNIBAL_ISF, demands, samples, 4, capacity, 0, &groups, &error) ==
        OMNIBAL_INVALID);
  CHECK(omnibal_pack(9, demands, samples, kinds, capacity, 0, &groups, &error) == OMNIBAL_INVALID);
  CHECK(omnibal_pack(OMNIBAL_ISF, NULL, samples, kinds, capacity, 0, &groups, &error) ==
        OMNIBAL_INVALID);
  CHECK(strstr(error.text, "demands is NULL") != NULL);
  CHECK(omnibal_lpt(huge, 2, 2, &groups, &error) == OMNIBAL_INVALID);
  CHECK(omnibal_lpt(huge, 2, 0, &groups, &error) == OMNIBAL_INVALID);
  CHECK(groups == NULL);
}

int main(void) {
  static int64_t demands[samples * kinds];
  static int64_t costs[samples];
  size_t i;
  for (i = 0; i != samples; ++i) {
    demands[kinds * i] = draw(5);
    demands[kinds * i + 1] = draw(2000);
    costs[i] = demands[kinds * i + 1] * demands[kinds * i + 1];
  }
  test_packing(demands);
  test_balancing(costs, demands);
  test_planning();
  test_errors(demands);
  if (faults == 0) printf("passed\n");
  return faults == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
