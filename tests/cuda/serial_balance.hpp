// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the balancers of cuda/ on one host thread, in every order.

#include "support/serial_backend.hpp"

#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace test {

using cost_list = std::vector<std::int64_t>;

/// The costs of steps one after the other, as the device takes them.
struct step_costs {
  cost_list costs;
  std::vector<std::uint32_t> offsets{0};
  std::size_t largest = 0;

  step_costs() = default;
  explicit step_costs(std::vector<cost_list> const& lists) {
    for (cost_list const& list : lists) add(list);
  }

  void add(cost_list const& list) {
    costs.insert(costs.end(), list.begin(), list.end());
    offsets.push_back(static_cast<std::uint32_t>(costs.size()));
    largest = std::max(largest, list.size());
  }

  /// Costs behind the last step, which are not to be looked at.
  void pad(std::size_t size) { costs.resize(std::max(size, costs.size()), -7); }

  /// Whether the costs of a step sum to more than their type holds.
  [[nodiscard]] bool overflows() const {
    for (std::size_t s = 0; s != steps(); ++s) {
      std::int64_t sum = 0;
      for (std::int64_t const cost : of_step(s)) {
        if (__builtin_add_overflow(sum, cost, &sum)) return true;
      }
    }
    return false;
  }

  [[nodiscard]] std::size_t steps() const { return offsets.size() - 1; }
  [[nodiscard]] cost_list of_step(std::size_t step) const {
    return {costs.begin() + offsets[step], costs.begin() + offsets[step + 1]};
  }
  [[nodiscard]] omnibal::gpu::cost_steps view() const { return view(largest); }
  /// With another bound on the largest step than the true one.
  [[nodiscard]] omnibal::gpu::cost_steps view(std::size_t bound) const {
    return {{costs.data(), costs.size()}, {offsets.data(), offsets.size()}, bound};
  }
};

/// What a balancer has written, in plain arrays.
struct written_parts {
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint32_t> items;
  std::vector<std::uint32_t> part_of;
  std::uint32_t group_count = 0;
  omnibal::gpu::fault faults = omnibal::gpu::fault::none;
  std::size_t launches = 0;

  [[nodiscard]] omnibal::gpu::part_span span() {
    return {{{offsets.data(), offsets.size()}, {items.data(), items.size()}, {&group_count, 1}},
            {part_of.data(), part_of.size()},
            {&faults, 1}};
  }
  [[nodiscard]] omnibal::grouping_view view() const {
    return {offsets.data(), items.data(), offsets.size() - 1};
  }
  /// Equal but for how it was made.
  [[nodiscard]] bool same(written_parts const& other) const {
    return offsets == other.offsets && items == other.items && part_of == other.part_of &&
           group_count == other.group_count && faults == other.faults;
  }
};

/// A value that no algorithm writes.
inline constexpr std::uint32_t untouched = 0xabababab;

/// Arrays for the parts of steps.
inline written_parts room_for(omnibal::gpu::cost_steps const& steps, std::size_t parts) {
  written_parts result;
  result.offsets.assign(steps.step_count * parts + 1, untouched);
  result.items.assign(steps.costs.size(), untouched);
  result.part_of.assign(steps.costs.size(), untouched);
  return result;
}

template <class Algorithm>
written_parts run_once(test::serial_backend& backend, omnibal::gpu::cost_steps const& steps,
                       std::size_t parts, Algorithm const& algorithm) {
  written_parts result = room_for(steps, parts);
  algorithm(backend, steps, parts, result.span());
  result.launches = backend.launches();
  return result;
}

/// What `algorithm(backend, steps, parts, out)` writes. `fault_text` says what is wrong where the
/// orders of the backend differ or the scratch is not what was measured.
template <class Algorithm>
written_parts run_serially(omnibal::gpu::cost_steps const& steps, std::size_t parts,
                           Algorithm const& algorithm, std::string& fault_text) {
  using test::serial_backend;
  using test::visit_order;
  serial_backend forward(visit_order::forward);
  written_parts const result = run_once(forward, steps, parts, algorithm);
  for (visit_order const order : {visit_order::backward, visit_order::shuffled}) {
    serial_backend other(order, 17 + parts);
    if (!run_once(other, steps, parts, algorithm).same(result)) {
      fault_text = "the order matters";
    }
  }
  omnibal::gpu::detail::scratch_meter meter;
  written_parts ignored = room_for(steps, parts);
  algorithm(meter, steps, parts, ignored.span());
  if (meter.scratch_bytes() != forward.scratch_bytes()) fault_text = "the scratch was not measured";
  return result;
}

/// Sample i is in part i / (samples / parts), or in the last one, each part from the back.
inline omnibal::grouping consecutive(cost_list const& costs, std::size_t parts) {
  omnibal::grouping result;
  for (std::size_t p = 0; p != parts; ++p) {
    for (std::size_t i = (p + 1) * costs.size() / parts; i-- != p * costs.size() / parts;) {
      result.push(static_cast<std::uint32_t>(i));
    }
    result.close();
  }
  return result;
}

/// All samples in one part.
inline omnibal::grouping in_last_part(cost_list const& costs, std::size_t parts) {
  omnibal::grouping result;
  for (std::size_t p = 1; p != parts; ++p) result.close();
  for (std::size_t i = 0; i != costs.size(); ++i) result.push(static_cast<std::uint32_t>(i));
  result.close();
  return result;
}

/// The parts of all steps that `start(costs, parts)` gives, as one grouping of all samples.
template <class Start>
omnibal::grouping start_of_all(step_costs const& steps, std::size_t parts, Start const& start) {
  omnibal::grouping result;
  for (std::size_t s = 0; s != steps.steps(); ++s) {
    auto const of_step = start(steps.of_step(s), parts);
    for (std::size_t part = 0; part != parts; ++part) {
      for (std::uint32_t const item : of_step[part]) result.push(item + steps.offsets[s]);
      result.close();
    }
  }
  return result;
}

/// The parts of one step, its samples numbered from zero.
inline omnibal::grouping parts_of_step(written_parts const& written, std::size_t step,
                                       std::size_t parts, std::uint32_t first) {
  omnibal::grouping result;
  for (std::size_t part = 0; part != parts; ++part) {
    for (std::uint32_t const item : written.view()[step * parts + part]) result.push(item - first);
    result.close();
  }
  return result;
}

/// What is wrong with parts that were written for these steps: `expected(costs of a step)` is what
/// the host makes. Empty where nothing is.
template <class Expected>
std::string differs_from_host(written_parts const& written, step_costs const& steps,
                              std::size_t parts, Expected const& expected) {
  using omnibal::gpu::fault;
  if (written.faults != fault::none) return "there is a fault";
  if (written.group_count != steps.steps() * parts) return "the number of groups";
  if (written.offsets.back() != steps.offsets.back()) return "the last offset";
  for (std::size_t s = 0; s != steps.steps(); ++s) {
    std::uint32_t const first = steps.offsets[s];
    omnibal::grouping const wanted = expected(steps.of_step(s));
    if (!(parts_of_step(written, s, parts, first) == wanted)) {
      return "step " + std::to_string(s) + " differs";
    }
    for (std::size_t part = 0; part != parts; ++part) {
      for (std::uint32_t const item : wanted[part]) {
        if (written.part_of[first + item] != part) return "part_of of step " + std::to_string(s);
      }
    }
  }
  return "";
}

}  // namespace test
