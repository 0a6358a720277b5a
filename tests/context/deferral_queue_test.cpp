// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "naive_deferral.hpp"

#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/deferral_queue.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <bit>
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

using omnibal::deferral_queue;
using omnibal::deferral_queue_options;
using omnibal::deferral_state;
using omnibal::rng::below;
using test::costed_sample;
using test::error_text;

using lengths = std::vector<std::int64_t>;
using ids = std::vector<std::uint64_t>;

// A checkpoint may hold the bytes.
static_assert(std::is_trivially_copyable_v<omnibal::deferred_sample>);
static_assert(std::has_unique_object_representations_v<omnibal::deferred_sample>);
static_assert(sizeof(omnibal::deferred_sample) == 24);

template <class Ids, class Lengths, class Cost>
concept pushes = requires(deferral_queue& queue, Ids const& names, Lengths const& own, Cost cost) {
  queue.push(names, own, cost);
};
struct tokens_of {
  std::int64_t operator()(std::int64_t length) const { return length; }
};
struct text_of {
  std::string operator()(std::int64_t length) const { return std::to_string(length); }
};
static_assert(pushes<ids, lengths, tokens_of>);
static_assert(pushes<std::vector<int>, std::array<std::uint8_t, 3>, double (*)(std::int64_t)>);
static_assert(!pushes<ids, std::vector<double>, tokens_of>);
static_assert(!pushes<std::vector<float>, lengths, tokens_of>);
static_assert(!pushes<ids, lengths, text_of>);

std::vector<std::uint64_t> ids_of(omnibal::deferral_step const& step) {
  return {step.ids.begin(), step.ids.end()};
}

std::int64_t squared(std::int64_t length) { return length * length; }

/// Times of attention, or some that need not grow with the length.
std::int64_t cost_in_stream(std::uint64_t seed, std::int64_t length) {
  return seed % 4 == 0 ? length * 7919 % 1009 : squared(length) / 4 + length;
}

/// A stream of seeded steps; the ids count its samples.
class seeded_stream {
 public:
  explicit seeded_stream(std::uint64_t seed) : random_(seed) {
    most_ = 1 + below(random_, 14);
    tail_ = 1 + below(random_, 12);
    options.group_size = static_cast<std::uint32_t>(1 + below(random_, 9));
    options.max_delay = static_cast<std::uint32_t>(below(random_, 7));
    if (below(random_, 2) == 0) options.threshold = static_cast<std::int64_t>(below(random_, 60));
    options.contents = seed;
  }

  /// New samples, without their costs.
  std::vector<costed_sample> next(std::uint64_t step) {
    std::vector<costed_sample> result(below(random_, most_ + 1));
    for (costed_sample& sample : result) {
      std::uint64_t const octave = std::uint64_t{1} << below(random_, tail_);
      sample = {count_++, step, static_cast<std::int64_t>(octave - 1 + below(random_, octave)), 0};
    }
    return result;
  }

  bool one_of(std::uint64_t chances) { return below(random_, chances) == 0; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

  deferral_queue_options options;

 private:
  omnibal::rng::engine random_;
  std::uint64_t most_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t count_ = 0;
};

/// Which samples ran, and whether each ran once and in time.
class run_samples {
 public:
  void add(omnibal::deferral_step const& step, deferral_queue_options const& options) {
    for (std::size_t i = 0; i != step.ids.size(); ++i) {
      late_ = late_ || step.delays[i] > options.max_delay;
      seen_.push_back(step.ids[i]);
    }
  }

  /// What is wrong after a stream of so many samples, empty where nothing is.
  [[nodiscard]] std::string fault(std::uint64_t count) {
    if (late_) return "a sample waited for too long";
    std::sort(seen_.begin(), seen_.end());
    for (std::uint64_t i = 0; i != seen_.size(); ++i) {
      if (seen_[i] != i) return "a sample is lost or runs twice";
    }
    return seen_.size() == count ? "" : "samples are lost";
  }

 private:
  std::vector<std::uint64_t> seen_;
  bool late_ = false;
};

/// Runs a stream through a queue, one that is restored before each step, and a naive one. `scale`
/// makes a cost of the number that the naive one computes with.
template <class Scale>
std::string stream_fault(std::uint64_t seed, Scale const& scale) {
  seeded_stream stream(seed);
  deferral_queue queue(stream.options);
  test::naive_deferral naive(stream.options);
  run_samples ran;
  auto const cost = [&](std::int64_t length) { return scale(cost_in_stream(seed, length)); };
  for (std::uint64_t step = 0; step != 14; ++step) {
    if (stream.one_of(8)) {
      stream.options.group_size = static_cast<std::uint32_t>(1 + seed % 5);
      queue = deferral_queue(stream.options, queue.state());
      naive.set_group_size(stream.options.group_size);
    }
    deferral_queue restored(stream.options, queue.state());
    std::uint64_t const now = queue.step();
    auto samples = stream.next(now);
    ids names;
    lengths own;
    for (costed_sample& sample : samples) {
      sample.cost = cost_in_stream(seed, sample.length);
      names.push_back(sample.id);
      own.push_back(sample.length);
    }
    bool const is_last = step == 13 || stream.one_of(10);
    auto const expected = naive.push(samples);
    auto const made = queue.push(names, own, cost);
    std::string found = test::deferral_fault(made, expected, now);
    if (found.empty()) {
      found = test::deferral_fault(restored.push(names, own, cost), expected, now);
    }
    if (found.empty()) found = test::waiting_fault(queue.state(), naive);
    if (found.empty() && !(queue.state() == restored.state())) found = "another state";
    ran.add(made, stream.options);
    if (is_last && found.empty()) {
      std::uint64_t const end = queue.step();
      auto const rest = queue.flush();
      found = test::deferral_fault(rest, naive.flush(), end);
      ran.add(rest, stream.options);
      if (!queue.empty() || queue.size() != 0) found = "samples after a flush";
      if (found.empty()) found = test::waiting_fault(queue.state(), naive);
      if (found.empty()) found = ran.fault(stream.count());
    }
    if (!found.empty()) return found + " in step " + std::to_string(now);
  }
  return {};
}

/// The even set with most samples, by trying all sets with all that never wait.
std::size_t largest_even_set(std::vector<costed_sample> const& samples,
                             deferral_queue_options const& options) {
  std::size_t most = 0;
  for (unsigned chosen = 0; chosen != 1u << samples.size(); ++chosen) {
    std::vector<costed_sample> set;
    bool is_whole = true;
    for (std::size_t i = 0; i != samples.size(); ++i) {
      bool const is_in = (chosen >> i & 1) != 0;
      if (is_in) set.push_back(samples[i]);
      is_whole = is_whole && (is_in || samples[i].length >= options.threshold);
    }
    bool const is_better = is_whole && set.size() > most;
    if (is_better && test::is_even(set, options)) most = set.size();
  }
  return most;
}

TEST_CASE("a long sample waits until others make its step even", "[context]") {
  deferral_queue queue({.group_size = 3, .max_delay = 4});
  auto const one = queue.push(ids{10, 11, 12, 13}, lengths{50, 7, 9, 8}, std::identity{});
  // Three times 50 is above 74, three times 9 above the other 24, and so on: none are even.
  CHECK_FALSE(one);
  CHECK(queue.size() == 4);
  auto const two = queue.push(ids{20, 21, 22}, lengths{60, 9, 7}, std::identity{});
  CHECK(ids_of(two) == ids{11, 12, 13, 21, 22});
  CHECK(std::vector(two.delays.begin(), two.delays.end()) ==
        std::vector<std::uint32_t>{1, 1, 1, 0, 0});
  CHECK(queue.size() == 2);
  auto const three = queue.push(ids{30, 31}, lengths{30, 40}, std::identity{});
  CHECK(ids_of(three) == ids{10, 20, 30, 31});
  CHECK(std::vector(three.lengths.begin(), three.lengths.end()) ==
        std::vector<std::int64_t>{50, 60, 30, 40});
  CHECK(queue.empty());
  CHECK(queue.step() == 3);
}

TEST_CASE("where one sample is due all run", "[context]") {
  deferral_queue queue({.group_size = 8, .max_delay = 2, .threshold = 100});
  CHECK(ids_of(queue.push(ids{1, 2}, lengths{1000, 5}, squared)) == ids{2});
  CHECK(ids_of(queue.push(ids{3, 4}, lengths{6, 2000}, squared)) == ids{3});
  CHECK(ids_of(queue.push(ids{5, 6}, lengths{7, 3000}, squared)) == ids{1, 4, 5, 6});
  CHECK(queue.empty());
  CHECK(ids_of(queue.push(ids{7, 8}, lengths{4000, 1}, squared)) == ids{8});
  CHECK(ids_of(queue.flush()) == ids{7});
  CHECK(queue.step() == 5);
  CHECK_FALSE(queue.flush());
  CHECK(queue.step() == 5);
}

TEST_CASE("nothing waits for one place, without a delay, or below the threshold", "[context]") {
  auto const options = GENERATE(deferral_queue_options{.group_size = 1},
                                deferral_queue_options{.group_size = 9, .max_delay = 0},
                                deferral_queue_options{.group_size = 9, .threshold = 1001});
  deferral_queue queue(options);
  for (std::uint64_t step = 0; step != 5; ++step) {
    CHECK(ids_of(queue.push(ids{4, 4, 2}, lengths{1000, 1, 0}, squared)) == ids{4, 4, 2});
    CHECK(queue.empty());
  }
}

TEST_CASE("a queue runs what a naive one runs, restored in any step", "[context]") {
  std::string fault;
  for (std::uint64_t seed = 0; seed != 20'000 && fault.empty(); ++seed) {
    fault = stream_fault(seed, std::identity{});
    if (!fault.empty()) fault += " of stream " + std::to_string(seed);
  }
  CHECK(fault == "");
}

TEST_CASE("costs may be floating-point numbers, tiny or large", "[context]") {
  std::string fault;
  for (std::uint64_t seed = 0; seed != 6'000 && fault.empty(); ++seed) {
    double const unit = std::array{0.25, 0x1p-900, 0x1p900}[seed % 3];
    fault =
        stream_fault(seed, [unit](std::int64_t cost) { return unit * static_cast<double>(cost); });
    if (!fault.empty()) fault += " of stream " + std::to_string(seed);
  }
  CHECK(fault == "");
}

TEST_CASE("as many equal costs as places are even, whatever they are", "[context]") {
  for (double const cost : {0.1, 1.0 / 3, 1e-300, 7e200}) {
    for (std::uint32_t places = 2; places != 40; ++places) {
      deferral_queue queue({.group_size = places});
      CHECK_FALSE(
          queue.push(ids(places - 1), lengths(places - 1), [cost](std::int64_t) { return cost; }));
      CHECK(queue.push(ids(1), lengths(1), [cost](std::int64_t) { return cost; }));
    }
  }
}

TEST_CASE("no even step has more samples", "[context]") {
  for (std::uint64_t seed = 0; seed != 2'000; ++seed) {
    omnibal::rng::engine random(seed);
    deferral_queue_options const options{
        .group_size = static_cast<std::uint32_t>(2 + below(random, 5)),
        .threshold = static_cast<std::int64_t>(below(random, 20))};
    std::vector<costed_sample> samples(below(random, 9));
    ids names;
    lengths own;
    for (costed_sample& sample : samples) {
      sample.length = static_cast<std::int64_t>(below(random, 1 + below(random, 40)));
      sample.cost = squared(sample.length);
      own.push_back(sample.length);
      names.push_back(0);
    }
    std::vector<costed_sample> short_ones;
    for (costed_sample const& sample : samples) {
      if (sample.length < options.threshold) short_ones.push_back(sample);
    }
    deferral_queue queue(options);
    std::size_t const made = queue.push(names, own, squared).ids.size();
    REQUIRE(made == std::max(short_ones.size(), largest_even_set(samples, options)));
  }
}

TEST_CASE("a state is small, and goes on with other group sizes", "[context]") {
  deferral_queue queue({.group_size = 64, .max_delay = 5, .threshold = 4096, .contents = 7});
  lengths own(1000, 300);
  own[17] = 130'000;
  own[900] = 90'000;
  static_cast<void>(queue.push(ids(1000, 5), own, squared));
  deferral_state const state = queue.state();
  CHECK(state.step == 1);
  CHECK(state.waiting == std::vector<omnibal::deferred_sample>{{5, 0, 130'000}, {5, 0, 90'000}});
  deferral_queue fewer({.group_size = 1, .max_delay = 5, .threshold = 4096, .contents = 7}, state);
  CHECK(fewer.size() == 2);
  CHECK(fewer.push(ids{}, lengths{}, squared).lengths.size() == 2);
  // Without new samples a queue empties itself.
  std::size_t pushes = 0;
  while (!queue.empty()) {
    static_cast<void>(queue.push(ids{}, lengths{}, squared));
    ++pushes;
  }
  CHECK(pushes == 5);
  CHECK(queue.step() == 6);
}

TEST_CASE("the samples of a step go to groups of ranks", "[context]") {
  constexpr std::uint32_t ranks = 32;
  constexpr std::uint32_t widest = 8;
  omnibal::context_cost cost{.micro_step = 10};
  for (std::uint32_t degree = 1; degree <= widest; ++degree) {
    cost.degrees.push_back({5, 1.0 / degree, 0.0001 / degree});
  }
  omnibal::context_groups_options const options{.capacity = 16'384};
  auto const memory = [](std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  };
  auto const alone = [&](std::int64_t length) {
    if (memory(length, 1) <= options.capacity) return 0.0;
    auto const tokens = static_cast<double>(length);
    return cost.degrees[widest - 1](tokens, tokens * tokens);
  };
  omnibal::context_groups_workspace workspace;
  auto const time_of_ten_steps = [&](std::uint32_t max_delay, std::uint64_t& tokens) {
    deferral_queue queue({.group_size = ranks / widest, .max_delay = max_delay});
    double sum = 0;
    for (std::uint64_t step = 0; step != 10; ++step) {
      lengths own(200, 400);
      if (step % 3 == 0) own[7] = 100'000;
      auto const now = step == 9 ? queue.flush() : queue.push(ids(200, step), own, alone);
      for (std::int64_t const length : now.lengths) tokens += static_cast<std::uint64_t>(length);
      auto const& plan =
          omnibal::context_groups(now.lengths, ranks, cost, memory, options, workspace);
      REQUIRE(plan.status == omnibal::solve_status::solved);
      CHECK(plan.samples.item_count() == now.ids.size());
      sum += plan.makespan;
    }
    return sum;
  };
  std::uint64_t tokens[2] = {};
  double const at_once = time_of_ten_steps(0, tokens[0]);
  double const deferred = time_of_ten_steps(8, tokens[1]);
  CHECK(tokens[0] == tokens[1]);
  CHECK(deferred < 0.7 * at_once);
}

std::string error_of(deferral_queue_options const& options, deferral_state const& state) {
  return error_text<std::invalid_argument>([&] { deferral_queue(options, state); });
}

/// A digest that fits, so that what lies behind it is looked at.
deferral_state with_digest(deferral_queue_options const& options, deferral_state state) {
  omnibal::detail::data_digest digest;
  digest.add(std::uint64_t{options.max_delay});
  digest.add(static_cast<std::uint64_t>(options.threshold));
  digest.add(options.contents);
  digest.add(state.step);
  for (auto const& sample : state.waiting) {
    digest.add(sample.id);
    digest.add(sample.step);
    digest.add(static_cast<std::uint64_t>(sample.length));
  }
  state.digest = digest.value();
  return state;
}

TEST_CASE("wrong arguments of a deferral_queue are named with their values", "[context]") {
  auto const error = [](deferral_queue_options const& options) {
    return error_text<std::invalid_argument>([&] { deferral_queue queue(options); });
  };
  CHECK(error({.group_size = 0}) ==
        "omnibal::deferral_queue: options.group_size is 0, must be positive");
  CHECK(error({.threshold = -4}) ==
        "omnibal::deferral_queue: options.threshold is -4, must be finite and not negative");
}

TEST_CASE("wrong samples are named with their values and change nothing", "[context]") {
  deferral_queue queue({.group_size = 4});
  static_cast<void>(queue.push(ids{1, 2}, lengths{9, 3}, squared));
  deferral_state const before = queue.state();
  auto const error = [&](auto const& names, auto const& own, auto const& cost) {
    auto const text =
        error_text<std::invalid_argument>([&] { static_cast<void>(queue.push(names, own, cost)); });
    CHECK(queue.state() == before);
    return text;
  };
  CHECK(error(ids{1, 2, 3}, lengths{1, 2}, squared) ==
        "omnibal::deferral_queue::push: ids has 3 values for 2 lengths");
  CHECK(error(ids{1, 2}, lengths{1, -2}, squared) ==
        "omnibal::deferral_queue::push: lengths[1] is -2, must be finite and not negative");
  CHECK(error(ids{1}, std::vector{~std::uint64_t{0}}, squared) ==
        "omnibal::deferral_queue::push: lengths[0] is 18446744073709551615, must be at most "
        "9223372036854775807");
  auto const infinity = [](std::int64_t length) {
    return length == 7 ? std::numeric_limits<double>::infinity() : 1.0;
  };
  CHECK(error(ids{1, 2}, lengths{1, 7}, infinity) ==
        "omnibal::deferral_queue::push: cost[1] is inf, must be finite and not negative");
  CHECK(error(ids{1}, lengths{5}, std::negate{}) ==
        "omnibal::deferral_queue::push: cost[0] is -5, must be finite and not negative");
  auto const huge = [](std::int64_t) { return std::numeric_limits<std::int64_t>::max(); };
  CHECK(error_text<std::overflow_error>(
            [&] { static_cast<void>(queue.push(ids{1}, lengths{5}, huge)); }) ==
        "omnibal::deferral_queue::push: the sum of the costs exceeds the largest value of its "
        "type");
  CHECK(queue.state() == before);
  auto const throws = [](std::int64_t length) {
    if (length == 3) throw std::runtime_error("no time");
    return length;
  };
  CHECK(error_text<std::runtime_error>(
            [&] { static_cast<void>(queue.push(ids{1}, lengths{5}, throws)); }) == "no time");
  CHECK(queue.state() == before);
}

TEST_CASE("costs near the limits of numbers are compared exactly", "[context]") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  deferral_queue queue({.group_size = std::numeric_limits<std::uint32_t>::max()});
  auto const all = [](std::int64_t) { return most; };
  CHECK_FALSE(queue.push(ids{1}, lengths{5}, all));
  deferral_queue two({.group_size = 2});
  auto const half = [](std::int64_t length) { return most / 2 + length; };
  CHECK_FALSE(two.push(ids{1, 2}, lengths{0, 1}, half));
  CHECK(two.push(ids{}, lengths{}, [](std::int64_t) { return most / 2; }));
  deferral_queue free({.group_size = 1000});
  CHECK(free.push(ids{1, 2}, lengths{0, 1}, [](std::int64_t) { return 0; }));
}

TEST_CASE("foreign states are refused", "[context]") {
  deferral_queue_options const options{
      .group_size = 50, .max_delay = 6, .threshold = 10, .contents = 3};
  deferral_queue queue(options);
  static_cast<void>(queue.push(ids{1, 2}, lengths{90, 30}, squared));
  deferral_state const state = queue.state();
  CHECK(error_of(options, state) == "no error");
  auto changed = options;
  changed.max_delay = 7;
  std::string const own =
      error_text<std::invalid_argument>([&] { deferral_queue(changed, deferral_state{}); });
  CHECK(own.starts_with("omnibal::deferral_queue: state.digest is 0, must be "));
  CHECK(own.ends_with(
      ", that of options.max_delay, options.threshold, options.contents, state.step and "
      "state.waiting: at least one of these has changed since the state was taken"));
  CHECK(error_of(changed, state) != "no error");
  changed = options;
  changed.threshold = 11;
  CHECK(error_of(changed, state) != "no error");
  changed = options;
  changed.contents = 4;
  CHECK(error_of(changed, state) != "no error");
}

TEST_CASE("damaged states are refused", "[context]") {
  deferral_queue_options const options{.group_size = 50, .max_delay = 6, .threshold = 10};
  deferral_queue queue(options);
  static_cast<void>(queue.push(ids{1, 2}, lengths{90, 30}, squared));
  static_cast<void>(queue.push(ids{3}, lengths{70}, squared));
  deferral_state const state = queue.state();
  REQUIRE(state.waiting.size() == 3);
  auto const refuses = [&](auto const& damage) {
    deferral_state damaged = state;
    damage(damaged);
    return error_of(options, damaged).starts_with("omnibal::deferral_queue: state.digest is ");
  };
  for (unsigned bit = 0; bit != 64; ++bit) {
    std::uint64_t const flipped = std::uint64_t{1} << bit;
    CHECK(refuses([&](auto& own) { own.digest ^= flipped; }));
    CHECK(refuses([&](auto& own) { own.step ^= flipped; }));
    for (std::size_t i = 0; i != 3; ++i) {
      CHECK(refuses([&](auto& own) { own.waiting[i].id ^= flipped; }));
      CHECK(refuses([&](auto& own) { own.waiting[i].step ^= flipped; }));
      CHECK(refuses([&](auto& own) {
        own.waiting[i].length = std::bit_cast<std::int64_t>(
            std::bit_cast<std::uint64_t>(own.waiting[i].length) ^ flipped);
      }));
    }
  }
  CHECK(refuses([](auto& own) { own.waiting.pop_back(); }));
  CHECK(refuses([](auto& own) { std::swap(own.waiting[0], own.waiting[1]); }));
  CHECK(refuses([](auto& own) { own.waiting.push_back(own.waiting.back()); }));
}

TEST_CASE("states that no queue could have are refused", "[context]") {
  deferral_queue_options const options{.group_size = 50, .max_delay = 3, .threshold = 10};
  auto const error = [&](deferral_state const& state) {
    return error_of(options, with_digest(options, state));
  };
  CHECK(error({0, 9, {{1, 6, 10}, {2, 6, 10}, {3, 8, 10}}}) == "no error");
  CHECK(error({0, 9, {{1, 8, 10}, {2, 8, 9}}}) ==
        "omnibal::deferral_queue: state.waiting[1].length is 9, must be at least 10");
  CHECK(error({0, 9, {{1, 5, 10}}}) ==
        "omnibal::deferral_queue: state.waiting[0].step is 5, must be one of the last 3 of 9 steps "
        "and not below that of the sample before");
  CHECK(error({0, 9, {{1, 9, 10}}}) ==
        "omnibal::deferral_queue: state.waiting[0].step is 9, must be one of the last 3 of 9 steps "
        "and not below that of the sample before");
  CHECK(error({0, 9, {{1, 8, 10}, {2, 7, 10}}}) ==
        "omnibal::deferral_queue: state.waiting[1].step is 7, must be one of the last 3 of 9 steps "
        "and not below that of the sample before");
}

TEST_CASE("costs that change their mind lose no sample", "[context]") {
  for (std::uint64_t seed = 1; seed != 300; ++seed) {
    omnibal::rng::engine random(seed);
    auto const lying = [&random](std::int64_t) {
      std::uint64_t const chance = below(random, 200);
      if (chance == 0) throw std::runtime_error("no time");
      double const wrong[] = {-1, std::numeric_limits<double>::quiet_NaN()};
      return chance < 3 ? wrong[chance - 1] : static_cast<double>(below(random, 1000));
    };
    deferral_queue queue({.group_size = 6, .max_delay = 3});
    run_samples ran;
    std::uint64_t count = 0;
    for (int step = 0; step != 20; ++step) {
      ids names(below(random, 10));
      for (std::size_t i = 0; i != names.size(); ++i) names[i] = count + i;
      std::size_t const before = queue.size();
      try {
        auto const now = queue.push(names, lengths(names.size(), 5), lying);
        count += names.size();
        ran.add(now, {.max_delay = 3});
        CHECK(now.ids.size() + queue.size() == before + names.size());
      } catch (std::runtime_error const&) {
      } catch (std::invalid_argument const&) {
      }
    }
    ran.add(queue.flush(), {.max_delay = 3});
    CHECK(ran.fault(count) == "");
  }
}

}  // namespace
