#include "recipes.hpp"

#include <omnibal/balance/balance_set.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/split_long.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <numeric>
#include <span>
#include <vector>

namespace cookbook {

struct sample {
  int images, tokens;
};

std::vector<sample> const samples{{5, 1340}, {1, 358}, {3, 811}, {9, 2400}, {1, 290}, {5, 1310}};

void a_cost_of_your_own() {
  // A member, a lambda, an object that measured: anything that gives a number for a sample.
  print(omnibal::lpt(samples, 2, &sample::tokens));
  auto const milliseconds = [](sample const& s) { return 8.0 * s.images + 0.002 * s.tokens; };
  print(omnibal::lpt(samples, 2, milliseconds));
}

// A cost that is no sum: the encoder pads to the largest image count, the text does not.
class mixed_batch {
 public:
  void add(sample const& s) {
    ++count_;
    images_ = std::max<std::int64_t>(images_, s.images);
    tokens_ += s.tokens;
  }
  std::int64_t value() const { return 1000 * count_ * images_ + tokens_; }

 private:
  std::int64_t count_ = 0, images_ = 0, tokens_ = 0;
};

void a_cost_of_a_whole_batch() {
  static_assert(omnibal::set_cost<mixed_batch, sample>);
  print(omnibal::balance_set(samples, 2, mixed_batch{}));
}

// A packer is what is called like one and loses no index: here a long sample with the shortest.
struct long_with_short {
  template <class Samples, class Demand>
  omnibal::packing operator()(Samples const& given, Demand const& demand, std::int64_t room) const {
    auto const length = [&](std::uint32_t index) { return std::invoke(demand, given[index]); };
    std::vector<std::uint32_t> order(std::size(given));
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto left, auto right) { return length(left) > length(right); });
    omnibal::packing result;
    auto first = order.begin();
    for (auto last = order.end(); first != last;) {
      std::int64_t load = length(*first);
      if (load > room) {
        result.oversized.push_back(*first++);
        continue;
      }
      result.groups.push(*first++);
      while (first != last && load + length(last[-1]) <= room) {
        load += length(*--last);
        result.groups.push(*last);
      }
      result.groups.close();
    }
    std::sort(result.oversized.begin(), result.oversized.end());
    return result;
  }
};

void a_packer_of_your_own() {
  std::vector<std::int64_t> const lengths{900, 300, 2500, 100, 700, 200};
  print(long_with_short{}(lengths, std::identity{}, 1000).groups);
  // What takes a packer takes this one.
  print(omnibal::split_long(lengths, std::identity{}, 1000, long_with_short{}).groups);
  print(omnibal::pack_levels(lengths, std::identity{}, std::vector{1000, 4000}, long_with_short{})
            .groups);
}

void a_shuffle_and_a_rule_of_your_own() {
  auto const reversed = [](std::span<std::uint32_t> indices, std::uint64_t /*round*/) {
    std::reverse(indices.begin(), indices.end());
  };
  auto const is_full = [](auto const& load) { return load[0] >= 3000; };
  print(omnibal::isf(samples, &sample::tokens, 4096, {.rounds = 5}, is_full, reversed).groups);
}

// 1F1B in which every stage keeps `more` micro-batches in flight than it must.
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
  auto const plain = omnibal::simulate(omnibal::one_f_one_b{4, 16}, time, 4, 500);
  auto const eager = omnibal::simulate(eager_1f1b{{4, 16}, 1}, time, 4, 500);
  std::cout << plain.makespan << " ms with " << plain.peak_bytes[0] << " MB on stage 0, "
            << eager.makespan << " ms with " << eager.peak_bytes[0] << " MB\n";
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"a_cost_of_your_own", a_cost_of_your_own},
       {"a_cost_of_a_whole_batch", a_cost_of_a_whole_batch},
       {"a_packer_of_your_own", a_packer_of_your_own},
       {"a_shuffle_and_a_rule_of_your_own", a_shuffle_and_a_rule_of_your_own},
       {"a_schedule_of_your_own", a_schedule_of_your_own}});
}
