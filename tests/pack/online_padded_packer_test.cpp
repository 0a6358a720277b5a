// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/pack/online_padded_packer.hpp>
#include <omnibal/pack/pack_padded.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::online_padded_packer;
using omnibal::resources;

/// The most that a group of these waiting samples with the first one, the oldest, can contain, by
/// all subsets; -1 for none.
std::int64_t fullest(std::deque<std::int64_t> const& waiting, std::int64_t capacity) {
  std::int64_t best = -1;
  for (std::uint32_t set = 1; set < 1u << waiting.size(); set += 2) {
    std::int64_t sum = 0;
    std::int64_t longest = 0;
    std::int64_t count = 0;
    for (std::size_t k = 0; k != waiting.size(); ++k) {
      if ((set >> k & 1) == 0) continue;
      sum += waiting[k];
      longest = std::max(longest, waiting[k]);
      ++count;
    }
    if (count * longest <= capacity) best = std::max(best, sum);
  }
  return best;
}

}  // namespace

TEST_CASE("each group is the fullest of all subsets of the waiting samples with the oldest") {
  test::random_amounts random(1);
  std::size_t groups = 0;
  for (int round = 0; round != 400; ++round) {
    std::int64_t const capacity = random.between(1, 60);
    auto const buffer = static_cast<std::uint64_t>(random.between(1, 9));
    auto const longest_wait = static_cast<std::uint64_t>(random.between(1, 20));
    online_padded_packer packer(capacity, {.buffer = buffer, .longest_wait = longest_wait});
    std::deque<std::uint64_t> ids;
    std::vector<std::int64_t> lengths;
    auto const check = [&](omnibal::online_result<1> const& result) {
      if (!result) return;
      ++groups;
      std::deque<std::int64_t> waiting;
      for (std::uint64_t const id : ids) waiting.push_back(lengths[id]);
      std::int64_t sum = 0;
      std::int64_t longest = 0;
      REQUIRE(std::count(result.ids.begin(), result.ids.end(), ids.front()) == 1);
      for (std::uint64_t const id : result.ids) {
        sum += lengths[id];
        longest = std::max(longest, lengths[id]);
        auto const found = std::find(ids.begin(), ids.end(), id);
        REQUIRE(found != ids.end());
        ids.erase(found);
      }
      REQUIRE(result.load[0] == longest * static_cast<std::int64_t>(result.ids.size()));
      REQUIRE(result.load[0] <= capacity);
      REQUIRE(sum == fullest(waiting, capacity));
    };
    for (std::uint64_t id = 0; id != 40; ++id) {
      lengths.push_back(random.between(0, capacity + capacity / 8));
      bool const fits = lengths.back() <= capacity;
      if (fits) ids.push_back(id);
      std::uint64_t const oldest = ids.empty() ? id : ids.front();
      auto const result = packer.push(id, lengths.back());
      REQUIRE(result.oversized == !fits);
      bool const is_due = ids.size() > buffer || id - oldest >= longest_wait;
      REQUIRE(static_cast<bool>(result) == (is_due && !ids.empty()));
      check(result);
      // A restored packer and a copy have the same future.
      if (id == 20) packer = online_padded_packer(packer.state());
      REQUIRE(packer.size() == ids.size());
    }
    while (auto const result = packer.flush()) check(result);
    REQUIRE(ids.empty());
    REQUIRE(packer.empty());
  }
  CHECK(groups > 2000);
}

TEST_CASE("a stream has about as many padded batches as all samples at once") {
  test::random_amounts random(4);
  std::vector<std::int64_t> lengths(20'000);
  for (auto& n : lengths) n = 16 + random.heavy_tail(2000);
  auto const best = omnibal::pack_padded(lengths, std::identity{}, 16384).groups.size();
  std::size_t previous = std::numeric_limits<std::size_t>::max();
  for (std::uint64_t const buffer : {64u, 512u, 4096u}) {
    online_padded_packer packer(16384, {.buffer = buffer});
    std::size_t count = 0;
    for (std::size_t i = 0; i != lengths.size(); ++i) count += packer.push(i, lengths[i]) ? 1u : 0u;
    while (packer.flush()) ++count;
    INFO("buffer " << buffer << ": " << count << " groups, all at once " << best);
    CHECK(count < previous);
    previous = count;
  }
  CHECK(previous >= best);
  CHECK(static_cast<double>(previous) < 1.1 * static_cast<double>(best));
}

TEST_CASE("padded batches of a stream keep two budgets and floating-point budgets") {
  test::random_amounts random(2);
  auto const run = [&]<std::size_t R, class T>(resources<R, T> const& capacity, T scale) {
    online_padded_packer packer(capacity, {.buffer = 30});
    std::vector<resources<R, T>> samples;
    std::size_t seen = 0;
    auto const check = [&](omnibal::online_result<R, T> const& result) {
      resources<R, T> longest{};
      for (std::uint64_t const id : result.ids) {
        for (std::size_t r = 0; r != R; ++r) longest[r] = std::max(longest[r], samples[id][r]);
      }
      for (std::size_t r = 0; r != R; ++r) {
        REQUIRE(longest[r] * static_cast<T>(result.ids.size()) <= capacity[r]);
        REQUIRE(result.load[r] == longest[r] * static_cast<T>(result.ids.size()));
      }
      seen += result.ids.size();
    };
    for (std::uint64_t id = 0; id != 500; ++id) {
      resources<R, T> sample{};
      for (std::size_t r = 0; r != R; ++r) {
        sample[r] =
            static_cast<T>(random.heavy_tail(static_cast<std::int64_t>(capacity[r]))) / scale;
      }
      samples.push_back(sample);
      check(packer.push(id, sample));
    }
    while (auto const result = packer.flush()) check(result);
    CHECK(seen == 500);
  };
  run(resources<2>{4096, 40}, std::int64_t{1});
  run(resources<2, double>{4096.0, 1.0}, 3.0);
}

TEST_CASE("lhotse's example and wrong arguments") {
  online_padded_packer packer(50, {.buffer = 6});
  for (std::uint64_t id = 0; id != 6; ++id) {
    CHECK(!packer.push(id, id == 5 ? 20 : 1));
  }
  // The fullest group with the first sample is 20 and 1, so that there are two groups.
  CHECK(packer.flush().load[0] == 40);
  CHECK(packer.flush().ids.size() == 4);
  CHECK(!packer.flush());
  CHECK(packer.push(6, 51).oversized);
  auto const text = [](auto const& call) {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(call()); });
  };
  CHECK(
      text([&] { return packer.push(9, -1); }) ==
      "omnibal::online_padded_packer::push: demand of id 9 is -1 in resource 0, must be finite and "
      "not negative");
  CHECK(text([] { return online_padded_packer(0); }).find("capacity") != std::string::npos);
  CHECK(text([] { return online_padded_packer(5, {.buffer = 0}); }).find("options.buffer is 0") !=
        std::string::npos);
  omnibal::online_padded_state<1> state{{.buffer = 2}, {50}, 3, {{1, 1, {60}}}};
  CHECK(text([&] { return online_padded_packer(state); }).find("exceeds the capacity") !=
        std::string::npos);
  state.waiting = {{1, 2, {5}}, {2, 1, {5}}};
  CHECK(text([&] { return online_padded_packer(state); }).find("state.waiting[1].push is 1") !=
        std::string::npos);
  state.waiting = {{1, 0, {5}}, {2, 1, {5}}, {3, 2, {5}}};
  CHECK(text([&] { return online_padded_packer(state); }).find("more than the buffer 2") !=
        std::string::npos);
}
