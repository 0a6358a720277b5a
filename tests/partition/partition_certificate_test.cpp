// SPDX-License-Identifier: Apache-2.0
// What partitions prove, compared with all cuts of short chains.

#include "all_cuts.hpp"
#include "certificate.hpp"

#include <omnibal/detail/function_ref.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::empty_stages;
using omnibal::partition_constraints;
using omnibal::solve_status;
using omnibal::detail::int128;
using test::cuts;
using test::number_between;
using test::weight_source;

template <class T>
using working = omnibal::detail::working_weight<T>;
/// Integers without an overflow, floating-point numbers as they are documented to be added.
template <class T>
using exact = std::conditional_t<std::floating_point<T>, T, int128>;

constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();

/// The largest weight of which `terms` add up without a loss.
template <class T>
constexpr std::int64_t max_weight(std::int64_t terms) {
  if constexpr (std::same_as<T, float>) return std::int64_t{1} << 24;
  if constexpr (std::same_as<T, double>) return std::int64_t{1} << 46;
  if constexpr (std::same_as<T, std::int64_t>) return max_int64 / terms;
  return static_cast<std::int64_t>(std::numeric_limits<T>::max());
}

/// Numbers for every stage and run of layers.
template <class T>
class stage_table {
 public:
  stage_table() = default;
  template <class Draw>
  stage_table(std::size_t stages, std::size_t layers, Draw const& draw) : side_(layers + 1) {
    values_.resize(stages * side_ * side_);
    for (T& value : values_) value = draw();
  }
  [[nodiscard]] T operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    return values_[(stage * side_ + first) * side_ + last];
  }

 private:
  std::size_t side_ = 0;
  std::vector<T> values_;
};

std::size_t index_below(omnibal::rng::engine& random, std::size_t count) {
  return static_cast<std::size_t>(number_between(random, 0, static_cast<std::int64_t>(count) - 1));
}

partition_constraints random_rules(omnibal::rng::engine& random, std::size_t layers,
                                   std::size_t stages) {
  partition_constraints rules;
  auto const sometimes = [&] { return number_between(random, 0, 3) == 0; };
  if (sometimes()) rules.empty = empty_stages::allowed;
  if (sometimes()) {
    weight_source<std::int64_t> const bytes(random, max_int64 / static_cast<std::int64_t>(layers));
    std::vector<std::int64_t> taken(layers);
    std::int64_t sum = 0;
    for (auto& one : taken) sum += one = bytes();
    if (number_between(random, 0, 15) == 0) {
      taken[index_below(random, layers)] += max_int64 - sum;
      sum = max_int64;
    }
    rules.bytes = taken;
    std::vector<std::int64_t> room(sometimes() ? 1 : stages);
    for (auto& one : room) one = number_between(random, 0, sum);
    if (stages > 1 && sometimes()) {
      do {
        rules.devices = 1 + index_below(random, stages);
      } while (stages % rules.devices != 0);
      room.assign(rules.devices, sum / static_cast<std::int64_t>(rules.devices));
    }
    rules.capacity = room;
  }
  auto const count = static_cast<std::int64_t>(layers);
  if (sometimes()) rules.min_layers = {number_between(random, 0, 2)};
  if (sometimes()) rules.max_layers = {number_between(random, 1, count)};
  if (sometimes()) {
    rules.pinned.push_back({static_cast<std::uint32_t>(index_below(random, layers)),
                            static_cast<std::uint32_t>(index_below(random, stages))});
  }
  if (layers > 1 && sometimes()) {
    rules.forbidden_cuts.push_back(static_cast<std::uint32_t>(1 + index_below(random, layers - 1)));
  }
  if (layers > 1 && sometimes()) {
    auto const first = static_cast<std::uint32_t>(index_below(random, layers - 1));
    rules.tied.push_back({first, static_cast<std::uint32_t>(first + 1)});
  }
  return rules;
}

/// What trying all cuts finds.
template <class C>
struct every_cut {
  bool obeys = false;
  bool fits = false;
  exact<C> objective{};
  C bottleneck{};
  cuts boundaries;
  /// The least that the worst stage or device lacks, over the cuts that the predicate admits.
  bool is_admitted = false;
  std::int64_t missing = 0;
  /// The first stages that lack so much, one bit for each.
  unsigned lacking = 0;
  /// Whether sums of stages that may be tried leave the type.
  bool may_overflow = false;
};

/// The cost of what cannot run.
template <class C>
inline constexpr C infinite_cost = std::numeric_limits<C>::max();

/// The first stage that lacks so many bytes; of a device with several stages the first.
template <class Lacks>
std::size_t first_lacking(cuts const& at, partition_constraints const& rules, Lacks const& lacks,
                          std::int64_t missing) {
  std::size_t const stages = at.size() - 1;
  std::size_t const devices = rules.devices == 0 ? stages : rules.devices;
  std::size_t result = stages;
  for (std::size_t s = stages; s-- != 0;) {
    if (at[s] != at[s + 1] && lacks(s, at[s], at[s + 1]) == missing) result = s;
  }
  for (std::size_t d = devices; d-- != 0 && !rules.capacity.empty();) {
    std::int64_t used = -test::value_for(rules.capacity.values(), d);
    for (std::size_t s = d; s < stages; s += devices) {
      used += test::bytes_of(rules, at[s], at[s + 1]);
    }
    if (used == missing && d < result) result = d;
  }
  return result;
}

/// The largest load of a device alone, or that of each micro-batch and the time in which the first
/// one fills the pipeline, rounded up.
template <class C>
exact<C> step_of(exact<C> load, exact<C> sum, std::size_t chunks, std::int64_t of_bottleneck,
                 std::int64_t of_sum) {
  if (of_sum == 0 || chunks == 1) {
    return static_cast<exact<C>>(of_bottleneck) * load + static_cast<exact<C>>(of_sum) * sum;
  }
  auto const count = static_cast<exact<C>>(chunks);
  auto const whole = (static_cast<exact<C>>(of_bottleneck + 1) * count - 1) * load + sum;
  if constexpr (std::floating_point<C>) {
    return whole / count;
  } else {
    return (whole + count - 1) / count;
  }
}

/// `admits(s, first, last)` is what no memory helps; `lacks(s, first, last)` how many bytes a rule
/// misses; the step is `of_bottleneck` times the bottleneck and `of_sum` times the sum.
template <class C, class Cost, class Admits, class Lacks>
every_cut<C> try_all(std::size_t layers, std::size_t stages, partition_constraints const& rules,
                     Cost const& cost, Admits const& admits, Lacks const& lacks,
                     std::int64_t of_bottleneck, std::int64_t of_sum, bool admits_largest = false) {
  every_cut<C> best;
  std::size_t const devices = rules.devices == 0 ? stages : rules.devices;
  test::for_all_cuts(layers, stages, rules.empty, [&](cuts const& at) {
    if (!test::obeys_rules(at, rules)) return;
    best.obeys = true;
    C bottleneck{};
    exact<C> sum{};
    std::vector<exact<C>> loads(devices, exact<C>{});
    std::int64_t missing = std::max<std::int64_t>(0, test::missing_bytes(at, rules));
    // From the last stage to the first, as sums are documented.
    for (std::size_t s = stages; s-- != 0;) {
      if (at[s] == at[s + 1]) continue;
      if (!admits(s, at[s], at[s + 1])) return;
      missing = std::max(missing, lacks(s, at[s], at[s + 1]));
      C const value = static_cast<C>(cost(s, at[s], at[s + 1]));
      if (!admits_largest && value == infinite_cost<C>) return;
      bottleneck = std::max(bottleneck, value);
      sum += static_cast<exact<C>>(value);
      loads[s % devices] += static_cast<exact<C>>(value);
    }
    if (!best.is_admitted || missing < best.missing) {
      best.missing = missing;
      best.lacking = 0;
    }
    best.is_admitted = true;
    if (missing > 0 && missing == best.missing) {
      best.lacking |= 1u << first_lacking(at, rules, lacks, missing);
    }
    if (missing > 0) return;
    auto const load = *std::max_element(loads.begin(), loads.end());
    auto const step = step_of<C>(load, sum, stages / devices, of_bottleneck, of_sum);
    if (best.fits &&
        (step > best.objective || (step == best.objective && bottleneck >= best.bottleneck))) {
      return;
    }
    best.fits = true;
    best.objective = step;
    best.bottleneck = bottleneck;
    best.boundaries = at;
  });
  if constexpr (std::integral<C>) {
    exact<C> most = 0;
    bool const has_sums = of_sum != 0 || devices != stages;
    for (std::size_t s = 0; s != stages && has_sums; ++s) {
      exact<C> largest = 0;
      for (std::size_t first = 0; first != layers; ++first) {
        for (std::size_t last = first + 1; last <= layers; ++last) {
          exact<C> const value = cost(s, first, last);
          if (value != infinite_cost<C>) largest = std::max(largest, value);
        }
      }
      most += largest;
    }
    best.may_overflow =
        most >= infinite_cost<C> || (best.fits && best.objective > infinite_cost<C>);
  }
  return best;
}

template <class C>
std::string fault_of(omnibal::partition_result<C> const& result, every_cut<C> const& best,
                     bool is_exact, bool has_devices) {
  if (result.status == solve_status::not_found) {
    return has_devices && !result.proven ? "" : "not found, but nothing was given up";
  }
  if ((result.status == solve_status::solved) != best.fits) return "feasible or not";
  if (!best.fits) {
    if (result.proven && result.missing_bytes != (best.is_admitted ? best.missing : 0)) {
      return "missing " + std::to_string(result.missing_bytes) + ", not " +
             std::to_string(best.is_admitted ? best.missing : 0);
    }
    if (result.proven && result.missing_bytes != 0 && (best.lacking >> result.stage & 1u) == 0) {
      return "stage " + std::to_string(result.stage) + " is not the first that lacks most";
    }
    if (!result.boundaries.empty()) return "boundaries of nothing";
    return "";
  }
  auto const objective = static_cast<exact<C>>(result.objective);
  if (objective < best.objective) return "a smaller objective than any";
  if (static_cast<exact<C>>(result.lower_bound) > best.objective) {
    return "a lower bound above the smallest objective";
  }
  if (!result.proven) return has_devices ? "" : "no proof";
  if (has_devices) return objective > best.objective ? "proven, but others are smaller" : "";
  if (objective > best.objective) return "proven, but others are smaller";
  if (is_exact && result.boundaries != best.boundaries) return "other cuts of the same objective";
  if (is_exact && result.bottleneck != best.bottleneck) return "another bottleneck";
  return "";
}

/// A sum over a speed, which is a whole number of 64ths; rounded up where it must be whole.
template <class C>
C over_speed(C sum, double speed) {
  if constexpr (std::floating_point<C>) {
    return sum / speed;
  } else {
    auto const parts = static_cast<int128>(speed * 64);
    return static_cast<C>((int128{sum} * 64 + parts - 1) / parts);
  }
}

/// Layers, stages, their costs and what they must satisfy.
template <class T>
struct instance {
  using cost_type = working<T>;

  explicit instance(omnibal::rng::engine& random)
      : layers(1 + index_below(random, 8)),
        is_additive(number_between(random, 0, 1) == 0),
        // Where costs are no sums they may be the largest value, which cannot run.
        weight(random, max_weight<T>(is_additive                         ? 16 * 8
                                     : number_between(random, 0, 1) == 0 ? 64
                                                                         : 1)) {
    std::size_t const most = layers < 7 ? 5 : 4;
    stages = 1 + index_below(random, most);
    rules = random_rules(random, layers, stages);
    if (stages > layers) rules.empty = empty_stages::allowed;
    has_traffic = number_between(random, 0, 1) == 0;
    if (is_additive && number_between(random, 0, 2) == 0) {
      for (std::size_t s = 0; s != stages; ++s) {
        speeds.push_back(static_cast<double>(number_between(random, 8, 200)) / 64);
      }
    }
    for (std::size_t l = 0; l != layers; ++l) own.push_back(weight());
    table = stage_table<T>(stages, layers, weight);
    if constexpr (std::floating_point<T>) {
      auto const is_whole = [](T value) {
        return value == static_cast<T>(static_cast<std::int64_t>(value));
      };
      is_exact = std::all_of(own.begin(), own.end(), is_whole) && is_whole(table(0, 0, 0)) &&
                 is_whole(table(stages - 1, layers, layers)) && is_whole(weight()) &&
                 speeds.empty();
    }
  }

  [[nodiscard]] cost_type operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    if (!is_additive) return static_cast<cost_type>(table(stage, first, last));
    cost_type sum{};
    for (std::size_t l = first; l != last; ++l) sum += static_cast<cost_type>(own[l]);
    if (!speeds.empty()) sum = over_speed(sum, speeds[stage]);
    return has_traffic ? sum + static_cast<cost_type>(table(stage, first, last)) : sum;
  }

  std::size_t layers;
  std::size_t stages = 1;
  bool is_additive;
  weight_source<T> weight;
  partition_constraints rules;
  std::vector<double> speeds;
  bool has_traffic = false;
  bool is_exact = true;
  std::vector<T> own;
  stage_table<T> table;
};

/// A function of a stage and its layers without its type, so that the searches are compiled once
/// for all weights that they work on in one type.
template <class Result>
using stage_function = omnibal::detail::function_ref<Result(std::size_t, std::size_t, std::size_t)>;

enum class memory_kind { none, rule, predicate };

template <class T, class Solve>
std::string try_partition(omnibal::rng::engine& random, std::int64_t of_bottleneck,
                          std::int64_t of_sum, Solve const& solve) {
  using cost_type = working<T>;
  instance<T> const given(random);
  stage_function<cost_type> const cost(given);
  omnibal::partition_layers_options<cost_type> options{.constraints = given.rules};
  if (given.is_additive && number_between(random, 0, 2) != 0) {
    options.base = omnibal::weight_list<cost_type>(given.own);
    if (!given.speeds.empty()) options.speeds = omnibal::weight_list<double>(given.speeds);
  }
  if (number_between(random, 0, 3) == 0) {
    options.labels = static_cast<std::size_t>(number_between(random, 1, 20));
  }
  // Fractions are added in an order, so that equal steps need not have equal parts.
  bool const is_exact = given.is_exact || of_sum == 0;
  auto const kind = static_cast<memory_kind>(number_between(random, 0, 2));
  weight_source<std::int64_t> const bytes(random, max_int64);
  stage_table<std::int64_t> const taken(given.stages, given.layers, bytes);
  std::int64_t const room = bytes();
  stage_table<std::uint8_t> const admitted(given.stages, given.layers, [&] {
    return static_cast<std::uint8_t>(number_between(random, 0, 4) != 0 ? 1 : 0);
  });
  auto const admits = [&](std::size_t s, std::size_t first, std::size_t last) {
    return kind != memory_kind::predicate || admitted(s, first, last) != 0;
  };
  auto const lacks = [&](std::size_t s, std::size_t first, std::size_t last) -> std::int64_t {
    return kind == memory_kind::rule ? std::max<std::int64_t>(0, taken(s, first, last) - room) : 0;
  };
  auto const best = try_all<cost_type>(given.layers, given.stages, given.rules, given, admits,
                                       lacks, of_bottleneck, of_sum);
  bool const has_devices = given.rules.devices != 0 && given.rules.devices != given.stages;
  auto const fault = [&](auto const& fits) {
    return fault_of(solve(given.layers, given.stages, cost, fits, options), best, is_exact,
                    has_devices);
  };
  try {
    if (kind == memory_kind::rule) {
      return fault(omnibal::memory_rule{stage_function<std::int64_t>(taken), room});
    }
    if (kind == memory_kind::predicate) return fault(stage_function<bool>(admits));
    return fault(omnibal::fits_always{});
  } catch (std::invalid_argument const& error) {
    return best.obeys ? error.what() : "";
  } catch (std::overflow_error const& error) {
    return best.may_overflow ? "" : error.what();
  }
}

/// Layers whose costs add up, to the largest sum too.
template <class T>
struct chain {
  using cost_type = working<T>;

  chain(omnibal::rng::engine& random, std::size_t layers) : sums(layers + 1) {
    auto const count = static_cast<std::int64_t>(layers);
    weight_source<T> const draw(random, max_weight<T>(count));
    for (std::size_t l = 0; l != layers; ++l) {
      own.push_back(draw());
      sums[l + 1] = sums[l] + static_cast<cost_type>(own[l]);
    }
    if constexpr (std::same_as<T, std::int64_t>) {
      if (number_between(random, 0, 15) != 0) return;
      std::size_t const changed = index_below(random, layers);
      T const rest = max_int64 - sums.back();
      own[changed] += rest;
      for (std::size_t l = changed; l != layers; ++l) sums[l + 1] += rest;
    }
  }

  /// The sum of a stage is the difference of two sums of first layers.
  [[nodiscard]] cost_type operator()(std::size_t, std::size_t first, std::size_t last) const {
    return sums[last] - sums[first];
  }

  std::vector<T> own;
  std::vector<cost_type> sums;
};

/// A chain and the stages that it is cut into.
template <class T>
struct chain_instance {
  explicit chain_instance(omnibal::rng::engine& random)
      : chain_instance(random, number_between(random, 0, 3) == 0 ? empty_stages::allowed
                                                                 : empty_stages::forbidden) {}
  chain_instance(omnibal::rng::engine& random, empty_stages may_be_empty)
      : empty(may_be_empty), layers(random, 1 + index_below(random, 8)) {
    std::size_t const count = layers.own.size();
    std::size_t const most = count < 7 ? 5 : 4;
    stages = 1 + index_below(random, empty == empty_stages::allowed ? most : std::min(count, most));
  }

  /// The cuts with the smallest largest cost of a stage.
  template <class Cost>
  [[nodiscard]] auto best(Cost const& cost) const {
    using cost_type = decltype(cost(0, 0, 1));
    auto const always = [](auto...) { return true; };
    auto const nothing = [](auto...) { return std::int64_t{0}; };
    return try_all<cost_type>(layers.own.size(), stages, {.empty = empty}, cost, always, nothing, 1,
                              0, true);
  }

  empty_stages empty;
  chain<T> layers;
  std::size_t stages = 1;
};

}  // namespace

TEMPLATE_TEST_CASE("partition_layers proves what is true", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("partition_layers", [](omnibal::rng::engine& random) {
    return try_partition<TestType>(random, 1, 0,
                                   [](std::size_t layers, std::size_t stages, auto const& cost,
                                      auto const& fits, auto const& options) {
                                     return omnibal::partition_layers(layers, stages, cost, fits,
                                                                      options);
                                   });
  });
}

TEMPLATE_TEST_CASE("partition_throughput proves what is true", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("partition_throughput", [](omnibal::rng::engine& random) {
    std::int64_t const micro_batches = number_between(random, 1, 9);
    return try_partition<TestType>(
        random, micro_batches - 1, 1,
        [&](std::size_t layers, std::size_t stages, auto const& cost, auto const& fits,
            auto const& options) {
          omnibal::partition_throughput_options<working<TestType>> const step{
              .micro_batches = static_cast<std::size_t>(micro_batches),
              .base = options.base,
              .speeds = options.speeds,
              .constraints = options.constraints,
              .labels = options.labels};
          return omnibal::partition_throughput(layers, stages, cost, fits, step);
        });
  });
}

TEMPLATE_TEST_CASE("partition_minimax proves what is true", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("partition_minimax", [](omnibal::rng::engine& random) {
    chain_instance<TestType> const given(random);
    return fault_of(omnibal::partition_minimax(given.layers.own, given.stages, std::identity{},
                                               {.empty = given.empty}),
                    given.best(given.layers), false, false);
  });
}

TEMPLATE_TEST_CASE("partition_minimax of stages with speeds proves what is true", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("partition_minimax, speeds", [](omnibal::rng::engine& random) {
    chain_instance<TestType> const given(random);
    std::vector<double> speeds(given.stages);
    for (double& speed : speeds) {
      speed = static_cast<double>(number_between(random, 1, 1000)) / 64;
    }
    auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return static_cast<double>(given.layers(stage, first, last)) / speeds[stage];
    };
    return fault_of(omnibal::partition_minimax(given.layers.own, speeds, std::identity{},
                                               {.empty = given.empty}),
                    given.best(cost), true, false);
  });
}
