#include "all_cuts.hpp"
#include "certificate.hpp"

#include <omnibal/partition/greedy_cuts.hpp>
#include <omnibal/partition/memory_rule.hpp>
#include <omnibal/partition/minimax.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_throughput.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
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
template <class T>
using exact = std::conditional_t<std::floating_point<T>, long double, int128>;

/// The largest weight of which the step of eight layers is exact.
template <class T>
constexpr std::int64_t most_weight() {
  if constexpr (std::same_as<T, float>) return std::int64_t{1} << 24;
  if constexpr (std::same_as<T, double>) return std::int64_t{1} << 46;
  if constexpr (std::same_as<T, std::int64_t>) return std::numeric_limits<T>::max() / 512;
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
    weight_source<std::int64_t> const bytes(random, std::int64_t{1} << 58);
    std::vector<std::int64_t> taken(layers);
    std::int64_t sum = 0;
    for (auto& one : taken) sum += one = bytes();
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
};

/// `admits(s, first, last)` is what no memory helps; `lacks(s, first, last)` how many bytes a rule
/// misses; the step is `of_bottleneck` times the bottleneck and `of_sum` times the sum.
template <class C, class Cost, class Admits, class Lacks>
every_cut<C> try_all(std::size_t layers, std::size_t stages, partition_constraints const& rules,
                     Cost const& cost, Admits const& admits, Lacks const& lacks,
                     std::int64_t of_bottleneck, std::int64_t of_sum) {
  every_cut<C> best;
  test::for_all_cuts(layers, stages, rules.empty, [&](cuts const& at) {
    if (!test::obeys_rules(at, rules)) return;
    best.obeys = true;
    C bottleneck{};
    exact<C> sum{};
    std::int64_t missing = std::max<std::int64_t>(0, test::missing_bytes(at, rules));
    for (std::size_t s = 0; s != stages; ++s) {
      if (at[s] == at[s + 1]) continue;
      if (!admits(s, at[s], at[s + 1])) return;
      missing = std::max(missing, lacks(s, at[s], at[s + 1]));
      C const value = static_cast<C>(cost(s, at[s], at[s + 1]));
      bottleneck = std::max(bottleneck, value);
      sum += static_cast<exact<C>>(value);
    }
    best.missing = best.is_admitted ? std::min(best.missing, missing) : missing;
    best.is_admitted = true;
    if (missing > 0) return;
    auto const step = static_cast<exact<C>>(of_bottleneck) * static_cast<exact<C>>(bottleneck) +
                      static_cast<exact<C>>(of_sum) * sum;
    if (best.fits &&
        (step > best.objective || (step == best.objective && bottleneck >= best.bottleneck))) {
      return;
    }
    best.fits = true;
    best.objective = step;
    best.bottleneck = bottleneck;
    best.boundaries = at;
  });
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
    if (!result.boundaries.empty()) return "boundaries of nothing";
    return "";
  }
  exact<C> rounding{};
  if (!is_exact) {
    rounding = static_cast<exact<C>>(1e-13L * static_cast<long double>(best.objective));
  }
  auto const objective = static_cast<exact<C>>(result.objective);
  if (objective < best.objective - rounding) return "a smaller objective than any";
  if (static_cast<exact<C>>(result.lower_bound) > best.objective + rounding) {
    return "a lower bound above the smallest objective";
  }
  if (!result.proven) return has_devices ? "" : "no proof";
  if (objective > best.objective + rounding) return "proven, but others are smaller";
  if (is_exact && result.boundaries != best.boundaries) return "other cuts of the same objective";
  if (is_exact && result.bottleneck != best.bottleneck) return "another bottleneck";
  return "";
}

/// Layers, stages, their costs and what they must satisfy.
template <class T>
struct instance {
  using cost_type = working<T>;

  explicit instance(omnibal::rng::engine& random)
      : layers(1 + index_below(random, 8)), weight(random, most_weight<T>()) {
    std::size_t const most = layers < 7 ? 5 : 4;
    stages = 1 + index_below(random, std::min(layers, most));
    rules = random_rules(random, layers, stages);
    is_additive = number_between(random, 0, 1) == 0;
    has_traffic = number_between(random, 0, 1) == 0;
    for (std::size_t l = 0; l != layers; ++l) own.push_back(weight());
    table = stage_table<T>(stages, layers, weight);
    if constexpr (std::floating_point<T>) {
      auto const is_whole = [](T value) {
        return value == static_cast<T>(static_cast<std::int64_t>(value));
      };
      is_exact = std::all_of(own.begin(), own.end(), is_whole) && is_whole(table(0, 0, 0)) &&
                 is_whole(table(stages - 1, layers, layers)) && is_whole(weight());
    }
  }

  [[nodiscard]] cost_type operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    if (!is_additive) return static_cast<cost_type>(table(stage, first, last));
    cost_type sum{};
    for (std::size_t l = first; l != last; ++l) sum += static_cast<cost_type>(own[l]);
    return has_traffic ? sum + static_cast<cost_type>(table(stage, first, last)) : sum;
  }

  std::size_t layers;
  std::size_t stages = 1;
  weight_source<T> weight;
  partition_constraints rules;
  bool is_additive = false;
  bool has_traffic = false;
  bool is_exact = true;
  std::vector<T> own;
  stage_table<T> table;
};

enum class memory_kind { none, rule, predicate };

template <class T, class Solve>
std::string try_partition(omnibal::rng::engine& random, std::int64_t of_bottleneck,
                          std::int64_t of_sum, Solve const& solve) {
  using cost_type = working<T>;
  instance<T> const given(random);
  omnibal::partition_layers_options<cost_type> options{.constraints = given.rules};
  if (given.is_additive && number_between(random, 0, 2) != 0) {
    options.base = omnibal::weight_list<cost_type>(given.own);
  }
  if (number_between(random, 0, 3) == 0) {
    options.labels = static_cast<std::size_t>(number_between(random, 1, 20));
  }
  auto const kind = static_cast<memory_kind>(number_between(random, 0, 2));
  weight_source<std::int64_t> const bytes(random, std::int64_t{1} << 58);
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
  bool const has_devices = given.rules.devices != 0;
  try {
    if (kind == memory_kind::rule) {
      omnibal::memory_rule const rule{taken, room};
      return fault_of(solve(given, rule, options), best, given.is_exact, has_devices);
    }
    if (kind == memory_kind::predicate) {
      return fault_of(solve(given, admits, options), best, given.is_exact, has_devices);
    }
    omnibal::fits_always const fits;
    return fault_of(solve(given, fits, options), best, given.is_exact, has_devices);
  } catch (std::invalid_argument const& error) {
    return best.obeys ? error.what() : "";
  }
}

}  // namespace

TEMPLATE_TEST_CASE("partition_layers proves what is true", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("partition_layers", [](omnibal::rng::engine& random) {
    return try_partition<TestType>(
        random, 1, 0, [](auto const& given, auto const& fits, auto const& options) {
          return omnibal::partition_layers(given.layers, given.stages, given, fits, options);
        });
  });
}

TEMPLATE_TEST_CASE("partition_throughput proves what is true", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("partition_throughput", [](omnibal::rng::engine& random) {
    std::int64_t const micro_batches = number_between(random, 1, 9);
    return try_partition<TestType>(
        random, micro_batches - 1, 1,
        [&](auto const& given, auto const& fits, auto const& options) {
          omnibal::partition_throughput_options<working<TestType>> const step{
              .micro_batches = static_cast<std::size_t>(micro_batches),
              .base = options.base,
              .constraints = options.constraints,
              .labels = options.labels};
          return omnibal::partition_throughput(given.layers, given.stages, given, fits, step);
        });
  });
}

TEMPLATE_TEST_CASE("minimax proves what is true", "[certificate]", TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("minimax", [](omnibal::rng::engine& random) -> std::string {
    using cost_type = working<TestType>;
    instance<TestType> const given(random);
    partition_constraints const rules{.empty = given.rules.empty};
    // The sum of a stage is the difference of two sums of first layers.
    std::vector<cost_type> sums(given.layers + 1);
    for (std::size_t l = 0; l != given.layers; ++l) {
      sums[l + 1] = sums[l] + static_cast<cost_type>(given.own[l]);
    }
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return sums[last] - sums[first];
    };
    auto const always = [](auto...) { return true; };
    auto const nothing = [](auto...) { return std::int64_t{0}; };
    auto const best =
        try_all<cost_type>(given.layers, given.stages, rules, cost, always, nothing, 1, 0);
    return fault_of(
        omnibal::minimax(given.own, given.stages, std::identity{}, {.empty = rules.empty}), best,
        true, false);
  });
}

TEMPLATE_TEST_CASE("minimax of stages with speeds proves what is true", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("minimax, speeds", [](omnibal::rng::engine& random) -> std::string {
    using cost_type = working<TestType>;
    instance<TestType> const given(random);
    partition_constraints const rules{.empty = given.rules.empty};
    std::vector<double> speeds(given.stages);
    for (double& speed : speeds) {
      speed = static_cast<double>(number_between(random, 1, 1000)) / 64;
    }
    std::vector<cost_type> sums(given.layers + 1);
    for (std::size_t l = 0; l != given.layers; ++l) {
      sums[l + 1] = sums[l] + static_cast<cost_type>(given.own[l]);
    }
    auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return static_cast<double>(sums[last] - sums[first]) / speeds[stage];
    };
    auto const always = [](auto...) { return true; };
    auto const nothing = [](auto...) { return std::int64_t{0}; };
    auto const best =
        try_all<double>(given.layers, given.stages, rules, cost, always, nothing, 1, 0);
    return fault_of(omnibal::minimax(given.own, speeds, std::identity{}, {.empty = rules.empty}),
                    best, true, false);
  });
}

TEMPLATE_TEST_CASE("greedy_cuts claims a bound and a proof that are true", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("greedy_cuts", [](omnibal::rng::engine& random) -> std::string {
    using cost_type = working<TestType>;
    instance<TestType> const given(random);
    partition_constraints const rules;
    std::vector<cost_type> sums(given.layers + 1);
    for (std::size_t l = 0; l != given.layers; ++l) {
      sums[l + 1] = sums[l] + static_cast<cost_type>(given.own[l]);
    }
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return sums[last] - sums[first];
    };
    auto const always = [](auto...) { return true; };
    auto const nothing = [](auto...) { return std::int64_t{0}; };
    auto const best =
        try_all<cost_type>(given.layers, given.stages, rules, cost, always, nothing, 1, 0);
    auto const result = omnibal::greedy_cuts(given.own, given.stages);
    if (result.boundaries.size() != given.stages + 1) return "no stages";
    if (result.bottleneck < best.bottleneck) return "a smaller bottleneck than any";
    if (result.lower_bound > best.bottleneck) return "a lower bound above the smallest bottleneck";
    if (result.proven && result.bottleneck != best.bottleneck) return "proven, but others are less";
    return "";
  });
}
