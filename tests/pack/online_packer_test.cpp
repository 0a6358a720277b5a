// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"
#include "brute_force.hpp"
#include "error_text.hpp"
#include "fnv1a.hpp"
#include "samples.hpp"
#include "stream.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::online_packer;
using omnibal::online_packer_options;
using omnibal::online_state;
using omnibal::resources;

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// What works in other than 64-bit integers and doubles, or mixes them, does not compile.
template <class T>
concept packs_in = requires {
  typename online_packer<2, T>;
};
static_assert(packs_in<std::int64_t> && packs_in<double>);
static_assert(!packs_in<int> && !packs_in<float> && !packs_in<bool>);

template <class Packer, class Demand>
concept takes = requires(Packer packer, Demand demand) {
  packer.push(0, demand);
};
static_assert(takes<online_packer<1>, int> && takes<online_packer<1>, std::uint64_t>);
// A capacity of zero holds amounts of zero.
static_assert(omnibal::detail::share_scale<double>(0.0)(0.0) == 0);
static_assert(takes<online_packer<2>, resources<2, std::uint8_t>>);
static_assert(takes<online_packer<2, double>, resources<2>>);
static_assert(!takes<online_packer<1>, double> && !takes<online_packer<2>, resources<2, float>>);
static_assert(!takes<online_packer<2>, int> && !takes<online_packer<2>, resources<3>>);

static_assert(std::is_same_v<decltype(online_packer(resources{9, 4096})), online_packer<2>>);
static_assert(std::is_same_v<decltype(online_packer(resources{0.5}, {.buffer = 2})),
                             online_packer<1, double>>);
static_assert(!std::is_convertible_v<resources<2>, online_packer<2>>);
static_assert(std::is_trivially_copyable_v<omnibal::waiting_sample<2>>);
static_assert(std::has_unique_object_representations_v<omnibal::waiting_sample<3>>);
static_assert(std::has_unique_object_representations_v<omnibal::online_header<3>>);

online_packer_options const several_options[] = {
    {.buffer = 1},
    {.buffer = 2, .candidates = 1},
    {.buffer = 7, .longest_wait = 3},
    {.buffer = 32, .longest_wait = 1},
    {.buffer = 32, .longest_wait = 40, .candidates = 3},
    {.buffer = 100, .longest_wait = 1000, .candidates = 20},
    {.buffer = 1000},
};

template <std::size_t R, class T>
void check_streams(std::vector<resources<R, T>> const& samples, resources<R, T> const& capacity) {
  for (online_packer_options const& options : several_options) {
    INFO("buffer " << options.buffer << ", longest wait " << options.longest_wait);
    auto const output = test::run_stream(online_packer<R, T>(capacity, options), samples);
    CHECK(test::stream_fault(output, samples, capacity, options) == "");
  }
}

template <std::size_t R>
resources<R, double> tenths(resources<R> const& amounts) {
  resources<R, double> result{};
  for (std::size_t r = 0; r != R; ++r) result[r] = static_cast<double>(amounts[r]) * 0.1;
  return result;
}

/// The policy as one would write it down, for capacities so small that no two amounts of a resource
/// share a level or a class. The fine resource comes first.
template <std::size_t R>
class naive_policy {
 public:
  using amounts_type = resources<R>;
  using members = std::vector<std::size_t>;

  explicit naive_policy(amounts_type const& capacity) : capacity_(capacity) {
    for (std::size_t r = 0; r != R; ++r) {
      scales_[r] = omnibal::detail::share_scale<std::int64_t>(capacity[r]);
    }
  }

  /// The oldest samples up to five eighths of the capacity, and then the filling that leaves least
  /// of the first `fillings` among as many as there are candidates.
  members group(std::vector<amounts_type> const& waiting, std::size_t candidates,
                std::size_t fillings) {
    weigh(waiting);
    amounts_type low = capacity_;
    for (auto& amount : low.amounts) amount = amount / 2 + amount / 8;
    members base{0};
    amounts_type load = waiting[0];
    while (base.size() != waiting.size() && (load + waiting[base.size()]).fits(low)) {
      load += waiting[base.size()];
      base.push_back(base.size());
    }
    members best = base;
    std::uint64_t min_waste = ~std::uint64_t{0};
    auto const consider = [&](members group, amounts_type sum) {
      auto next = most_valuable(waiting, group, sum);
      for (; next != waiting.size(); next = most_valuable(waiting, group, sum)) {
        group.push_back(next);
        sum += waiting[next];
      }
      std::uint64_t const waste = weighted(capacity_ - sum);
      if (group == base || waste >= min_waste) return;
      min_waste = waste;
      best = std::move(group);
    };
    consider(base, load);
    std::size_t looks = 2 * candidates;
    std::size_t tried = 1;
    for (std::size_t i = base.size(); i != waiting.size() && tried < fillings; ++i) {
      if (!(load + waiting[i]).fits(capacity_)) {
        if (--looks == 0) break;
        continue;
      }
      auto group = base;
      group.push_back(i);
      consider(std::move(group), load + waiting[i]);
      ++tried;
    }
    return best;
  }

 private:
  void weigh(std::vector<amounts_type> const& waiting) {
    std::array<std::uint64_t, R> totals{};
    std::uint64_t sum = 0;
    for (auto const& sample : waiting) {
      for (std::size_t r = 0; r != R; ++r) totals[r] += scales_[r](sample[r]);
    }
    for (std::uint64_t const total : totals) sum += total;
    std::uint64_t const scale = (std::uint64_t{1} << 62) / std::max<std::uint64_t>(1, sum);
    for (std::size_t r = 0; r != R; ++r) weights_[r] = 1 + (totals[r] * scale >> 47);
  }

  [[nodiscard]] std::uint64_t weighted(amounts_type const& amounts) const {
    std::uint64_t result = 0;
    for (std::size_t r = 0; r != R; ++r) result += scales_[r](amounts[r]) * weights_[r];
    return result;
  }

  [[nodiscard]] std::size_t most_valuable(std::vector<amounts_type> const& waiting,
                                          members const& group, amounts_type const& sum) const {
    constexpr std::uint64_t whole = omnibal::detail::share_scale<std::int64_t>::whole;
    auto const level_worth = whole / (static_cast<std::uint64_t>(capacity_[0]) + 1) + 1;
    std::size_t result = waiting.size();
    std::uint64_t most = 0;
    // Of equal ones the one that takes less of the coarse resources, the last of them first.
    amounts_type least{};
    for (std::size_t i = 0; i != waiting.size(); ++i) {
      if (!(sum + waiting[i]).fits(capacity_)) continue;
      if (std::find(group.begin(), group.end(), i) != group.end()) continue;
      auto coarse = waiting[i];
      coarse[0] = 0;
      std::uint64_t const worth =
          weighted(coarse) + static_cast<std::uint64_t>(waiting[i][0]) * level_worth * weights_[0];
      bool const is_less =
          std::lexicographical_compare(std::rbegin(coarse.amounts), std::rend(coarse.amounts),
                                       std::rbegin(least.amounts), std::rend(least.amounts));
      bool const is_better = result == waiting.size() || worth > most || (worth == most && is_less);
      if (!is_better) continue;
      result = i;
      most = worth;
      least = coarse;
    }
    return result;
  }

  amounts_type capacity_;
  std::array<omnibal::detail::share_scale<std::int64_t>, R> scales_;
  std::array<std::uint64_t, R> weights_{};
};

template <class T>
std::vector<std::byte> bytes_of(std::span<T const> values) {
  auto const bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEMPLATE_TEST_CASE("online_packer loses nothing and keeps its bounds", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (auto const& set : test::all_sets<TestType::value>(1, 300)) {
    INFO(set.name);
    check_streams(set.samples, set.capacity);
    std::vector<resources<TestType::value, double>> samples;
    for (auto const& sample : set.samples) samples.push_back(tenths(sample));
    check_streams(samples, tenths(set.capacity));
  }
}

TEST_CASE("online_packer takes many resources and the largest capacities") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  test::random_amounts random(2);
  auto const capacity = [] {
    resources<8> result{};
    for (std::size_t r = 0; r != 8; ++r) result[r] = most >> (7 * r);
    return result;
  }();
  std::vector<resources<8>> samples(300);
  for (auto& sample : samples) {
    for (std::size_t r = 0; r != 8; ++r) sample[r] = random.heavy_tail(capacity[r]);
  }
  check_streams(samples, capacity);
  check_streams(std::vector<resources<1>>(50, {most}), {most});
  check_streams(std::vector<resources<2>>(50, {1, most / 2}), {1, most});
}

TEMPLATE_TEST_CASE("online_packer gives the groups of a naive one", "[slow]",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  constexpr std::size_t kinds = TestType::value;
  constexpr std::int64_t limits[] = {1000, 7, 6};
  resources<kinds> capacity{};
  for (std::size_t r = 0; r != kinds; ++r) capacity[r] = limits[r];
  naive_policy<kinds> policy(capacity);
  test::random_amounts random(3);
  // All amounts, up to a part of the capacity, and how often few amounts occur.
  for (std::int64_t const part : {1, 2, 3, 16, 200, 2000}) {
    for (std::size_t const candidates : {1u, 2u, 6u, 50u}) {
      online_packer<kinds> packer(capacity, {.buffer = 256, .candidates = candidates});
      std::vector<std::uint64_t> ids;
      std::vector<resources<kinds>> waiting;
      std::size_t groups = 0;
      std::size_t complete = 0;
      auto const expect_group = [&](auto const& result) {
        // Where lookups take long, the last fillings are not tried.
        std::vector<std::size_t> members;
        bool is_equal = false;
        for (std::size_t fillings = candidates; fillings != 0 && !is_equal; --fillings) {
          members = policy.group(waiting, candidates, fillings);
          std::vector<std::uint64_t> expected;
          for (std::size_t const member : members) expected.push_back(ids[member]);
          is_equal =
              std::equal(result.ids.begin(), result.ids.end(), expected.begin(), expected.end());
          complete += fillings == candidates && is_equal ? 1 : 0;
        }
        REQUIRE(is_equal);
        ++groups;
        std::sort(members.rbegin(), members.rend());
        for (std::size_t const member : members) {
          waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(member));
          ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(member));
        }
      };
      for (std::size_t pushed = 0; pushed != 700; ++pushed) {
        resources<kinds> demand{};
        for (std::size_t r = 0; r != kinds; ++r) {
          std::int64_t const largest =
              std::max<std::int64_t>(part == 2000 ? 0 : 1, limits[r] / part);
          demand[r] = random.between(random.between(0, 3) == 0 ? largest / 3 : 0, largest);
        }
        waiting.push_back(demand);
        ids.push_back(pushed);
        auto const result = packer.push(pushed, demand);
        REQUIRE(static_cast<bool>(result) == (waiting.size() == 257));
        if (result) expect_group(result);
      }
      while (!waiting.empty()) expect_group(packer.flush());
      CHECK(packer.empty());
      CHECK(5 * complete > groups);
    }
  }
}

TEMPLATE_TEST_CASE("online_packer leaves nothing behind that a group has room for", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>)) {
  constexpr std::size_t kinds = TestType::value;
  // So small that no two amounts share a level.
  constexpr std::int64_t limits[] = {1000, 9};
  resources<kinds> capacity{};
  for (std::size_t r = 0; r != kinds; ++r) capacity[r] = limits[r];
  test::random_amounts random(4);
  for (int repeat = 0; repeat != 8; ++repeat) {
    online_packer<kinds> packer(capacity, {.buffer = 256, .candidates = 4});
    std::uint64_t groups = 0;
    for (std::uint64_t id = 0; id != 1500; ++id) {
      resources<kinds> demand{};
      for (std::size_t r = 0; r != kinds; ++r) demand[r] = random.heavy_tail(limits[r] + 1);
      auto const result = packer.push(id, demand);
      if (!result) continue;
      ++groups;
      auto const left = capacity - result.load;
      bool one_fits = false;
      for (auto const& sample : packer.state().waiting) one_fits |= sample.demand.fits(left);
      CHECK_FALSE(one_fits);
    }
    CHECK(groups > 50);
  }
}

TEST_CASE("online_packer takes at least the fewest groups, and rarely more when flushed") {
  std::size_t fewest = 0;
  std::size_t taken = 0;
  for (std::uint64_t seed = 0; seed != 40; ++seed) {
    for (auto const& set : test::small_sets<2>(seed, 9)) {
      INFO(set.name);
      auto const output = test::run_stream(online_packer<2>(set.capacity), set.samples);
      std::size_t const least = test::min_groups(set.samples, set.capacity);
      CHECK(output.groups.size() >= least);
      CHECK(output.groups.size() <= least + 1);
      fewest += least;
      taken += output.groups.size();
    }
  }
  CHECK(100 * taken <= 102 * fewest);
}

TEST_CASE("online_packer comes close to best-fit decreasing of the whole stream") {
  // Not what comes in the order of its size: that cannot wait for its counterparts.
  std::set<std::string> const others{"zeros", "ascending", "descending"};
  for (auto const& set : test::small_sets<2>(5, 20'000)) {
    if (others.contains(set.name)) continue;
    INFO(set.name);
    auto const output =
        test::run_stream(online_packer<2>(set.capacity, {.buffer = 512}), set.samples);
    auto const offline =
        omnibal::best_fit_decreasing(set.samples, std::identity{}, set.capacity).groups.size();
    CHECK(100 * output.groups.size() <= 104 * offline + 200);
  }
}

TEST_CASE("online_packer allocates nothing once it is made") {
  for (auto const& set : test::all_sets<2>(9, 1000)) {
    INFO(set.name);
    online_packer<2> const original(set.capacity, {.buffer = 100, .longest_wait = 300});
    online_packer<2> packer(original);
    std::size_t taken = 0;
    CHECK(test::allocations_of([&] {
            for (std::size_t i = 0; i != set.samples.size(); ++i) {
              auto const result = packer.push(i, set.samples[i]);
              taken += result.ids.size() + (result.oversized ? 1 : 0);
            }
            while (auto const result = packer.flush()) taken += result.ids.size();
          }) == 0);
    CHECK(taken == set.samples.size());
  }
  auto const made = [](std::int64_t capacity, std::uint64_t buffer) {
    return test::allocations_of([&] { online_packer<1>({capacity}, {.buffer = buffer}); });
  };
  CHECK(made(std::int64_t{1} << 40, 4096) == made(1, 1));
}

TEST_CASE("online_packer does not wait for samples that fill a group") {
  // Two of these never fit together.
  online_packer<1> packer({10}, {.buffer = 4});
  for (std::uint64_t id = 0; id != 100; ++id) {
    auto const result = packer.push(id, 6);
    CHECK(result.ids.size() == (id < 4 ? 0 : 1));
    if (result) CHECK(result.ids[0] == id - 4);
    CHECK(packer.size() == std::min<std::size_t>(id + 1, 4));
  }
  std::uint64_t next = 96;
  while (auto const result = packer.flush()) {
    CHECK(result.ids.size() == 1);
    CHECK(result.ids[0] == next++);
  }
  CHECK(next == 100);
}

TEST_CASE("online_packer says that a sample is oversized and counts its push") {
  online_packer packer(resources{9, 100}, {.longest_wait = 2});
  CHECK_FALSE(packer.push(7, resources{1, 1}).oversized);
  auto const second = packer.push(8, resources{10, 1});
  CHECK(second.oversized);
  CHECK_FALSE(static_cast<bool>(second));
  CHECK(packer.size() == 1);
  auto const third = packer.push(9, resources{0, 101});
  CHECK(third.oversized);
  REQUIRE(third.ids.size() == 1);
  CHECK(third.ids[0] == 7);
  CHECK(third.load == resources{1, 1});
  CHECK(packer.empty());
  CHECK(packer.push(10, resources{9, std::numeric_limits<std::int64_t>::max()}).oversized);
  CHECK_FALSE(static_cast<bool>(packer.flush()));
}

TEST_CASE("online_packer has the same future wherever it is saved and restored") {
  auto const check = [](auto const& samples, auto const& capacity) {
    for (online_packer_options const& options : several_options) {
      online_packer packer(capacity, options);
      auto const whole = test::run_stream(packer, samples);
      auto output = whole;
      output.groups.clear();
      output.oversized.clear();
      for (std::size_t at = 0; at != samples.size() + 1; ++at) {
        auto const state = packer.state();
        decltype(packer) restored(state);
        CHECK(restored.state() == state);
        auto resumed = output;
        test::push_all(restored, samples, at, samples.size(), resumed);
        test::flush_all(restored, samples.size(), resumed);
        REQUIRE(resumed == whole);
        if (at != samples.size()) test::push_all(packer, samples, at, at + 1, output);
      }
    }
  };
  for (auto const& set : test::small_sets<2>(6, 70)) {
    INFO(set.name);
    check(set.samples, set.capacity);
    std::vector<resources<2, double>> samples;
    for (auto const& sample : set.samples) samples.push_back(tenths(sample));
    check(samples, tenths(set.capacity));
  }
}

TEST_CASE("online_packer is restored in the middle of a flush and from bytes") {
  auto const set = test::small_sets<2>(7, 200).back();
  online_packer<2> packer(set.capacity, {.buffer = 64});
  test::stream_output<2, std::int64_t> output;
  test::push_all(packer, set.samples, 0, 200, output);
  static_cast<void>(packer.flush());

  auto const state = packer.state();
  auto const header = bytes_of(std::span(&state.header, 1));
  auto const waiting = bytes_of(std::span(state.waiting));
  online_state<2> read{};
  std::memcpy(&read.header, header.data(), header.size());
  read.waiting.resize(waiting.size() / sizeof(omnibal::waiting_sample<2>));
  std::memcpy(read.waiting.data(), waiting.data(), waiting.size());

  CHECK(read == state);
  online_packer<2> restored(read);
  test::stream_output<2, std::int64_t> rest;
  test::stream_output<2, std::int64_t> restored_rest;
  test::flush_all(packer, 200, rest);
  test::flush_all(restored, 200, restored_rest);
  CHECK(rest == restored_rest);
  CHECK_FALSE(rest.groups.empty());
}

TEST_CASE("online_packer refuses a bad demand and has not changed then") {
  auto const check = [](auto packer, auto const& demand, std::string const& part) {
    static_cast<void>(packer.push(1, decltype(packer.state().header.capacity){1, 2}));
    auto const before = packer.state();
    std::string const error =
        test::error_text<std::invalid_argument>([&] { static_cast<void>(packer.push(2, demand)); });
    INFO(error);
    CHECK(error.find("omnibal::online_packer::push: " + part) == 0);
    CHECK(packer.state() == before);
  };
  online_packer const integers(resources{9, 4096});
  online_packer const doubles(resources{9.0, 4096.0});
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const infinity = std::numeric_limits<double>::infinity();
  check(integers, resources{1, -3},
        "demand of id 2 is -3 in resource 1, must be finite and not negative");
  check(integers, resources{-1, 5000}, "demand of id 2 is -1 in resource 0, must be");
  check(doubles, resources{nan, 1.0}, "demand of id 2 is nan in resource 0");
  check(doubles, resources{1.0, infinity}, "demand of id 2 is inf in resource 1");
  check(doubles, resources{1.0, -0.5}, "demand of id 2 is -0.5 in resource 1");
  check(integers, omnibal::resources<2, std::uint64_t>{1, 1ull << 63},
        "demand of id 2 is 9223372036854775808, must be at most 9223372036854775807");
}

TEST_CASE("a single number is the capacity of one resource") {
  online_packer packer{4096u, {.buffer = 2}};
  static_assert(std::is_same_v<decltype(packer), online_packer<1>>);
  static_assert(std::is_same_v<decltype(online_packer{0.5}), online_packer<1, double>>);
  static_assert(std::is_same_v<decltype(online_packer{4096}), online_packer<1>>);
  CHECK(packer.state() == online_packer(resources{4096}, {.buffer = 2}).state());
  CHECK(test::error_text<std::invalid_argument>(
            [] { online_packer{static_cast<std::uint64_t>(-1)}; }) ==
        "omnibal::online_packer: capacity[0] is 18446744073709551615, must be at most "
        "9223372036854775807");
}

TEST_CASE("online_packer refuses bad capacities and options") {
  auto const error = [](auto const& capacity, online_packer_options const& options) {
    return test::error_text<std::invalid_argument>([&] { online_packer(capacity, options); });
  };
  auto const names = [](std::string const& text, std::string const& part) {
    INFO(text);
    CHECK(text.find("omnibal::online_packer: " + part) == 0);
  };
  names(error(resources{9, 0}, {}), "capacity[1] is 0");
  names(error(resources{-1}, {}), "capacity[0] is -1");
  names(error(resources{std::numeric_limits<double>::infinity()}, {}), "capacity[0] is inf");
  names(error(resources{std::numeric_limits<double>::quiet_NaN()}, {}), "capacity[0] is nan");
  names(error(resources{9}, {.buffer = 0}), "options.buffer is 0");
  names(error(resources{9}, {.longest_wait = 0}), "options.longest_wait is 0");
  names(error(resources{9}, {.candidates = 0}), "options.candidates is 0");
  for (std::uint64_t const buffer : {std::uint64_t{0xfffffffe}, no_limit}) {
    CHECK(test::error_text<std::length_error>([&] {
            online_packer(resources{9}, {.buffer = buffer});
          }).find("options.buffer") != std::string::npos);
  }
}

TEST_CASE("online_packer refuses a state that no packer has") {
  online_packer packer(resources{9, 100}, {.buffer = 3, .longest_wait = 5});
  for (std::uint64_t id = 0; id != 3; ++id) {
    static_cast<void>(packer.push(id, resources{5, 10}));
  }
  auto const good = packer.state();
  CHECK(online_packer(good).state() == good);
  auto const refused = [&](auto const& change, std::string const& part) {
    auto bad = good;
    change(bad);
    std::string const error =
        test::error_text<std::invalid_argument>([&] { online_packer<2>{bad}; });
    INFO(error);
    CHECK(error.find("omnibal::online_packer: " + part) == 0);
  };
  refused([](auto& state) { state.header.capacity[0] = 0; }, "capacity[0] is 0");
  refused([](auto& state) { state.header.options.buffer = 0; }, "options.buffer is 0");
  refused([](auto& state) { state.header.options.buffer = 2; },
          "state.waiting has 3 samples, more than the buffer 2");
  refused([](auto& state) { state.waiting[1].demand[1] = 101; },
          "state.waiting[1].demand[1] is 101, must be in [0, 100]");
  refused([](auto& state) { state.waiting[2].demand[0] = -1; },
          "state.waiting[2].demand[0] is -1, must be in [0, 9]");
  refused([](auto& state) { state.waiting[1].push = 0; },
          "state.waiting[1].push is 0, must be above that of the sample before");
  refused([](auto& state) { state.waiting[2].push = 3; },
          "state.waiting[2].push is 3, must be one of the last 5 of 3 pushes");
  refused([](auto& state) { state.header.pushes = 6; },
          "state.waiting[0].push is 0, must be one of the last 5 of 6 pushes");
  auto edge = good;
  edge.header.pushes = 5;
  CHECK(online_packer(edge).state() == edge);
}

TEST_CASE("online_packer gives these groups everywhere") {
  auto const digest = [](auto const& sets) {
    test::fnv1a hash;
    for (auto const& set : sets) {
      for (online_packer_options const& options : several_options) {
        auto const output = test::run_stream(online_packer(set.capacity, options), set.samples);
        for (auto const& group : output.groups) {
          hash.add(group.pushes);
          for (std::uint64_t const id : group.ids) hash.add(id);
        }
      }
    }
    return hash.value();
  };
  CHECK(digest(test::all_sets<1>(8, 400)) == 0xc77324d296878722u);
  CHECK(digest(test::all_sets<2>(8, 400)) == 0x601ba78aed24fcd9u);
  CHECK(digest(test::all_sets<3>(8, 400)) == 0x40f839c6b453352au);
}
