// SPDX-License-Identifier: Apache-2.0
#include "omnibal.h"

#include "../arrays/arrays.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

struct omnibal_groups {
  omnibal::grouping groups;
  std::vector<std::uint32_t> oversized{};
  std::size_t lower_bound = 0;
  std::size_t ranks = 0;
};

namespace {

/// There is no solution: the text says what is missing.
struct no_solution : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void write_text(omnibal_error* error, std::string_view text) noexcept {
  if (error == nullptr) return;
  std::size_t const length = std::min(text.size(), sizeof(error->text) - 1);
  if (length != 0) std::memcpy(error->text, text.data(), length);
  error->text[length] = '\0';
}

/// Runs `body` and turns what it throws into a code and a text.
template <class Body>
int guard(omnibal_error* error, Body const& body) noexcept {
  try {
    body();
    write_text(error, "");
    return OMNIBAL_OK;
  } catch (no_solution const& fault) {
    write_text(error, fault.what());
    return OMNIBAL_NO_SOLUTION;
  } catch (std::bad_alloc const&) {
    write_text(error, "there is not enough memory");
    return OMNIBAL_NO_MEMORY;
  } catch (std::logic_error const& fault) {
    write_text(error, fault.what());
    return OMNIBAL_INVALID;
  } catch (std::overflow_error const& fault) {
    write_text(error, fault.what());
    return OMNIBAL_INVALID;
  } catch (std::exception const& fault) {
    write_text(error, fault.what());
    return OMNIBAL_FAULT;
  } catch (...) {
    write_text(error, "an unknown exception");
    return OMNIBAL_FAULT;
  }
}

[[noreturn]] void reject(std::string_view function, std::string_view text) {
  throw std::invalid_argument("omnibal::" + std::string(function) + ": " + std::string(text));
}

void check_pointer(std::string_view function, std::string_view name, void const* pointer) {
  if (pointer == nullptr) reject(function, std::string(name) + " is NULL");
}

template <class T>
std::span<T const> array(std::string_view function, std::string_view name, T const* data,
                         std::size_t size) {
  if (size != 0) check_pointer(function, name, data);
  return {data, size};
}

arrays::demand_table table(std::string_view function, std::string_view name,
                           std::int64_t const* data, std::size_t rows, std::size_t kinds) {
  if (kinds != 0 && rows > static_cast<std::size_t>(-1) / sizeof(std::int64_t) / kinds) {
    throw std::length_error("omnibal::" + std::string(function) + ": there are " +
                            std::to_string(rows) + " samples");
  }
  return {array(function, name, data, rows * kinds), kinds};
}

void give(omnibal_groups** result, omnibal_groups&& groups) {
  *result = new omnibal_groups(std::move(groups));
}

/// The cells of steps as groups.
omnibal_groups cells_of(omnibal::step_cells const& steps) {
  omnibal::grouping_view const cells = steps.cells();
  omnibal::grouping groups({cells.offsets().begin(), cells.offsets().end()},
                           {cells.items().begin(), cells.items().end()});
  return {.groups = std::move(groups), .ranks = steps.ranks()};
}

}  // namespace

void omnibal_free(omnibal_groups* groups) { delete groups; }

std::size_t omnibal_group_count(omnibal_groups const* groups) { return groups->groups.size(); }

std::uint32_t const* omnibal_offsets(omnibal_groups const* groups) {
  return groups->groups.offsets().data();
}

std::uint32_t const* omnibal_items(omnibal_groups const* groups) {
  return groups->groups.items().data();
}

std::size_t omnibal_oversized_count(omnibal_groups const* groups) {
  return groups->oversized.size();
}

std::uint32_t const* omnibal_oversized(omnibal_groups const* groups) {
  return groups->oversized.data();
}

std::size_t omnibal_lower_bound(omnibal_groups const* groups) { return groups->lower_bound; }

std::size_t omnibal_ranks(omnibal_groups const* groups) { return groups->ranks; }

int omnibal_pack(int packer, std::int64_t const* demands, std::size_t samples, std::size_t kinds,
                 std::int64_t const* capacity, std::uint64_t seed, omnibal_groups** result,
                 omnibal_error* error) {
  return guard(error, [&] {
    check_pointer("pack", "result", result);
    auto const rows = table("pack", "demands", demands, samples, kinds);
    auto const limits = array("pack", "capacity", capacity, kinds);
    omnibal::packing packed;
    switch (packer) {
      case OMNIBAL_NEXT_FIT: packed = arrays::next_fit(rows, limits); break;
      case OMNIBAL_ISF: packed = arrays::isf(rows, limits, {.seed = seed}); break;
      case OMNIBAL_BEST_FIT_DECREASING: packed = arrays::best_fit_decreasing(rows, limits); break;
      case OMNIBAL_BEST_PACKING:
        packed = arrays::best_packing(rows, limits, omnibal::effort::normal);
        break;
      default: reject("pack", "there is no packer " + std::to_string(packer));
    }
    give(result, {.groups = std::move(packed.groups),
                  .oversized = std::move(packed.oversized),
                  .lower_bound = packed.report.lower_bound});
  });
}

int omnibal_packing_bound(std::int64_t const* demands, std::size_t samples, std::size_t kinds,
                          std::int64_t const* capacity, std::size_t* bound, omnibal_error* error) {
  return guard(error, [&] {
    check_pointer("packing_bound", "bound", bound);
    *bound = arrays::packing_bound(table("packing_bound", "demands", demands, samples, kinds),
                                   array("packing_bound", "capacity", capacity, kinds),
                                   omnibal::effort::normal, {});
  });
}

int omnibal_lpt(std::int64_t const* costs, std::size_t samples, std::size_t parts,
                omnibal_groups** result, omnibal_error* error) {
  return guard(error, [&] {
    check_pointer("lpt", "result", result);
    give(result, {.groups = arrays::lpt(array("lpt", "costs", costs, samples), parts, {})});
  });
}

int omnibal_refine_parts(std::int64_t const* costs, std::size_t samples,
                         std::uint32_t const* offsets, std::uint32_t const* items,
                         std::size_t parts, omnibal_groups** result, omnibal_error* error) {
  return guard(error, [&] {
    check_pointer("refine_parts", "result", result);
    check_pointer("refine_parts", "offsets", offsets);
    auto const given = array("refine_parts", "items", items, offsets[parts]);
    omnibal::grouping const groups({offsets, offsets + parts + 1}, {given.begin(), given.end()});
    give(result, {.groups = arrays::refine_parts(array("refine_parts", "costs", costs, samples),
                                                 groups.view(), {})});
  });
}

int omnibal_micro_batches(std::int64_t const* costs, std::int64_t const* demands,
                          std::size_t samples, std::size_t kinds, std::int64_t const* capacity,
                          std::size_t ranks, omnibal_groups** result, omnibal_error* error) {
  return guard(error, [&] {
    std::string_view const name = "micro_batches";
    check_pointer(name, "result", result);
    give(result, cells_of(arrays::micro_batches(array(name, "costs", costs, samples), ranks,
                                                table(name, "demands", demands, samples, kinds),
                                                array(name, "capacity", capacity, kinds), {},
                                                [](auto const&) { return true; })));
  });
}

int omnibal_schedule_steps(std::int64_t const* loads, std::size_t groups, std::size_t kinds,
                           std::size_t ranks, std::uint64_t seed, std::uint64_t epoch,
                           omnibal_groups** result, omnibal_error* error) {
  return guard(error, [&] {
    check_pointer("schedule_steps", "result", result);
    give(result,
         cells_of(arrays::schedule_steps(table("schedule_steps", "loads", loads, groups, kinds),
                                         ranks, {.seed = seed, .epoch = epoch})));
  });
}

int omnibal_partition_minimax(std::int64_t const* costs, std::size_t layers, std::size_t stages,
                              std::uint32_t* boundaries, std::int64_t* bottleneck,
                              omnibal_error* error) {
  return guard(error, [&] {
    check_pointer("partition_minimax", "boundaries", boundaries);
    auto const found = arrays::partition_minimax(array("partition_minimax", "costs", costs, layers),
                                                 stages, omnibal::empty_stages::forbidden);
    std::ranges::copy(found.boundaries, boundaries);
    if (bottleneck != nullptr) *bottleneck = std::get<std::int64_t>(found.bottleneck);
  });
}

int omnibal_select_recompute(std::int64_t const* times, std::int64_t const* bytes,
                             std::uint32_t const* offsets, std::size_t layers, std::int64_t budget,
                             std::uint32_t* choices, std::int64_t* time, int* proven,
                             omnibal_error* error) {
  return guard(error, [&] {
    std::string_view const name = "select_recompute";
    check_pointer(name, "offsets", offsets);
    if (layers != 0) check_pointer(name, "choices", choices);
    std::size_t const count = offsets[layers];
    auto const found = arrays::select_recompute(array(name, "times", times, count),
                                                array(name, "bytes", bytes, count), {},
                                                {offsets, layers + 1}, budget, {});
    if (found.status != omnibal::solve_status::solved) {
      throw no_solution("omnibal::select_recompute: the budget lacks " +
                        std::to_string(found.missing_bytes) + " bytes");
    }
    std::ranges::copy(found.choices, choices);
    if (time != nullptr) *time = std::get<std::int64_t>(found.time);
    if (proven != nullptr) *proven = found.proven ? 1 : 0;
  });
}
