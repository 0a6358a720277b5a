// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Steps in device code: costs, samples by descending cost, dealt places and parts.

#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/detail/bits.hpp>
#include <omnibal/detail/conversions.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// The samples of one step.
struct step_range {
  std::uint32_t first;
  std::uint32_t size;
};

/// The costs of steps; see `cost_steps`.
class step_table {
 public:
  step_table(cost_steps const& steps, std::int64_t const* costs, fault* faults)
      : costs_(costs),
        offsets_(steps.offsets.data()),
        count_(static_cast<std::uint32_t>(steps.costs.size())),
        steps_(static_cast<std::uint32_t>(steps.step_count)),
        largest_(static_cast<std::uint32_t>(steps.largest_step)),
        faults_(faults) {}

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t steps() const { return steps_; }
  /// Returns the largest number of samples of a step.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t largest() const { return largest_; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE fault* faults() const { return faults_; }

  /// Returns the samples of a step; none, and a fault, if its offsets are wrong or it has too many.
  [[nodiscard]] OMNIBAL_HOST_DEVICE step_range operator[](std::size_t step) const {
    if (offsets_ == nullptr) return {0, count_};
    std::uint32_t const first = offsets_[step];
    std::uint32_t const last = offsets_[step + 1];
    if (last < first || last > count_ || (step == 0 && first != 0)) {
      raise(faults_, fault::unknown_index);
      return {0, 0};
    }
    if (last - first > largest_) {
      raise(faults_, fault::no_room);
      return {first, 0};
    }
    return {first, last - first};
  }

  /// Returns the step of a sample, or the number of steps if the sample is behind the last one.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t step_of(std::size_t sample) const {
    if (offsets_ == nullptr) return 0;
    return first_false(std::uint32_t{0}, steps_,
                       [&](std::uint32_t step) { return offsets_[step + 1] <= sample; });
  }

  /// Returns the given cost of a sample, unchecked.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t given_cost(std::size_t sample) const {
    return static_cast<std::uint64_t>(costs_[sample]);
  }
  /// Returns a cost; zero, and a fault, if it is negative.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t checked(std::uint64_t given) const {
    if (given <= 0x7fffffffffffffffu) return given;
    raise(faults_, fault::invalid_amount);
    return 0;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t cost(std::size_t sample) const {
    return checked(given_cost(sample));
  }

 private:
  std::int64_t const* costs_;
  std::uint32_t const* offsets_;
  std::uint32_t count_;
  std::uint32_t steps_;
  std::uint32_t largest_;
  fault* faults_;
};

template <class T>
struct widen_costs {
  T const* given;
  std::int64_t* out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const { out[i] = given[i]; }
};

/// The whole numbers of the host's `measure_costs` for each step.
struct round_costs {
  step_table table;
  float const* given;
  std::int64_t* out;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    step_range const range = table[step];
    auto const cost = [&](std::size_t i) {
      return checked_weight<double>(given[range.first + i], table.faults());
    };
    double total = block.reduce(range.size, cost, add{}, 0.0);
    // Only the power of two of the sum matters, and the order of additions seldom decides it.
    int exponent = 0;
    double const mantissa = std::frexp(total, &exponent);
    double const doubt = 0x1p-51 * range.size;
    if (mantissa < 0.5 + doubt || mantissa > 1.0 - doubt) {
      auto const in_order = [&](std::size_t) {
        double sum = 0.0;
        for (std::uint32_t i = 0; i != range.size; ++i) sum += cost(i);
        return sum;
      };
      total = block.reduce(1, in_order, add{}, 0.0);
    }
    auto const whole = omnibal::detail::fixed_point::by_power_of_two(total);
    block.for_each(range.size, [&](std::size_t i) { out[range.first + i] = whole(cost(i)); });
  }
};

/// Returns the steps with whole costs.
template <class Backend>
[[nodiscard]] step_table with_whole_costs(Backend& backend, cost_steps const& steps,
                                          fault* faults) {
  auto const measure = [&]<class T>(device_span<T const> given) {
    if constexpr (std::same_as<T, std::int64_t>) {
      return step_table(steps, given.data(), faults);
    } else {
      auto* const costs = backend.template scratch<std::int64_t>(given.size());
      step_table const table(steps, costs, faults);
      if constexpr (std::floating_point<T>) {
        backend.template for_each_block<512>(steps.step_count, 0,
                                             round_costs{table, given.data(), costs});
      } else {
        backend.for_each(given.size(), widen_costs<T>{given.data(), costs});
      }
      return table;
    }
  };
  return std::visit(measure, static_cast<cost_span::variant const&>(steps.costs));
}

/// Returns true if the sum of `cost(i)` for all samples of a step is an integer of 63 bits. Raises
/// a fault otherwise.
template <class Block, class Cost>
OMNIBAL_HOST_DEVICE bool check_sum_of(Block& block, step_table const& table,
                                      step_range const& range, Cost const& cost) {
  std::uint64_t const sum = block.reduce(range.size, cost, add_saturating{}, std::uint64_t{0});
  if (sum > largest_sum) raise(table.faults(), fault::overflow);
  return sum <= largest_sum;
}

/// Returns the key of a cost in descending order: the largest cost has the least key.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t descending(std::uint64_t cost) {
  return largest_sum - cost;
}

/// Writes the costs of one step to `costs`, from the largest to the smallest, as a block. `samples`
/// receives for each cost the number of the sample within the step, which also orders equal costs.
/// If the sum of the costs is above the largest integer, which is a fault, all costs are zero.
/// Returns the number of costs that are not zero. Precondition: the step has no more samples than
/// fit the shared memory with these arrays.
template <class Block>
[[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t write_in_order(Block& block,
                                                               step_table const& table,
                                                               step_range const& range,
                                                               std::uint64_t* costs,
                                                               std::uint32_t* samples) {
  // A block of 512 threads sorts at most 16 samples for each thread.
  static_assert(max_shared_bytes / (sizeof(*costs) + sizeof(*samples)) <= 16 * 512);
  block.for_each_load(range.size,
                      [&](std::size_t i) { costs[i] = table.given_cost(range.first + i); });
  bool const is_sum_valid = check_sum_of(block, table, range, [&](std::size_t i) {
    std::uint64_t const cost = table.checked(costs[i]);
    costs[i] = descending(cost);
    return cost;
  });
  if (!is_sum_valid) {
    block.for_each(range.size, [&](std::size_t i) { costs[i] = descending(0); });
  }
  block.sort_numbered(costs, samples, range.size);
  return block.reduce(
      range.size,
      [&](std::size_t i) {
        costs[i] = descending(costs[i]);
        return costs[i] != 0 ? std::uint32_t{1} : std::uint32_t{0};
      },
      add{}, std::uint32_t{0});
}

/// The samples of all steps in this order.
struct ordered_samples {
  std::uint64_t* costs;
  /// Indices into the costs of all steps.
  std::uint32_t* samples;
};

struct write_cost_keys {
  step_table table;
  ordered_samples out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    bool const is_in_step = table.step_of(i) != table.steps();
    out.costs[i] = descending(is_in_step ? table.cost(i) : 0);
    out.samples[i] = static_cast<std::uint32_t>(i);
  }
};

struct write_step_keys {
  step_table table;
  std::uint32_t const* samples;
  std::uint32_t* keys;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t place) const {
    keys[place] = table.step_of(samples[place]);
  }
};

struct restore_costs {
  step_table table;
  ordered_samples out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t place) const {
    std::uint32_t const sample = out.samples[place];
    bool const is_in_step = table.step_of(sample) != table.steps();
    out.costs[place] = is_in_step ? table.cost(sample) : 0;
  }
};

/// Sorts the samples of all steps by sorts of all samples at once. The samples of step s are in the
/// places [offsets[s], offsets[s + 1]). The sums of costs are not checked.
template <class Backend>
[[nodiscard]] ordered_samples sort_all_costs(Backend& backend, cost_steps const& steps,
                                             step_table const& table) {
  constexpr int cost_bits = 63;
  std::size_t const count = steps.costs.size();
  ordered_samples const result{backend.template scratch<std::uint64_t>(count),
                               backend.template scratch<std::uint32_t>(count)};
  backend.for_each(count, write_cost_keys{table, result});
  backend.sort_pairs(result.costs, result.samples, count, 0, cost_bits);
  if (!steps.offsets.empty()) {
    // The costs are found again from their samples.
    auto* const keys = reinterpret_cast<std::uint32_t*>(result.costs);
    backend.for_each(count, write_step_keys{table, result.samples, keys});
    backend.sort_pairs(keys, result.samples, count, 0,
                       omnibal::detail::bit_width(steps.step_count));
  }
  backend.for_each(count, restore_costs{table, result});
  return result;
}

/// A `part_span` as device code sees it.
struct part_writer {
  part_writer(cost_steps const& all, std::size_t parts_of_step, part_span const& out)
      : offsets(out.groups.offsets.data()),
        items(out.groups.items.data()),
        group_count(out.groups.group_count.data()),
        part_of(out.part_of.data()),
        steps(static_cast<std::uint32_t>(all.step_count)),
        parts(static_cast<std::uint32_t>(parts_of_step)) {}

  /// Makes a sample the item at a position.
  OMNIBAL_HOST_DEVICE void put(std::size_t position, std::uint32_t sample,
                               std::uint32_t part) const {
    items[position] = sample;
    name_part(sample, part);
  }
  /// Records the part of a sample without writing the item.
  OMNIBAL_HOST_DEVICE void name_part(std::uint32_t sample, std::uint32_t part) const {
    if (part_of != nullptr) part_of[sample] = part;
  }

  /// Writes the position of the first item of a part.
  OMNIBAL_HOST_DEVICE void begin(std::size_t step, std::size_t part, std::uint32_t position) const {
    offsets[step * parts + part] = position;
  }
  /// Writes the end of all groups, which the last step knows.
  OMNIBAL_HOST_DEVICE void end(std::size_t step, step_range const& range) const {
    if (step + 1 == steps) finish(range.first + range.size);
  }
  OMNIBAL_HOST_DEVICE void finish(std::uint32_t item_count) const {
    offsets[std::size_t{steps} * parts] = item_count;
    if (group_count != nullptr) *group_count = steps * parts;
  }

  std::uint32_t* offsets;
  std::uint32_t* items;
  std::uint32_t* group_count;
  std::uint32_t* part_of;
  std::uint32_t steps;
  std::uint32_t parts;
};

/// The position of each sample of a step after dealing, by arithmetic without a search.
class dealing {
 public:
  OMNIBAL_HOST_DEVICE dealing(std::uint32_t samples, std::uint32_t parts)
      : parts_(parts), rounds_(samples / parts), rest_(samples % parts) {}

  /// Returns the part of the sample at a place of the order.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t part(std::uint32_t place) const {
    std::uint32_t const turn = place % parts_;
    return place / parts_ % 2 == 0 ? turn : parts_ - 1 - turn;
  }

  /// Returns the number of samples in the parts before this one, or of all samples for `part ==
  /// parts`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t offset(std::uint32_t part) const {
    std::uint32_t const others = parts_ - rest_;
    std::uint32_t const more = rounds_ % 2 == 0 ? smaller_of(part, rest_)
                               : part > others  ? part - others
                                                : 0;
    return part * rounds_ + more;
  }

  /// Returns the position of this sample among the samples of all parts.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t position(std::uint32_t place) const {
    return offset(part(place)) + place / parts_;
  }

 private:
  std::uint32_t parts_;
  std::uint32_t rounds_;
  std::uint32_t rest_;
};

/// Writes the result if there are no steps.
struct write_no_steps {
  part_writer out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t) const { out.finish(0); }
};

/// Writes the positions of the parts of a step: part p begins `first(p)` behind the step's own
/// position.
template <class Block, class First>
OMNIBAL_HOST_DEVICE void write_offsets(Block& block, part_writer const& out, std::size_t step,
                                       step_range const& range, First const& first) {
  block.for_each(out.parts, [&](std::size_t part) {
    out.begin(step, part, range.first + first(static_cast<std::uint32_t>(part)));
  });
  block.once([&] { out.end(step, range); });
}

/// Writes the positions of the parts from `counts`, which has the number of samples of each part.
/// The contents of `counts` are lost.
template <class Block>
OMNIBAL_HOST_DEVICE void write_part_offsets(Block& block, part_writer const& out, std::size_t step,
                                            step_range const& range, std::uint32_t* counts) {
  static_cast<void>(block.exclusive_sum(counts, out.parts));
  write_offsets(block, out, step, range, [&](std::uint32_t part) { return counts[part]; });
}

/// Writes the samples of the parts of a step, sorted by part: `parts[i]` is the part of sample i of
/// the step. `samples` is memory for the same number of samples.
template <class Block, class Part>
OMNIBAL_HOST_DEVICE void write_parts_in_block(Block& block, part_writer const& out,
                                              step_range const& range, Part* parts,
                                              std::uint32_t* samples) {
  block.sort_numbered(parts, samples, range.size);
  block.for_each(range.size, [&](std::size_t i) {
    out.put(range.first + i, range.first + samples[i], static_cast<std::uint32_t>(parts[i]));
  });
}

/// Records for each sample the step and its part.
struct name_parts {
  step_table table;
  part_writer out;
  std::uint32_t const* samples;
  std::uint32_t const* part_of_place;
  std::uint32_t* groups;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t place) const {
    std::uint32_t const sample = samples[place];
    std::uint32_t const step = table.step_of(sample);
    bool const is_in_step = step != table.steps() && table[step].size != 0;
    if (is_in_step) out.name_part(sample, part_of_place[place]);
    groups[sample] =
        is_in_step ? step * out.parts + part_of_place[place] : table.steps() * out.parts;
    out.items[sample] = sample;
  }
};

/// Writes the samples of the parts of all steps by a sort of all samples. `samples[place]` is an
/// index into all costs, and `groups` is memory for the same number of keys. The offsets of the
/// parts are written elsewhere.
template <class Backend>
void write_parts_of_places(Backend& backend, cost_steps const& steps, step_table const& table,
                           part_writer const& out, std::uint32_t const* samples,
                           std::uint32_t const* part_of_place, std::uint32_t* groups) {
  std::size_t const count = steps.costs.size();
  backend.for_each(count, name_parts{table, out, samples, part_of_place, groups});
  backend.sort_pairs(groups, out.items, count, 0,
                     omnibal::detail::bit_width(std::size_t{out.steps} * out.parts));
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
