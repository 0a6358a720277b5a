// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The parametric flow of `split_experts`, with a block for each layer.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// A tuning constant of the speed of `gpu::split_experts`, not tuned on a device; it does not
/// change the result.
struct split_tuning {
  static constexpr int threads = 256;
  /// The largest number of slots of a layer that a block can sort.
  static constexpr std::size_t most_slots = std::size_t{16} * threads;
};

/// The numbers of experts, ranks and slots of a layer.
struct split_shape {
  std::uint32_t experts;
  std::uint32_t ranks;
  /// The number of slots of a rank.
  std::uint32_t slots;

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t all_slots() const {
    return ranks * slots;
  }
};

/// The arrays of a block for one layer.
struct split_arrays {
  /// For each slot: its expert, the slots ordered by expert, and the tokens.
  std::uint32_t* expert;
  std::uint32_t* copies;
  std::int64_t* split;
  /// For each expert: its first copy, the place behind its last copy, and its place among the
  /// experts with a choice; then a list of the experts with a choice.
  std::uint32_t* first;
  std::uint32_t* last;
  std::uint32_t* choice;
  std::uint32_t* chosen;
  /// For each rank: its tokens, and the state of the search for paths.
  std::int64_t* loads;
  std::uint64_t* found;
  std::uint32_t* place;
  std::uint32_t* queue;
  std::uint32_t* from;
  std::uint32_t* to;
  std::uint32_t* order;

  template <array_arena Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static split_arrays take(Arena&& arena,
                                                             split_shape const& shape) {
    split_arrays result{};
    result.expert = arena.template take<std::uint32_t>(shape.all_slots());
    result.copies = arena.template take<std::uint32_t>(shape.all_slots());
    result.split = arena.template take<std::int64_t>(shape.all_slots());
    result.first = arena.template take<std::uint32_t>(shape.experts);
    result.last = arena.template take<std::uint32_t>(shape.experts);
    result.choice = arena.template take<std::uint32_t>(shape.experts);
    result.chosen = arena.template take<std::uint32_t>(shape.experts);
    result.loads = arena.template take<std::int64_t>(shape.ranks);
    result.found = arena.template take<std::uint64_t>(shape.ranks);
    result.place = arena.template take<std::uint32_t>(shape.ranks);
    result.queue = arena.template take<std::uint32_t>(shape.ranks);
    result.from = arena.template take<std::uint32_t>(shape.ranks);
    result.to = arena.template take<std::uint32_t>(shape.ranks);
    result.order = arena.template take<std::uint32_t>(shape.ranks);
    return result;
  }
};

/// The input and output arrays of all layers.
struct split_tables {
  split_shape shape;
  std::int64_t const* tokens;
  std::uint32_t const* slots;
  /// The tokens that each rank has in addition to the split tokens; null if there are none.
  std::int64_t const* first_tokens;
  std::int64_t* split;
  std::int64_t* rank_tokens;
  std::int64_t* largest;
  std::uint8_t* is_full;
  fault* faults;
};

/// Returns value / divisor, rounded up, without overflow.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::int64_t rounded_up_mean(std::int64_t value,
                                                                         std::uint32_t divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

/// The flow of one layer, with the steps and the order of `omnibal::detail::split_flow`.
template <class Block>
class layer_flow {
 public:
  OMNIBAL_HOST_DEVICE layer_flow(Block& block, split_tables const& tables, std::size_t layer,
                                 split_arrays const& arrays)
      : block_(block),
        shape_(tables.shape),
        arrays_(arrays),
        faults_(tables.faults),
        tokens_(tables.tokens + layer * shape_.experts),
        slots_(tables.slots + layer * shape_.all_slots()),
        first_tokens_(tables.first_tokens == nullptr ? nullptr
                                                     : tables.first_tokens + layer * shape_.ranks),
        is_full_(tables.is_full + layer * shape_.ranks) {}

  /// Splits the tokens of the layer. If the input is wrong, raises a fault and returns false.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool run() {
    if (count_negative(tokens_, shape_.experts) != 0) return false;
    if (first_tokens_ != nullptr && count_negative(first_tokens_, shape_.ranks) != 0) return false;
    std::uint64_t total = sum_of(tokens_, shape_.experts, 0);
    if (first_tokens_ != nullptr) total = sum_of(first_tokens_, shape_.ranks, total);
    if (total >> 63 != 0) return fail(fault::overflow);
    std::uint32_t const unknown = block_.reduce(
        shape_.all_slots(), [&](std::size_t s) { return slots_[s] < shape_.experts ? 0u : 1u; },
        add{}, 0u);
    if (unknown != 0) return fail(fault::unknown_index);
    if (!find_copies()) return fail(fault::unknown_index);
    find_loads();
    fill_all();
    largest_ = rounded_up_mean(static_cast<std::int64_t>(total), shape_.ranks);
    block_.for_each(shape_.ranks, [&](std::size_t r) { is_full_[r] = 1; });
    while (reach()) push();
    return true;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t largest() const { return largest_; }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;
  static constexpr std::uint64_t not_found = ~std::uint64_t{0};

  /// Returns the number of negative amounts, each of which raises a fault.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t count_negative(std::int64_t const* amounts,
                                                                 std::uint32_t count) const {
    return block_.reduce(
        count,
        [&](std::size_t i) {
          if (amounts[i] >= 0) return 0u;
          raise(faults_, fault::invalid_amount);
          return 1u;
        },
        add{}, 0u);
  }
  /// Returns `init` plus the sum of the amounts, or 2^64 - 1 if this sum is larger.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t sum_of(std::int64_t const* amounts,
                                                         std::uint32_t count,
                                                         std::uint64_t init) const {
    return block_.reduce(
        count, [&](std::size_t i) { return static_cast<std::uint64_t>(amounts[i]); },
        add_saturating{}, init);
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool fail(fault which) const {
    block_.once([&] { raise(faults_, which); });
    return false;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t rank_of(std::uint32_t slot) const {
    return slot / shape_.slots;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t copies_of(std::size_t expert) const {
    return arrays_.last[expert] - arrays_.first[expert];
  }

  /// Lists the slots of each expert, and assigns the tokens of experts with one copy. Returns false
  /// if an expert has tokens and no slot.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool find_copies() {
    split_arrays const& a = arrays_;
    std::uint32_t const n = shape_.all_slots();
    block_.for_each(n, [&](std::size_t s) { a.expert[s] = slots_[s]; });
    block_.sort_numbered(a.expert, a.copies, n);
    block_.for_each(shape_.experts, [&](std::size_t e) { a.first[e] = a.last[e] = 0; });
    block_.for_each(n, [&](std::size_t i) {
      std::uint32_t const expert = a.expert[i];
      if (i == 0 || a.expert[i - 1] != expert) a.first[expert] = static_cast<std::uint32_t>(i);
      if (i + 1 == n || a.expert[i + 1] != expert) {
        a.last[expert] = static_cast<std::uint32_t>(i + 1);
      }
    });
    std::uint32_t const missing = block_.reduce(
        shape_.experts,
        [&](std::size_t e) { return tokens_[e] != 0 && copies_of(e) == 0 ? 1u : 0u; }, add{}, 0u);
    if (missing != 0) return false;
    block_.for_each(n, [&](std::size_t s) {
      std::uint32_t const expert = slots_[s];
      a.expert[s] = expert;
      a.split[s] = copies_of(expert) == 1 ? tokens_[expert] : 0;
    });
    return true;
  }

  OMNIBAL_HOST_DEVICE void find_loads() {
    block_.reduce_each(
        shape_.ranks, shape_.slots,
        [&](std::size_t r, std::size_t j) { return arrays_.split[r * shape_.slots + j]; }, add{},
        std::int64_t{0},
        [&](std::size_t r, std::int64_t load) {
          arrays_.loads[r] = load + (first_tokens_ == nullptr ? 0 : first_tokens_[r]);
        });
  }

  /// Distributes the tokens of the experts with several copies, one expert after the other. One
  /// thread does this, because each expert depends on the loads after the experts before it.
  OMNIBAL_HOST_DEVICE void fill_all() {
    split_arrays const& a = arrays_;
    auto const has_choice = [&](std::size_t e) { return copies_of(e) > 1 && tokens_[e] != 0; };
    std::uint32_t const count = block_.exclusive_sum_of(
        shape_.experts, [&](std::size_t e) { return has_choice(e) ? 1u : 0u; }, a.choice);
    block_.for_each(shape_.experts, [&](std::size_t e) {
      if (has_choice(e)) a.chosen[a.choice[e]] = static_cast<std::uint32_t>(e);
    });
    block_.once([&] {
      for (std::uint32_t i = 0; i != count; ++i) fill(a.chosen[i], tokens_[a.chosen[i]]);
    });
  }

  /// Distributes `left` tokens of an expert over its copies, from the rank with the smallest load
  /// on. Afterwards the loads of the ranks that receive tokens differ by at most one.
  OMNIBAL_HOST_DEVICE void fill(std::uint32_t expert, std::int64_t left) const {
    std::uint32_t* const order = arrays_.order;
    auto const load = [&](std::uint32_t i) { return arrays_.loads[rank_of(order[i])]; };
    std::uint32_t count = 0;
    std::uint32_t before = none;
    for (std::uint32_t c = arrays_.first[expert]; c != arrays_.last[expert]; ++c) {
      std::uint32_t const slot = arrays_.copies[c];
      std::uint32_t const rank = rank_of(slot);
      // A second copy on a rank, which follows the first copy in the list, receives no tokens.
      if (rank == before) continue;
      before = rank;
      std::uint32_t place = count++;
      for (; place != 0 && arrays_.loads[rank] < load(place - 1); --place) {
        order[place] = order[place - 1];
      }
      order[place] = slot;
    }
    std::uint32_t used = 1;
    for (; used != count; ++used) {
      std::int64_t const rise = load(used) - load(used - 1);
      if (rise > (left - 1) / used) break;
      left -= rise * used;
    }
    std::int64_t const level = load(used - 1) + left / used;
    std::int64_t more = left % used;
    for (std::uint32_t i = 0; i != used; ++i) {
      std::int64_t& rank_load = arrays_.loads[rank_of(order[i])];
      std::int64_t const moved = level - rank_load + (more > 0 ? 1 : 0);
      --more;
      arrays_.split[order[i]] = moved;
      rank_load += moved;
    }
  }

  /// Searches breadth first from the ranks above `largest_` to ranks below it, and stops after the
  /// first level that contains such a rank. If there is no such rank, raises `largest_` and
  /// repeats. Returns false if no rank is above `largest_`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool reach() {
    split_arrays const& a = arrays_;
    for (;;) {
      auto const is_source = [&](std::size_t r) { return a.loads[r] > largest_; };
      begin_ = 0;
      end_ = block_.exclusive_sum_of(
          shape_.ranks, [&](std::size_t r) { return is_source(r) ? 1u : 0u; }, a.place);
      if (end_ == 0) return false;
      block_.for_each(shape_.ranks, [&](std::size_t r) {
        a.from[r] = none;
        if (is_source(r)) {
          a.queue[a.place[r]] = static_cast<std::uint32_t>(r);
        } else {
          a.place[r] = none;
        }
      });
      std::uint32_t targets = 0;
      while (begin_ != end_ && targets == 0) targets = expand();
      if (targets != 0) return true;
      std::int64_t const sum = block_.reduce(
          end_, [&](std::size_t i) { return a.loads[a.queue[i]]; }, add{}, std::int64_t{0});
      largest_ = rounded_up_mean(sum, end_);
      block_.for_each(shape_.ranks,
                      [&](std::size_t r) { is_full_[r] = a.place[r] != none ? 1 : 0; });
    }
  }

  /// Returns the first step by which the search can reach the rank of `slot`, or `not_found`. The
  /// upper half of a step is the place in the queue of the rank that tokens leave, and the lower
  /// half is their slot there.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t first_step_to(std::uint32_t slot) const {
    std::uint32_t const expert = arrays_.expert[slot];
    std::uint64_t result = not_found;
    for (std::uint32_t c = arrays_.first[expert]; c != arrays_.last[expert]; ++c) {
      std::uint32_t const from = arrays_.copies[c];
      std::uint32_t const place = arrays_.place[rank_of(from)];
      if (place == none || arrays_.split[from] == 0) continue;
      result = smaller_of(result, std::uint64_t{place} << 32 | from);
    }
    return result;
  }

  /// Reaches the next level of ranks, in the order in which a search with one thread finds them.
  /// Returns the number of these ranks whose load is below `largest_`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t expand() {
    split_arrays const& a = arrays_;
    block_.reduce_each(
        shape_.ranks, shape_.slots,
        [&](std::size_t r, std::size_t j) {
          if (a.place[r] != none) return not_found;
          return first_step_to(static_cast<std::uint32_t>(r * shape_.slots + j));
        },
        take_smaller{}, not_found, [&](std::size_t r, std::uint64_t step) { a.found[r] = step; });
    std::uint64_t const counts = block_.reduce(
        shape_.ranks,
        [&](std::size_t r) {
          if (a.found[r] == not_found) return std::uint64_t{0};
          return std::uint64_t{1} << 32 | (a.loads[r] < largest_ ? 1u : 0u);
        },
        add{}, std::uint64_t{0});
    block_.for_each(shape_.ranks, [&](std::size_t r) {
      std::uint64_t const step = a.found[r];
      if (step == not_found) return;
      std::uint32_t place = end_;
      for (std::uint32_t other = 0; other != shape_.ranks; ++other) {
        // One slot may lead to several ranks, in ascending order.
        if (a.found[other] < step || (a.found[other] == step && other < r)) ++place;
      }
      a.place[r] = place;
      a.queue[place] = static_cast<std::uint32_t>(r);
      a.from[r] = static_cast<std::uint32_t>(step);
      std::uint32_t copy = a.first[a.expert[a.from[r]]];
      while (rank_of(a.copies[copy]) != r) ++copy;
      a.to[r] = a.copies[copy];
    });
    begin_ = end_;
    end_ += static_cast<std::uint32_t>(counts >> 32);
    return static_cast<std::uint32_t>(counts);
  }

  /// Pushes tokens along the path to each rank of the last level whose load is below `largest_`.
  OMNIBAL_HOST_DEVICE void push() {
    block_.once([&] {
      for (std::uint32_t i = begin_; i != end_; ++i) {
        if (arrays_.loads[arrays_.queue[i]] < largest_) push_to(arrays_.queue[i]);
      }
    });
  }
  OMNIBAL_HOST_DEVICE void push_to(std::uint32_t target) const {
    split_arrays const& a = arrays_;
    std::int64_t amount = largest_ - a.loads[target];
    std::uint32_t source = target;
    for (; a.from[source] != none; source = rank_of(a.from[source])) {
      amount = smaller_of(amount, a.split[a.from[source]]);
    }
    amount = smaller_of(amount, a.loads[source] - largest_);
    for (std::uint32_t r = target; r != source; r = rank_of(a.from[r])) {
      a.split[a.from[r]] -= amount;
      a.split[a.to[r]] += amount;
    }
    a.loads[source] -= amount;
    a.loads[target] += amount;
  }

  Block& block_;
  split_shape shape_;
  split_arrays arrays_;
  fault* faults_;
  std::int64_t const* tokens_;
  std::uint32_t const* slots_;
  std::int64_t const* first_tokens_;
  std::uint8_t* is_full_;
  std::int64_t largest_ = 0;
  /// The places [begin_, end_) of the last level of the search in the queue.
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
};

/// Splits the tokens of one layer in shared memory.
struct split_in_block {
  static constexpr bool is_compact = true;

  split_tables tables;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t layer) const {
    split_shape const& shape = tables.shape;
    auto const arrays = split_arrays::take(block, shape);
    layer_flow<Block> flow(block, tables, layer, arrays);
    bool const is_split = flow.run();
    block.for_each(shape.all_slots(), [&](std::size_t s) {
      tables.split[layer * shape.all_slots() + s] = is_split ? arrays.split[s] : 0;
    });
    block.for_each(shape.ranks, [&](std::size_t r) {
      tables.rank_tokens[layer * shape.ranks + r] = is_split ? arrays.loads[r] : 0;
      if (!is_split) tables.is_full[layer * shape.ranks + r] = 0;
    });
    block.once([&] { tables.largest[layer] = is_split ? flow.largest() : 0; });
  }
};

/// Returns the number of bytes of the arrays of a block.
[[nodiscard]] inline std::size_t split_bytes(split_shape const& shape) {
  return arena_bytes(
      [&](arena_meter& arena) { static_cast<void>(split_arrays::take(arena, shape)); });
}

/// Runs `gpu::split_experts` on any backend. Precondition: the arrays of a block fit its shared
/// memory.
template <kernel_backend Backend>
void split_experts(Backend& backend, split_tables const& tables, std::size_t layers) {
  backend.template for_each_block<split_tuning::threads>(layers, split_bytes(tables.shape),
                                                         split_in_block{tables});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
