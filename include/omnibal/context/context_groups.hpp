// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of ranks of different sizes for the samples of one step.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/exact.hpp>
#include <omnibal/context/context_groups/filling.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/search.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// A functor (length, degree) to the bytes that a sample requires on each rank of its group.
template <class Memory>
concept context_bytes =
    std::regular_invocable<Memory const&, std::int64_t, std::uint32_t> && std::integral<
        std::remove_cvref_t<std::invoke_result_t<Memory const&, std::int64_t, std::uint32_t>>>;

/// The runs of neighboring ranks that a group may have.
enum class group_placement {
  /// Any run of neighboring ranks. Groups are on blocks in any case if the degrees are a chain of
  /// divisors. With nodes, the chain ends at the ranks of a node.
  anywhere,
  /// A block: a group of d ranks starts at a multiple of d. Then the communicators of ranks / d
  /// blocks for each degree suffice.
  blocks,
};

struct context_groups_options {
  /// The most bytes that the samples of a group may require on each of its ranks.
  std::int64_t capacity = std::numeric_limits<std::int64_t>::max();
  /// The degrees that groups may have, ascending. If the list is empty, these are all degrees of
  /// the table of costs. Degrees above the number of ranks are ignored. `powers_of_two` and
  /// `divisors` return such lists.
  std::vector<std::uint32_t> degrees{};
  /// The ranks of a node. Each group is inside a node or consists of whole nodes. With 0, the
  /// default, groups may be anywhere. The options of exchanges refuse 0; there 1 means that nodes
  /// do not matter.
  std::uint32_t ranks_per_node = 0;
  /// The ranks at which groups may start. Choose `blocks` if the trainer has only communicators of
  /// blocks.
  group_placement placement = group_placement::anywhere;
  /// The divisor of the number of micro-steps, at most 65,536. If necessary, empty micro-steps at
  /// the end complete the number.
  std::uint32_t multiple = 1;
  /// The effort of the search. `fast` tries about five plans. `normal` tries four more, and up to
  /// ten with levels of length. If the best of these is more than 3 % above the bound, `normal`
  /// also tries some plans with each doubling of the least degree of all samples. `thorough` tries
  /// 36 more. For at most twelve samples `normal` also visits up to 20,000 nodes of a search tree
  /// and `thorough` up to 10,000,000. Unless the tree has more nodes, the plan is then proven to be
  /// the best. No plan is worse than a plan of less effort.
  omnibal::effort effort = omnibal::effort::normal;
};

/// Returns the degrees 1, 2, 4, ... up to `most`.
[[nodiscard]] inline std::vector<std::uint32_t> powers_of_two(std::uint32_t most) {
  std::vector<std::uint32_t> result;
  for (std::uint64_t degree = 1; degree <= most; degree *= 2) {
    result.push_back(static_cast<std::uint32_t>(degree));
  }
  return result;
}

/// Returns the degrees that divide a number, such as the number of attention heads.
[[nodiscard]] inline std::vector<std::uint32_t> divisors(std::uint32_t number) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t degree = 1; degree <= number / degree; ++degree) {
    if (number % degree != 0) continue;
    result.push_back(degree);
    if (degree != number / degree) result.push_back(number / degree);
  }
  std::sort(result.begin(), result.end());
  return result;
}

/// The memory of `context_groups`, and its last result. A workspace that is reused for the same
/// number of samples and ranks avoids all allocations. It owns the result that a call returns by
/// reference.
class context_groups_workspace {
 public:
  context_groups_workspace() = default;
  /// Returns the result of the last call.
  [[nodiscard]] context_plan const& result() const& { return plan_; }
  void result() const&& = delete;

 private:
  friend struct context_groups_fn;

  detail::context_instance instance_;
  detail::context_bound bound_;
  detail::context_search search_;
  detail::context_exact exact_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> spare_words_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> place_of_;
  /// The sums of the lengths of each group, and of their squares.
  std::vector<double> tokens_;
  std::vector<double> squares_;
  context_plan plan_;
};

struct context_groups_fn {
  /// Plans micro-steps of groups of ranks for the samples of one training step. A long document
  /// runs on many ranks while short documents run on one rank each: `context_groups(lengths, ranks,
  /// cost, memory, {.capacity = bytes})`. All ranks compute the same plan from gathered lengths.
  ///
  /// - `lengths`: the lengths of all samples of the step, in tokens.
  /// - `cost`: the times of groups of each degree. Times need not fall as the degree grows.
  /// - `memory(length, degree)`: the bytes that a sample requires on each rank of its group. The
  ///   bytes of the samples of a group add up and never exceed `options.capacity`. The bytes must
  ///   not grow with the degree. All d ranks together must require no fewer bytes than one rank
  ///   would; the search also calls `memory(length, 1)`.
  ///
  /// Every sample is in exactly one group. The groups of a micro-step have disjoint ranks, and the
  /// ranks of a group are neighbors. The plan is the best of many fillings, longest samples first.
  /// The deadlines of the fillings are between the lower bound and the best time found. Some
  /// fillings hold all samples at once, and others have separate micro-steps for levels of length.
  /// The time of a step is the sum over its micro-steps of the time of the longest group, as if all
  /// ranks began each micro-step together. Ranks that wait only for the ranks of their group are
  /// never later.
  ///
  /// Groups are on blocks if the degrees in use are a chain: a group of d ranks starts at a
  /// multiple of d. In a chain each degree divides the next one, and each degree below
  /// `options.ranks_per_node` divides that number. The number of ranks is arbitrary. The groups of
  /// a micro-step, or of a node, then descend in degree. A trainer requires the communicators of
  /// ranks / d blocks for each degree d. If the degrees are no chain, groups are any neighboring
  /// ranks, unless `options.placement` is `blocks`. With `blocks` the search considers only plans
  /// on blocks, and `proven` refers to such plans.
  ///
  /// Preconditions: lengths are from 0 to 2^32 - 1; `options.ranks_per_node` divides `ranks`.
  /// Complexity: normally ten to twenty fillings, and about ten more for each doubling of the
  /// degree if these are far from the bound. A filling is nearly linear in samples and degrees in
  /// use. It is linear in samples times degrees if times jump up and down from degree to degree.
  /// With `blocks` and no chain, a filling also searches the free ranks of a micro-step for each
  /// sample. Memory: about 200 bytes for each sample and 600 for each degree in use, in the
  /// workspace if one is given. Determinism: run-to-run, and the same on all ranks that run the
  /// same program; `digest()` identifies the plan. Errors: `std::invalid_argument` if there are no
  /// ranks, if no degree may be used, if degrees do not ascend or the table lacks one, if a time is
  /// negative, zero or not finite, if a memory is negative or grows with the degree, and if a
  /// number violates a precondition; `std::length_error` if there are more than 2^32 - 1 samples;
  /// `std::overflow_error` if times exceed the range of numbers. A sample that fits on no degree is
  /// no error: the status says so. Sources: the problem is from FlexSP (Wang et al., ASPLOS 2025);
  /// malleable jobs are from Turek, Wolf and Yu, "Approximate algorithms for scheduling
  /// parallelizable tasks", 1992, and Ludwig and Tiwari, 1994.
  template <sample_range Lengths, context_bytes Memory>
    requires std::integral<std::ranges::range_value_t<Lengths const>>
  [[nodiscard]] context_plan operator()(Lengths const& lengths, std::size_t ranks,
                                        context_cost const& cost, Memory const& memory,
                                        context_groups_options const& options = {}) const {
    context_groups_workspace workspace;
    (*this)(lengths, ranks, cost, memory, options, workspace);
    return std::move(workspace.plan_);
  }

  /// Plans micro-steps in the memory of a workspace. A call allocates only memory beyond the memory
  /// of earlier calls. The workspace owns the plan.
  template <sample_range Lengths, context_bytes Memory>
  requires std::integral<std::ranges::range_value_t<Lengths const>> context_plan const& operator()(
      Lengths const& lengths, std::size_t ranks, context_cost const& cost, Memory const& memory,
      context_groups_options const& options, context_groups_workspace& workspace) const {
    std::size_t const count = std::ranges::size(lengths);
    detail::check_index_count(name, "lengths", count);
    check(ranks, cost, options);
    set_degrees(ranks, cost, options, workspace.instance_);
    workspace.words_.resize(count);
    auto const first = std::ranges::begin(lengths);
    for (std::size_t i = 0; i != count; ++i) {
      workspace.words_[i] = checked_length(i, first[static_cast<std::ptrdiff_t>(i)]);
    }
    auto const bytes = [&memory](std::int64_t length, std::uint32_t degree) {
      auto const measured = +memory(length, degree);
      if (std::cmp_less(measured, 0)) {
        detail::throw_memory(length, degree, measured, "must not be negative");
      }
      // The largest value, which is the default capacity, means no limit.
      return detail::saturate_cast<std::int64_t>(measured);
    };
    solve(workspace, bytes, options);
    return workspace.plan_;
  }

  /// Plans micro-steps in the memory of a workspace, with default options.
  template <sample_range Lengths, context_bytes Memory>
  requires std::integral<std::ranges::range_value_t<Lengths const>> context_plan const& operator()(
      Lengths const& lengths, std::size_t ranks, context_cost const& cost, Memory const& memory,
      context_groups_workspace& workspace) const {
    return (*this)(lengths, ranks, cost, memory, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "context_groups";
  static constexpr std::uint32_t max_named_degree = 65536;
  static constexpr std::uint32_t max_multiple = 65536;

  template <std::integral Length>
  static std::uint64_t checked_length(std::size_t index, Length given) {
    // Characters are numbers too, but only promoted characters can be compared.
    auto const length = +given;
    if (std::cmp_less(length, 0) || std::cmp_greater(length, detail::max_context_length)) {
      detail::throw_invalid(name, "lengths[" + detail::to_text(index) + "] is " +
                                      detail::to_text(length) + ", must be from 0 to " +
                                      detail::to_text(detail::max_context_length));
    }
    return static_cast<std::uint64_t>(length);
  }

  static void check(std::size_t ranks, context_cost const& cost,
                    context_groups_options const& options) {
    detail::check_positive(name, "ranks", ranks);
    detail::check_number(name, "ranks", ranks);
    detail::check_weight(name, "options.capacity", options.capacity);
    detail::check_positive(name, "options.multiple", options.multiple);
    if (options.multiple > max_multiple) {
      detail::throw_invalid(name, "options.multiple is " + detail::to_text(options.multiple) +
                                      ", must be at most " + detail::to_text(max_multiple));
    }
    if (options.ranks_per_node != 0 && ranks % options.ranks_per_node != 0) {
      detail::throw_invalid(name,
                            "options.ranks_per_node is " + detail::to_text(options.ranks_per_node) +
                                ", must divide the ranks, which are " + detail::to_text(ranks));
    }
    for (std::size_t i = 0; i != options.degrees.size(); ++i) {
      // In 64 bits the largest degree has a successor.
      std::uint64_t const least = i == 0 ? 1 : std::uint64_t{options.degrees[i - 1]} + 1;
      if (options.degrees[i] >= least) continue;
      detail::throw_invalid(name, "options.degrees[" + detail::to_text(i) + "] is " +
                                      detail::to_text(options.degrees[i]) + ", must be at least " +
                                      detail::to_text(least));
    }
    detail::check_weight(name, "cost.micro_step", cost.micro_step);
    if (cost.degrees.empty()) detail::throw_invalid(name, "cost.degrees is empty");
    for (std::size_t d = 0; d != std::min(ranks, cost.degrees.size()); ++d) {
      check_time(d, cost.degrees[d]);
    }
  }

  static void check_time(std::size_t row, degree_time const& time) {
    bool const is_valid = detail::is_valid_weight(time.fixed) &&
                          detail::is_valid_weight(time.linear) &&
                          detail::is_valid_weight(time.quadratic);
    if (is_valid && (time.fixed > 0 || time.linear > 0 || time.quadratic > 0)) return;
    detail::throw_invalid(
        name, "cost.degrees[" + detail::to_text(row) + "] is " +
                  detail::list_text(std::array{time.fixed, time.linear, time.quadratic}) +
                  (is_valid ? ", must not be zero" : ", must be finite and not negative"));
  }

  /// Finds the degrees that may be used, and the facts that follow from the number of ranks.
  static void set_degrees(std::size_t ranks, context_cost const& cost,
                          context_groups_options const& options,
                          detail::context_instance& instance) {
    instance.ranks = static_cast<std::uint32_t>(ranks);
    // Without nodes each rank is a node, and every group consists of whole nodes.
    instance.ranks_per_node = std::max<std::uint32_t>(1, options.ranks_per_node);
    instance.multiple = options.multiple;
    instance.capacity = options.capacity;
    instance.micro_step = cost.micro_step;
    instance.degrees.clear();
    auto const add = [&](std::uint32_t degree) {
      if (degree > ranks) return;
      if (degree > instance.ranks_per_node && degree % instance.ranks_per_node != 0) return;
      if (degree > cost.degrees.size()) {
        detail::throw_invalid(name, "options.degrees has " + detail::to_text(degree) +
                                        ", and cost.degrees has times up to degree " +
                                        detail::to_text(cost.degrees.size()));
      }
      instance.degrees.push_back({degree, cost.degrees[degree - 1]});
    };
    if (options.degrees.empty()) {
      auto const last = static_cast<std::uint32_t>(std::min(ranks, cost.degrees.size()));
      for (std::uint32_t degree = 1; degree <= last; ++degree) add(degree);
    }
    for (std::uint32_t const degree : options.degrees) add(degree);
    if (instance.degrees.empty()) {
      detail::throw_invalid(name,
                            "options.degrees is " + detail::list_text(options.degrees) +
                                ", must have a degree that " + detail::to_text(ranks) + " ranks" +
                                (options.ranks_per_node == 0
                                     ? ""
                                     : " in nodes of " + detail::to_text(options.ranks_per_node)) +
                                " allow");
    }
    instance.min_fixed = std::numeric_limits<double>::infinity();
    for (auto const& degree : instance.degrees) {
      instance.min_fixed = std::min(instance.min_fixed, degree.time.fixed);
    }
    for (auto& degree : instance.degrees) degree.time.fixed -= instance.min_fixed;
    instance.find_runs();
    instance.is_chain = instance.find_chain();
    instance.must_find_blocks = options.placement == group_placement::blocks && !instance.is_chain;
  }

  static void solve(context_groups_workspace& workspace, detail::context_memory memory,
                    context_groups_options const& options) {
    context_plan& plan = workspace.plan_;
    clear(plan);
    if (!sort(workspace, memory)) return;
    if (workspace.instance_.samples.empty()) {
      plan.proven = true;
      return;
    }
    plan.lower_bound = workspace.bound_(workspace.instance_, memory);
    if (!(plan.lower_bound <= std::numeric_limits<double>::max())) {
      detail::throw_overflow(name, "the time of all samples");
    }
    constexpr std::uint64_t nodes[] = {0, 20'000, 10'000'000};
    auto const level = static_cast<std::size_t>(options.effort);
    auto const& filled = workspace.search_(workspace.instance_, workspace.bound_, memory,
                                           plan.lower_bound, options.effort);
    if (workspace.instance_.samples.size() > detail::context_exact::max_samples ||
        nodes[level] == 0) {
      write(workspace, filled);
      return;
    }
    auto& exact = workspace.exact_;
    bool const is_whole =
        exact(workspace.instance_, workspace.bound_, memory, filled.makespan(), nodes[level]);
    if (exact.has_found()) {
      write(workspace, exact);
    } else {
      write(workspace, filled);
    }
    if (!is_whole) return;
    plan.lower_bound = plan.makespan;
    plan.proven = true;
  }

  static void clear(context_plan& plan) {
    plan.status = solve_status::solved;
    plan.micro_step_offsets.assign(1, 0);
    plan.groups.clear();
    plan.samples.clear();
    plan.makespan = plan.lower_bound = 0;
    plan.proven = false;
    plan.idle_ranks = 0;
    plan.sample = plan.min_degree = 0;
  }

  /// Sorts samples by descending length, with the least degree on which each fits. Returns false if
  /// one fits on no degree.
  static bool sort(context_groups_workspace& workspace, detail::context_memory memory) {
    auto& words = workspace.words_;
    auto& samples = workspace.instance_.samples;
    std::uint64_t const longest = words.empty() ? 0 : *std::max_element(words.begin(), words.end());
    for (std::size_t i = 0; i != words.size(); ++i) words[i] = (longest - words[i]) << 32 | i;
    detail::radix_sort(words, workspace.spare_words_, 32,
                       static_cast<unsigned>(std::bit_width(longest)));
    samples.clear();
    samples.reserve(words.size());
    for (std::uint64_t const word : words) {
      auto const length = static_cast<std::int64_t>(longest - (word >> 32));
      auto const tokens = static_cast<double>(length);
      samples.push_back({.length = length,
                         .tokens = tokens,
                         .squares = tokens * tokens,
                         .index = static_cast<std::uint32_t>(word)});
    }
    context_plan& plan = workspace.plan_;
    for (auto& sample : samples) {
      if (set_least(workspace.instance_, memory, sample)) continue;
      if (plan.status == solve_status::solved || sample.index < plan.sample) {
        plan.sample = sample.index;
        plan.min_degree = min_degree(workspace.instance_, memory, sample.length);
      }
      plan.status = solve_status::infeasible;
    }
    return plan.status == solve_status::solved;
  }

  static bool set_least(detail::context_instance const& instance, detail::context_memory memory,
                        detail::context_sample& sample) {
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t d = 0; d != instance.degrees.size(); ++d) {
      std::uint32_t const degree = instance.degrees[d].ranks;
      std::int64_t const bytes = memory(sample.length, degree);
      if (bytes > before) {
        detail::throw_memory(
            sample.length, degree, bytes,
            "must not be above that with fewer ranks, which is " + detail::to_text(before));
      }
      if (bytes <= instance.capacity) {
        sample.least = d;
        return true;
      }
      before = bytes;
    }
    return false;
  }

  /// The least degree, allowed or not, on which a length fits; 0 if it fits on none.
  static std::uint32_t min_degree(detail::context_instance const& instance,
                                  detail::context_memory memory, std::int64_t length) {
    for (std::uint32_t degree = 1; degree <= max_named_degree; ++degree) {
      if (memory(length, degree) <= instance.capacity) return degree;
    }
    return 0;
  }

  /// Writes the plan: groups by micro-step and rank, samples ascending.
  template <class Filled>
  static void write(context_groups_workspace& workspace, Filled const& filled) {
    detail::context_instance const& instance = workspace.instance_;
    auto const& groups = filled.groups();
    context_plan& plan = workspace.plan_;
    auto& order = workspace.order_;
    order.resize(groups.size());
    for (std::uint32_t g = 0; g != groups.size(); ++g) order[g] = g;
    std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
      auto const place = [&](detail::filled_group const& group) {
        return std::tuple(group.micro_step, part_of(instance, group),
                          instance.is_chain ? ~group.degree : 0, group.first_rank);
      };
      return place(groups[left]) < place(groups[right]);
    });
    write_samples(workspace, filled.group_of(), groups.size());
    for (std::size_t g = 0; g != order.size(); ++g) {
      detail::filled_group const& group = groups[order[g]];
      while (plan.micro_steps() <= group.micro_step) {
        plan.micro_step_offsets.push_back(static_cast<std::uint32_t>(g));
      }
      ++plan.micro_step_offsets.back();
      detail::context_degree const& degree = instance.degrees[group.degree];
      std::uint32_t first_rank = group.first_rank;
      if (instance.is_chain) {
        // The group starts behind the group before, or at the start of its node.
        std::uint32_t const part = part_of(instance, group);
        bool const is_first = g == 0 || groups[order[g - 1]].micro_step != group.micro_step ||
                              part_of(instance, groups[order[g - 1]]) != part;
        first_rank = is_first ? part * instance.ranks_per_node
                              : plan.groups.back().first_rank + plan.groups.back().degree;
      }
      plan.groups.push_back(
          {first_rank, degree.ranks,
           degree.time(workspace.tokens_[g], workspace.squares_[g]) + instance.min_fixed});
    }
    std::uint64_t const steps = instance.rounded(filled.micro_steps());
    plan.micro_step_offsets.resize(steps + 1, plan.micro_step_offsets.back());
    plan.idle_ranks = steps * instance.ranks;
    for (std::size_t k = 0; k != steps; ++k) {
      double longest = 0;
      for (context_group const& group : plan.groups_of(k)) {
        longest = std::max(longest, group.time);
        plan.idle_ranks -= group.degree;
      }
      plan.makespan += instance.micro_step + longest;
    }
    // Rounding puts the bound below the true bound.
    double const gap = std::abs(plan.makespan - plan.lower_bound);
    plan.proven = gap <= 16 * detail::context_rounding * plan.makespan;
    if (plan.proven) plan.lower_bound = plan.makespan;
  }

  /// The part of the ranks in which the order of groups is free: the node that contains the group.
  /// All whole nodes with groups are at the front and count as part 0. Without nodes the part is 0.
  static std::uint32_t part_of(detail::context_instance const& instance,
                               detail::filled_group const& group) {
    if (!instance.is_chain) return 0;
    bool const is_within = instance.degrees[group.degree].ranks < instance.ranks_per_node;
    return is_within ? group.first_rank / instance.ranks_per_node : 0;
  }

  /// Writes the samples of each group in the order of the plan, and the sums of their lengths.
  static void write_samples(context_groups_workspace& workspace,
                            std::vector<std::uint32_t> const& group_of, std::size_t groups) {
    auto const& samples = workspace.instance_.samples;
    auto& place_of = workspace.place_of_;
    place_of.resize(groups);
    for (std::uint32_t g = 0; g != groups; ++g) place_of[workspace.order_[g]] = g;
    workspace.tokens_.assign(groups, 0);
    workspace.squares_.assign(groups, 0);
    // Sorts by group, then by sample.
    auto& words = workspace.words_;
    for (std::size_t i = 0; i != samples.size(); ++i) {
      std::uint32_t const group = place_of[group_of[i]];
      workspace.tokens_[group] += samples[i].tokens;
      workspace.squares_[group] += samples[i].squares;
      words[samples[i].index] = std::uint64_t{group} << 32 | samples[i].index;
    }
    detail::radix_sort(words, workspace.spare_words_, 32,
                       static_cast<unsigned>(std::bit_width(groups)));
    grouping& lists = workspace.plan_.samples;
    std::size_t closed = 0;
    for (std::uint64_t const word : words) {
      for (; closed != word >> 32; ++closed) lists.close();
      lists.push(static_cast<std::uint32_t>(word));
    }
    if (!words.empty()) lists.close();
  }
};

/// Plans groups of ranks for the samples of one step; see `context_groups_fn`.
inline constexpr context_groups_fn context_groups{};

}  // namespace omnibal::inline v0
