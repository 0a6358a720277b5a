// SPDX-License-Identifier: Apache-2.0
// Functors that give another answer at every call, throw, or return nonsense: an error or some
// result, never a crash. Meant for the sanitizers.

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/context/deferral_queue.hpp>
#include <omnibal/exchange/compose.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/placement.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/pack/cu_seqlens.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/split_long.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/sample/bundles.hpp>
#include <omnibal/sample/loss_normalizer.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using numbers = std::vector<int>;
using omnibal::rng::below;

/// Runs `call` with many seeds. What it throws has a text; what it returns is thrown away.
template <class Call>
void survive(Call const& call) {
  int errors = 0;
  for (std::uint64_t seed = 0; seed != 60; ++seed) {
    omnibal::rng::engine random(seed);
    try {
      static_cast<void>(call(random));
    } catch (std::exception const& error) {
      ++errors;
      CHECK(std::string(error.what()) != "");
    }
  }
  CHECK(errors <= 60);
}

numbers samples_of(omnibal::rng::engine& random) {
  numbers result(below(random, 60));
  for (int& one : result) one = static_cast<int>(1 + below(random, 9));
  return result;
}

/// Small numbers mostly, sometimes none that is allowed.
class fickle {
 public:
  explicit fickle(omnibal::rng::engine& random) : random_(&random) {}

  [[nodiscard]] std::int64_t whole() const {
    switch (below(*random_, 400)) {
      case 0: return -1;
      case 1: return std::numeric_limits<std::int64_t>::max();
      case 2: throw std::runtime_error("the functor has failed");
      default: return static_cast<std::int64_t>(below(*random_, 12));
    }
  }
  [[nodiscard]] double real() const {
    switch (below(*random_, 400)) {
      case 0: return std::numeric_limits<double>::quiet_NaN();
      case 1: return std::numeric_limits<double>::infinity();
      default: return static_cast<double>(whole()) / 3;
    }
  }
  [[nodiscard]] bool flag() const { return below(*random_, 2) == 0; }
  [[nodiscard]] std::uint32_t index(std::size_t count) const {
    return static_cast<std::uint32_t>(
        below(*random_, count + (below(*random_, 9) == 0 ? 2 : 0) + 1));
  }

 private:
  omnibal::rng::engine* random_;
};

/// Groups of anything.
omnibal::grouping any_groups(fickle const& lies, std::size_t samples, std::size_t groups) {
  omnibal::grouping result;
  for (std::size_t g = 0; g != groups; ++g) {
    for (std::size_t i = 0; i < samples; i += groups) {
      result.push(lies.flag() ? static_cast<std::uint32_t>((i + g) % samples)
                              : lies.index(samples));
    }
    result.close();
  }
  return result;
}

auto const capacity = omnibal::resources{9, 30};

}  // namespace

TEST_CASE("packers survive demands that change") {
  survive([](auto& random) {
    fickle const lies(random);
    auto const demand = [&](int) { return omnibal::resources{lies.whole(), lies.whole()}; };
    auto const real = [&](int) { return lies.real(); };
    auto const samples = samples_of(random);
    std::vector<std::function<void()>> const calls{
        [&] { (void)omnibal::next_fit(samples, demand, capacity); },
        [&] { (void)omnibal::isf(samples, demand, capacity); },
        [&] { (void)omnibal::best_fit_decreasing(samples, demand, capacity); },
        [&] { (void)omnibal::best_fit_decreasing(samples, real, 5.0); },
        [&] { (void)omnibal::packing_bound(samples, demand, capacity); },
        [&] { (void)omnibal::capacity_warnings(samples, demand, capacity); },
        [&] {
          auto const packed = omnibal::next_fit(samples, std::identity{}, 20);
          (void)omnibal::improve_packing(samples, real, 20.0, packed);
        },
        [&] {
          (void)omnibal::group_loads(any_groups(lies, samples.size() + 1, 3), samples, demand);
        },
        [&] { (void)omnibal::pad_ratio(any_groups(lies, samples.size() + 1, 3), samples, real); },
        [&] {
          (void)omnibal::cu_seqlens(any_groups(lies, samples.size() + 1, 3), samples,
                                    [&](int) { return lies.whole(); });
        }};
    for (auto const& call : calls) {
      try {
        call();
      } catch (std::exception const&) {
      }
    }
    return 0;
  });
}

TEST_CASE("isf survives rules and shuffles that are none") {
  survive([](auto& random) {
    fickle const lies(random);
    auto const keep = [&](auto const&) { return lies.flag(); };
    auto const shuffle = [&](std::span<std::uint32_t> order, std::uint64_t) {
      for (auto& one : order) one = lies.flag() ? one : lies.index(order.size());
    };
    return omnibal::isf(samples_of(random), std::identity{}, 20, {.rounds = 5}, keep, shuffle);
  });
  survive([](auto& random) {
    fickle const lies(random);
    auto const score = [&](auto const&...) { return lies.real(); };
    if constexpr (requires {
                    omnibal::best_fit_decreasing(numbers{}, std::identity{}, 20, {}, score);
                  }) {
      return omnibal::best_fit_decreasing(samples_of(random), std::identity{}, 20, {}, score);
    } else {
      return 0;
    }
  });
}

TEST_CASE("what takes a packer or an objective survives bad ones") {
  survive([](auto& random) {
    fickle const lies(random);
    auto const pack = [&](auto const& given, auto const&, auto const&) {
      omnibal::packing result;
      result.groups = any_groups(lies, std::size(given), 1 + below(random, 4));
      return result;
    };
    return omnibal::split_long(samples_of(random), std::identity{}, 5, pack);
  });
  survive([](auto& random) {
    fickle const lies(random);
    auto const pack = [&](auto const& given, auto const& demand, auto const& limit) {
      if (lies.flag()) return omnibal::next_fit(given, demand, limit);
      omnibal::packing result;
      result.groups = any_groups(lies, std::size(given), 1 + below(random, 4));
      return result;
    };
    auto const objective = [&](auto const&) { return lies.real(); };
    return omnibal::tune_capacity(samples_of(random), std::identity{}, 3.0, pack, objective);
  });
  survive([](auto& random) {
    fickle const lies(random);
    auto const pack = [&](auto const& given, auto const&, auto const&) {
      omnibal::packing result;
      result.groups = any_groups(lies, std::size(given), 1 + below(random, 4));
      return result;
    };
    return omnibal::pack_levels(samples_of(random), std::identity{}, std::vector{5, 20}, pack);
  });
}

TEST_CASE("balancers survive costs and demands that change") {
  survive([](auto& random) {
    fickle const lies(random);
    auto const whole = [&](auto const&) { return lies.whole(); };
    auto const real = [&](auto const&) { return lies.real(); };
    auto const demand = [&](int) { return omnibal::resources{lies.whole(), lies.whole()}; };
    auto const samples = samples_of(random);
    auto const home = omnibal::deal(samples, 4);
    std::vector<double> const speeds{3.0, 1.0, 2.0, 1.0};
    std::vector<std::function<void()>> const calls{
        [&] { (void)omnibal::lpt(samples, 4, whole); },
        [&] { (void)omnibal::lpt(samples, 4, real); },
        [&] { (void)omnibal::lpt(samples, 4, real, {.speeds = speeds}); },
        [&] { (void)omnibal::deal(samples, 4, real); },
        [&] { (void)omnibal::deal(samples, 4, real, {.speeds = speeds}); },
        [&] { (void)omnibal::karmarkar_karp(samples, 4, whole); },
        [&] { (void)omnibal::karmarkar_karp(samples, 4, whole, {.speeds = speeds}); },
        [&] { (void)omnibal::karmarkar_karp(samples, 4, real, {.speeds = speeds}); },
        [&] { (void)omnibal::refine_parts(samples, home, real); },
        [&] {
          (void)omnibal::refine_parts(samples, any_groups(lies, samples.size() + 1, 4), whole);
        },
        [&] { (void)omnibal::balance_optimally(samples, 3, whole); },
        [&] { (void)omnibal::balance_under_capacity(samples, 4, real, demand, capacity); },
        [&] {
          (void)omnibal::balance_under_capacity(samples, 4, real, demand, capacity,
                                                {.speeds = speeds});
        },
        [&] { (void)omnibal::micro_batches(samples, 3, whole, demand, capacity); },
        [&] { (void)omnibal::rebalance(home, whole, whole); },
        [&] { (void)omnibal::rebalance(home, real, whole); }};
    for (auto const& call : calls) {
      try {
        call();
      } catch (std::exception const&) {
      }
    }
    return 0;
  });
}

TEST_CASE("balance_set_cost survives accumulators that fall or are no numbers") {
  struct accumulator {
    fickle lies;
    void add(int) {}
    [[nodiscard]] double value() const { return lies.real(); }
  };
  survive([](auto& random) {
    return omnibal::balance_set_cost(samples_of(random), 4, accumulator{fickle(random)});
  });
}

TEST_CASE("plans survive measures and balancers that change") {
  survive([](auto& random) {
    fickle const lies(random);
    auto const whole = [&](auto const&) { return lies.whole(); };
    std::vector<std::uint32_t> const homes{0, 5, 5, 9, 20};
    return omnibal::make_plan(homes, whole, whole);
  });
  survive([](auto& random) {
    fickle const lies(random);
    std::vector<std::uint32_t> const homes{0, 5, 5, 9, 20};
    auto const one = [](auto const&) { return 1; };
    auto const balance = [&](auto const& items, std::size_t parts, auto const&) {
      return any_groups(lies, std::size(items), parts);
    };
    return omnibal::make_plan(homes, one, one, {}, balance);
  });
  survive([](auto& random) {
    fickle const lies(random);
    omnibal::self_communicator comm;
    auto const whole = [&](int) { return lies.whole(); };
    return omnibal::plan_exchange(comm, samples_of(random), whole, whole);
  });
  survive([](auto& random) {
    fickle const lies(random);
    omnibal::self_communicator comm;
    return omnibal::gather_lengths(comm, samples_of(random), [&](int) { return lies.whole(); });
  });
  survive([](auto& random) {
    fickle const lies(random);
    auto const samples = samples_of(random);
    auto const home = omnibal::deal(samples, 4);
    auto const parts = any_groups(lies, samples.size() + 1, 4);
    return omnibal::placement(home, parts, [&](auto) { return lies.whole(); });
  });
}

TEST_CASE("samplers survive schedulers that lose, double and make up groups") {
  survive([](auto& random) {
    fickle const lies(random);
    auto const schedule = [&](std::span<int const> loads, std::size_t ranks,
                              omnibal::schedule_steps_options const&) {
      omnibal::steps result(lies.flag() ? ranks : ranks + 1);
      for (std::size_t i = 0; i < loads.size(); ++i) {
        result.push(lies.flag() ? static_cast<std::uint32_t>(i) : lies.index(loads.size()));
        result.close();
      }
      result.finish();
      return result;
    };
    omnibal::step_sampler sampler(samples_of(random), {4, 1}, {}, schedule);
    std::size_t seen = 0;
    for (int step = 0; step != 40; ++step) seen += sampler.next().size();
    return seen;
  });
  survive([](auto& random) {
    fickle const lies(random);
    auto const samples = samples_of(random);
    auto const bundles = omnibal::bundle_by(samples, [&](int) { return lies.whole(); });
    return omnibal::bundle_loads(bundles, samples, [&](int) { return lies.whole(); });
  });
}

TEST_CASE("a deferral_queue survives costs that change") {
  survive([](auto& random) {
    fickle const lies(random);
    omnibal::deferral_queue queue({.group_size = 5, .max_delay = 4});
    std::size_t seen = 0;
    for (int step = 0; step != 8; ++step) {
      auto const own = samples_of(random);
      seen += queue.push(own, own, [&](std::int64_t) { return lies.real(); }).ids.size();
    }
    return seen + queue.flush().ids.size();
  });
}
