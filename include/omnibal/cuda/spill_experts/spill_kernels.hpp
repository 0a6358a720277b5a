// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The search of `spill_experts`, with a block for each layer.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/order_search.hpp>
#include <omnibal/detail/room_filling.hpp>
#include <omnibal/detail/spill_bound.hpp>
#include <omnibal/detail/spill_problem.hpp>
#include <omnibal/experts/spill_plan.hpp>
#include <omnibal/experts/token_counts.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// A tuning constant of the speed of `gpu::spill_experts`, not tuned on a device; it does not
/// change the result.
struct spill_tuning {
  static constexpr int threads = 256;
};

/// The numbers of experts and of ranks of a layer.
struct spill_shape {
  std::uint32_t experts;
  std::uint32_t ranks;

  /// Returns the largest number of copies of a layer. Each copy completes a donor, an expert or the
  /// room of a rank.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t copies() const {
    return std::size_t{experts} + ranks;
  }
};

/// The input and output arrays of all layers, and the options.
struct spill_tables {
  spill_shape shape;
  std::int64_t const* tokens;
  std::uint32_t const* home;
  std::size_t slots;
  double max_overload;
  std::size_t orders;
  std::uint64_t seed;
  foreign_copy* copies;
  std::uint32_t* copy_count;
  std::int64_t* home_tokens;
  std::int64_t* rank_tokens;
  std::int64_t* largest;
  std::int64_t* cap;
  std::uint32_t* fewest_copies;
  solve_status* status;
  std::uint8_t* is_proven;
  fault* faults;
};

/// The result of the search for a layer, and the lower bound on the number of its copies.
struct spill_outcome {
  omnibal::detail::order_result found;
  std::size_t fewest_copies;
};

/// The arrays of a block for one layer.
struct spill_arrays {
  /// An element for each rank.
  std::int64_t* loads;
  std::int64_t* bound_rooms;
  std::int64_t* bound_surpluses;
  omnibal::detail::spill_donor* donors;
  omnibal::detail::spill_room* rooms;
  /// The experts of the donors; the array has an element for each expert.
  omnibal::detail::expert_tokens* experts;
  omnibal::detail::filling_arrays filling;
  omnibal::detail::order_arrays search;
  spill_outcome* outcome;

  template <array_arena Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static spill_arrays take(Arena&& arena,
                                                             spill_shape const& shape) {
    namespace host = omnibal::detail;
    spill_arrays result{};
    result.loads = arena.template take<std::int64_t>(shape.ranks);
    result.bound_rooms = arena.template take<std::int64_t>(shape.ranks);
    result.bound_surpluses = arena.template take<std::int64_t>(shape.ranks);
    result.donors = arena.template take<host::spill_donor>(shape.ranks);
    result.rooms = arena.template take<host::spill_room>(shape.ranks);
    result.experts = arena.template take<host::expert_tokens>(shape.experts);
    result.filling.rooms = arena.template take<host::free_room>(shape.ranks);
    result.filling.taken = arena.template take<host::free_room>(shape.ranks);
    result.filling.chosen = arena.template take<std::uint32_t>(shape.ranks);
    result.filling.experts = arena.template take<host::expert_tokens>(shape.experts);
    result.search.order = arena.template take<std::uint32_t>(shape.ranks);
    result.search.candidate = arena.template take<std::uint32_t>(shape.ranks);
    result.search.copies = arena.template take<foreign_copy>(shape.copies());
    result.search.other_copies = arena.template take<foreign_copy>(shape.copies());
    result.outcome = arena.template take<spill_outcome>(1);
    return result;
  }
};

/// The plan of one layer, with the steps and the order of `omnibal::spill_experts`.
template <class Block>
class layer_spill {
 public:
  OMNIBAL_HOST_DEVICE layer_spill(Block& block, spill_tables const& tables, std::size_t layer,
                                  spill_arrays const& arrays)
      : block_(block),
        tables_(tables),
        arrays_(arrays),
        layer_(layer),
        tokens_(tables.tokens + layer * tables.shape.experts),
        home_(tables.home + layer * tables.shape.experts) {}

  /// Plans the copies and writes the outputs. If the input is wrong, it raises a fault and writes
  /// zeros.
  OMNIBAL_HOST_DEVICE void run() {
    if (!is_valid()) return write_nothing();
    find_lists();
    block_.once([&] { search(); });
    write();
  }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE spill_shape const& shape() const { return tables_.shape; }

  /// Checks the input and computes the cap.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_valid() {
    std::uint32_t const wrong = block_.reduce(
        shape().experts,
        [&](std::size_t e) {
          bool const is_negative = tokens_[e] < 0;
          bool const is_unknown = home_[e] >= shape().ranks;
          if (is_negative) raise(tables_.faults, fault::invalid_amount);
          if (is_unknown) raise(tables_.faults, fault::unknown_index);
          return is_negative || is_unknown ? 1u : 0u;
        },
        add{}, 0u);
    if (wrong != 0) return false;
    std::uint64_t const sum = block_.reduce(
        shape().experts, [&](std::size_t e) { return static_cast<std::uint64_t>(tokens_[e]); },
        add_saturating{}, std::uint64_t{0});
    if (sum >> 63 != 0) {
      block_.once([&] { raise(tables_.faults, fault::overflow); });
      return false;
    }
    auto const total = static_cast<std::int64_t>(sum);
    std::int64_t const mean = omnibal::detail::ceiled_mean(total, shape().ranks);
    cap_ = smaller_of(total, omnibal::detail::with_overload(mean, tables_.max_overload));
    return true;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_listed(std::size_t expert) const {
    return tokens_[expert] != 0 && arrays_.loads[home_[expert]] > cap_;
  }
  /// Returns true if expert a precedes expert b in the list of the experts of donors.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_before(std::size_t a, std::size_t b) const {
    if (home_[a] != home_[b]) return home_[a] < home_[b];
    return tokens_[a] != tokens_[b] ? tokens_[a] > tokens_[b] : a < b;
  }

  /// Sorts donors, rooms and experts. The place of each element is the number of elements before
  /// it.
  OMNIBAL_HOST_DEVICE void find_lists() {
    spill_arrays const& a = arrays_;
    block_.reduce_each(
        shape().ranks, shape().experts,
        [&](std::size_t r, std::size_t e) { return home_[e] == r ? tokens_[e] : 0; }, add{},
        std::int64_t{0}, [&](std::size_t r, std::int64_t load) { a.loads[r] = load; });
    donors_ = block_.reduce(
        shape().ranks, [&](std::size_t r) { return a.loads[r] > cap_ ? 1u : 0u; }, add{}, 0u);
    rooms_ = block_.reduce(
        shape().ranks, [&](std::size_t r) { return a.loads[r] < cap_ ? 1u : 0u; }, add{}, 0u);
    block_.for_each(shape().experts, [&](std::size_t e) {
      if (!is_listed(e)) return;
      std::size_t place = 0;
      for (std::size_t other = 0; other != shape().experts; ++other) {
        if (is_listed(other) && is_before(other, e)) ++place;
      }
      a.experts[place] = {static_cast<std::uint32_t>(e), tokens_[e]};
    });
    block_.for_each(shape().ranks, [&](std::size_t r) {
      if (a.loads[r] > cap_) place_donor(r);
      if (a.loads[r] < cap_) place_room(r);
    });
  }

  OMNIBAL_HOST_DEVICE void place_donor(std::size_t rank) const {
    std::int64_t const load = arrays_.loads[rank];
    std::size_t place = 0;
    for (std::size_t r = 0; r != shape().ranks; ++r) {
      std::int64_t const other = arrays_.loads[r];
      if (other > load || (other == load && r < rank)) ++place;
    }
    std::size_t first = 0;
    std::size_t last = 0;
    for (std::size_t e = 0; e != shape().experts; ++e) {
      if (!is_listed(e)) continue;
      if (home_[e] < rank) ++first;
      if (home_[e] <= rank) ++last;
    }
    arrays_.donors[place] = {static_cast<std::uint32_t>(rank), load - cap_, first, last};
  }
  OMNIBAL_HOST_DEVICE void place_room(std::size_t rank) const {
    std::int64_t const load = arrays_.loads[rank];
    std::size_t place = 0;
    for (std::size_t r = 0; r != shape().ranks; ++r) {
      std::int64_t const other = arrays_.loads[r];
      if (other < load || (other == load && r < rank)) ++place;
    }
    arrays_.rooms[place] = {static_cast<std::uint32_t>(rank), cap_ - load};
  }

  /// Runs the search, in one thread because each order of the donors follows from the order before
  /// it.
  OMNIBAL_HOST_DEVICE void search() const {
    omnibal::detail::spill_lists const lists{arrays_.donors, donors_, arrays_.rooms, rooms_,
                                             arrays_.experts};
    omnibal::detail::spill_bound bound(arrays_.bound_rooms, arrays_.bound_surpluses);
    std::size_t const fewest = bound(lists, cap_);
    omnibal::detail::order_rules const rules{tables_.slots, fewest, tables_.orders, tables_.seed};
    auto const found =
        omnibal::detail::search_orders(lists, rules, arrays_.filling, arrays_.search);
    *arrays_.outcome = {found, fewest};
  }

  /// Writes the copies by expert and rank, and the tokens that follow from the copies.
  OMNIBAL_HOST_DEVICE void write() {
    auto const found = arrays_.outcome->found;
    foreign_copy const* const copies =
        found.is_other ? arrays_.search.other_copies : arrays_.search.copies;
    std::size_t const fewest = arrays_.outcome->fewest_copies;
    foreign_copy* const out = tables_.copies + layer_ * shape().copies();
    block_.for_each(shape().copies(), [&](std::size_t c) {
      if (c >= found.count) {
        out[c] = {0, 0, 0};
        return;
      }
      foreign_copy const& own = copies[c];
      std::size_t place = 0;
      for (std::size_t i = 0; i != found.count; ++i) {
        foreign_copy const& other = copies[i];
        if (other.expert < own.expert || (other.expert == own.expert && other.rank < own.rank)) {
          ++place;
        }
      }
      out[place] = own;
    });
    block_.for_each(shape().experts, [&](std::size_t e) {
      std::int64_t left = tokens_[e];
      for (std::size_t c = 0; c != found.count; ++c) {
        if (copies[c].expert == e) left -= copies[c].tokens;
      }
      tables_.home_tokens[layer_ * shape().experts + e] = left;
    });
    std::int64_t const largest = block_.reduce(
        shape().ranks,
        [&](std::size_t r) {
          std::int64_t load = arrays_.loads[r];
          for (std::size_t c = 0; c != found.count; ++c) {
            foreign_copy const& copy = copies[c];
            if (copy.rank == r) load += copy.tokens;
            if (home_[copy.expert] == r) load -= copy.tokens;
          }
          tables_.rank_tokens[layer_ * shape().ranks + r] = load;
          return load;
        },
        take_larger{}, std::int64_t{0});
    block_.once([&] {
      tables_.copy_count[layer_] = static_cast<std::uint32_t>(found.count);
      tables_.largest[layer_] = largest;
      tables_.cap[layer_] = cap_;
      tables_.fewest_copies[layer_] = static_cast<std::uint32_t>(fewest);
      tables_.status[layer_] =
          omnibal::detail::spill_status(found.unplaced, tables_.slots, fewest, shape().ranks);
      tables_.is_proven[layer_] = found.unplaced == 0 && found.count == fewest ? 1 : 0;
    });
  }

  OMNIBAL_HOST_DEVICE void write_nothing() {
    block_.for_each(shape().copies(), [&](std::size_t c) {
      tables_.copies[layer_ * shape().copies() + c] = {0, 0, 0};
    });
    block_.for_each(shape().experts,
                    [&](std::size_t e) { tables_.home_tokens[layer_ * shape().experts + e] = 0; });
    block_.for_each(shape().ranks,
                    [&](std::size_t r) { tables_.rank_tokens[layer_ * shape().ranks + r] = 0; });
    block_.once([&] {
      tables_.copy_count[layer_] = 0;
      tables_.largest[layer_] = 0;
      tables_.cap[layer_] = 0;
      tables_.fewest_copies[layer_] = 0;
      tables_.status[layer_] = solve_status::not_found;
      tables_.is_proven[layer_] = 0;
    });
  }

  Block& block_;
  spill_tables const& tables_;
  spill_arrays arrays_;
  std::size_t layer_;
  std::int64_t const* tokens_;
  std::uint32_t const* home_;
  std::int64_t cap_ = 0;
  std::uint32_t donors_ = 0;
  std::uint32_t rooms_ = 0;
};

/// Plans the copies of one layer.
template <class Arrays>
struct spill_in_block {
  static constexpr bool is_compact = true;

  Arrays arrays;
  spill_tables tables;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t layer) const {
    auto const own = spill_arrays::take(arrays.of(block, layer), tables.shape);
    layer_spill<Block> spill(block, tables, layer, own);
    spill.run();
  }
};

/// Runs `gpu::spill_experts` on any backend.
template <kernel_backend Backend>
void spill_experts(Backend& backend, spill_tables const& tables, std::size_t layers) {
  std::size_t const bytes = arena_bytes(
      [&](arena_meter& arena) { static_cast<void>(spill_arrays::take(arena, tables.shape)); });
  for_each_block_with_arrays<spill_tuning::threads>(backend, layers, bytes,
                                                    [&]<class Arrays>(Arrays const& arrays) {
                                                      return spill_in_block<Arrays>{arrays, tables};
                                                    });
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
