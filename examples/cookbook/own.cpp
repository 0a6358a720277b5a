// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <span>
#include <vector>

namespace cookbook {

struct sample {
  int images, tokens;
};

std::vector<sample> const samples{{5, 1340}, {1, 358}, {3, 811}, {9, 2400}, {1, 290}, {5, 1310}};

void a_cost_of_your_own() {
  std::vector<sample> const mixed{{1, 3000}, {9, 900}, {2, 1500}, {8, 400}, {1, 600}};
  auto const milliseconds = [](sample const& s) { return 8.0 * s.images + 0.002 * s.tokens; };
  auto const show = [&](omnibal::grouping const& parts) {
    auto const loads = omnibal::group_loads(parts, mixed, milliseconds);
    std::cout << loads[0][0] << " and " << loads[1][0] << " ms: ";
    print(parts);
  };
  show(omnibal::lpt(mixed, 2, &sample::tokens));
  show(omnibal::lpt(mixed, 2, milliseconds));
}

// The encoder pads to the largest image count, the text does not.
struct mixed_batch {
  std::int64_t count = 0, images = 0, tokens = 0;
  void add(sample const& s) {
    ++count;
    images = std::max<std::int64_t>(images, s.images);
    tokens += s.tokens;
  }
  std::int64_t value() const { return 1000 * count * images + tokens; }
};

void a_cost_of_a_whole_batch() {
  static_assert(omnibal::set_cost<mixed_batch, sample>);
  print(omnibal::balance_set_cost(samples, 2, mixed_batch{}));
}

// Called with costs, a number of parts and `std::identity`.
struct every_other {
  omnibal::grouping operator()(std::span<std::int64_t const> costs, std::size_t parts,
                               std::identity) const {
    omnibal::grouping result;
    for (std::size_t part = 0; part != parts; ++part, result.close()) {
      for (std::size_t i = part; i < costs.size(); i += parts) {
        result.push(static_cast<std::uint32_t>(i));
      }
    }
    return result;
  }
};

// Called like rebalance: part r is for rank r, and rank 1 is fast.
struct two_thirds_to_the_last {
  omnibal::grouping operator()(omnibal::grouping_view home, std::span<std::int64_t const> costs,
                               std::span<std::int64_t const>,
                               omnibal::rebalance_options const&) const {
    omnibal::grouping result;
    for (std::uint32_t i = 0; i != costs.size(); ++i) {
      if (i == costs.size() / 3) result.close();
      result.push(i);
    }
    while (result.size() != home.size()) result.close();
    return result;
  }
};

void a_balancer_of_your_own() {
  std::vector<std::uint32_t> const home{0, 3, 3};
  std::vector<std::int64_t> const costs{10, 10, 10};
  auto const print_counts = [](omnibal::exchange_plan const& plan) {
    std::cout << plan.arrivals(0).size() << " and " << plan.arrivals(1).size() << " samples\n";
  };
  print_counts(omnibal::make_plan(home, costs, costs, {}, every_other{}));
  print_counts(omnibal::make_plan(home, costs, costs, {}, two_thirds_to_the_last{}));
}

// At most two samples in a group: the second resource counts them.
struct in_pairs {
  template <class Samples, class Demand>
  omnibal::packing operator()(Samples const& given, Demand const& demand, std::int64_t room) const {
    auto const both = [&](auto const& one) {
      return omnibal::resources<2>{std::int64_t{std::invoke(demand, one)}, 1};
    };
    return omnibal::best_fit_decreasing(given, both, omnibal::resources<2>{room, 2});
  }
};

void a_packer_of_your_own() {
  std::vector<std::int64_t> const lengths{900, 300, 2500, 100, 700, 200};
  print(omnibal::split_long(lengths, std::identity{}, 1000, in_pairs{}).groups);
}

// 1F1B with `more` micro-batches in flight on every stage.
struct eager_1f1b : omnibal::one_f_one_b {
  std::size_t more = 1;
  omnibal::operation_kind next(std::size_t stage, omnibal::stage_progress const& done) const {
    auto const most = std::min(micro_batches, stages - stage + more);
    bool const forward = done.forward != micro_batches && done.forward - done.backward < most;
    return forward ? omnibal::operation_kind::forward : omnibal::operation_kind::backward;
  }
};

void a_schedule_of_your_own() {
  static_assert(omnibal::pipeline_schedule<eager_1f1b>);
  omnibal::stage_time const time{10, 20};
  auto const plain = omnibal::simulate_pipeline(omnibal::one_f_one_b{4, 16}, time, 4, 500);
  auto const eager = omnibal::simulate_pipeline(eager_1f1b{{4, 16}, 1}, time, 4, 500);
  std::cout << plain.makespan << " ms with " << plain.peak_bytes[0] << " MB on stage 0, "
            << eager.makespan << " ms with " << eager.peak_bytes[0] << " MB\n";
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"a_cost_of_your_own", a_cost_of_your_own},
       {"a_cost_of_a_whole_batch", a_cost_of_a_whole_batch},
       {"a_balancer_of_your_own", a_balancer_of_your_own},
       {"a_packer_of_your_own", a_packer_of_your_own},
       {"a_schedule_of_your_own", a_schedule_of_your_own}});
}
