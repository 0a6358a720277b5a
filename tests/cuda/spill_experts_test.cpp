// SPDX-License-Identifier: Apache-2.0
#include "support/serial_backend.hpp"

#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/spill_experts/spill_kernels.hpp>
#include <omnibal/experts/spill_experts.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::foreign_copy;
using omnibal::solve_status;
using omnibal::gpu::fault;
using omnibal::gpu::detail::spill_shape;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

/// Tokens and homes of layers, the options, and the arrays that the device writes.
struct spill_layers {
  spill_shape shape{};
  std::vector<std::int64_t> tokens{};
  std::vector<std::uint32_t> home{};
  omnibal::spill_experts_options options{};

  std::vector<foreign_copy> copies{};
  std::vector<std::uint32_t> copy_count{};
  std::vector<std::int64_t> home_tokens{};
  std::vector<std::int64_t> rank_tokens{};
  std::vector<std::int64_t> largest{};
  std::vector<std::int64_t> cap{};
  std::vector<std::uint32_t> fewest_copies{};
  std::vector<solve_status> status{};
  std::vector<std::uint8_t> is_proven{};
  fault faults = fault::none;

  [[nodiscard]] std::size_t layers() const { return tokens.size() / shape.experts; }

  /// Runs the algorithm of the device over a backend.
  template <class Backend>
  void run(Backend& backend, bool has_word = true) {
    copies.assign(layers() * shape.copies(), {9, 9, 9});
    copy_count.assign(layers(), 77);
    home_tokens.assign(tokens.size(), -1);
    rank_tokens.assign(layers() * shape.ranks, -1);
    largest.assign(layers(), -1);
    cap.assign(layers(), -1);
    fewest_copies.assign(layers(), 77);
    status.assign(layers(), solve_status::infeasible);
    is_proven.assign(layers(), 7);
    faults = fault::none;
    omnibal::gpu::detail::spill_experts(
        backend,
        {shape, tokens.data(), home.data(),
         options.slots.value_or(std::numeric_limits<std::size_t>::max()), options.max_overload,
         omnibal::detail::orders_of(options.effort), options.seed, copies.data(), copy_count.data(),
         home_tokens.data(), rank_tokens.data(), largest.data(), cap.data(), fewest_copies.data(),
         status.data(), is_proven.data(), has_word ? &faults : nullptr},
        layers());
  }

  /// Returns what differs between the device's algorithm, in every order, and the host's.
  [[nodiscard]] std::string difference() {
    using test::visit_order;
    for (visit_order const order :
         {visit_order::forward, visit_order::backward, visit_order::shuffled}) {
      test::serial_backend backend(order, 17 + shape.ranks);
      run(backend);
      if (faults != fault::none) return "there is a fault";
      if (backend.launches() != 1) return "not one launch";
      for (std::size_t l = 0; l != layers(); ++l) {
        if (!is_as_on_host(l)) return "layer " + std::to_string(l) + " differs";
      }
    }
    return "";
  }

 private:
  [[nodiscard]] bool is_as_on_host(std::size_t layer) const {
    auto const part = [&](auto const& all) {
      std::size_t const count = all.size() / layers();
      return std::span(all).subspan(layer * count, count);
    };
    auto const host = omnibal::spill_experts(part(tokens), part(home), shape.ranks, options);
    auto const equal = [](auto const& left, auto const& right) {
      return std::equal(left.begin(), left.end(), right.begin(), right.end());
    };
    auto const own = part(copies);
    if (copy_count[layer] != host.copies.size() ||
        !equal(host.copies, own.first(host.copies.size()))) {
      return false;
    }
    auto const rest = own.subspan(host.copies.size());
    return std::all_of(rest.begin(), rest.end(),
                       [](auto const& copy) { return copy == foreign_copy{}; }) &&
           equal(host.home_tokens, part(home_tokens)) &&
           equal(host.rank_tokens, part(rank_tokens)) && host.largest == largest[layer] &&
           host.cap == cap[layer] && host.fewest_copies == fewest_copies[layer] &&
           host.status == status[layer] && host.proven == (is_proven[layer] == 1);
  }
};

spill_layers random_layers(std::uint64_t seed, spill_shape const& shape, std::size_t layers) {
  omnibal::rng::engine random(seed);
  auto const below = [&](std::uint64_t limit) { return omnibal::rng::below(random, limit); };
  spill_layers result{.shape = shape};
  for (std::size_t e = 0; e != layers * shape.experts; ++e) {
    result.tokens.push_back(static_cast<std::int64_t>(below(std::uint64_t{1} << below(14))));
    result.home.push_back(static_cast<std::uint32_t>(below(shape.ranks)));
  }
  double const overloads[] = {0.0, 0.02, 0.1, 0.5};
  result.options.max_overload = overloads[below(4)];
  if (below(3) == 0) result.options.slots = below(4);
  result.options.effort = below(2) == 0 ? omnibal::effort::fast : omnibal::effort::normal;
  result.options.seed = seed;
  return result;
}

}  // namespace

// Every rank computes the plan itself, some on a device: the bits must agree.
TEST_CASE("spill_experts on a device is that of the host") {
  for (spill_shape const& shape :
       {spill_shape{1, 1}, spill_shape{5, 3}, spill_shape{6, 6}, spill_shape{12, 9},
        spill_shape{40, 16}, spill_shape{128, 32}, spill_shape{128, 64}, spill_shape{30, 100}}) {
    for (std::uint64_t seed = 0; seed != 16; ++seed) {
      INFO(shape.experts << " experts, " << shape.ranks << " ranks, seed " << seed);
      CHECK(random_layers(seed, shape, 1 + seed % 3).difference() == "");
    }
  }
}

// Layers that exceed the shared memory have the same plans.
TEST_CASE("spill_experts on a device plans large layers in scratch memory") {
  auto large = random_layers(3, {900, 500}, 2);
  large.options.effort = omnibal::effort::fast;
  CHECK(large.difference() == "");
  test::serial_backend backend;
  large.run(backend);
  CHECK(backend.scratch_bytes() > 2 * omnibal::gpu::detail::max_shared_bytes);
  auto small = random_layers(3, {256, 64}, 2);
  test::serial_backend other;
  small.run(other);
  CHECK(other.scratch_bytes() == 0);
}

// The sums of the host are exact up to the limit.
TEST_CASE("spill_experts on a device counts up to the limit") {
  spill_layers huge{.shape = {2, 3}, .tokens = {most - 7, 7}, .home = {0, 2}};
  CHECK(huge.difference() == "");
  huge.options.max_overload = 1e300;
  CHECK(huge.difference() == "");
}

// A kernel cannot throw: it reports what is wrong, and the other layers are planned.
TEST_CASE("spill_experts on a device says what is wrong with its input") {
  auto const faults_of = [](std::vector<std::int64_t> const& tokens,
                            std::vector<std::uint32_t> const& home) {
    spill_layers given{.shape = {2, 2}, .tokens = tokens, .home = home};
    test::serial_backend backend;
    given.run(backend);
    CHECK(given.copy_count[0] == 0);
    CHECK(given.rank_tokens[0] == 0);
    CHECK(given.status[0] == solve_status::not_found);
    CHECK(given.largest[1] == 4);
    CHECK(given.status[1] == solve_status::solved);
    return given.faults;
  };
  CHECK(faults_of({3, -4, 3, 4}, {0, 1, 0, 1}) == fault::invalid_amount);
  CHECK(faults_of({3, 4, 3, 4}, {0, 2, 0, 1}) == fault::unknown_index);
  CHECK(faults_of({most, 1, 3, 4}, {0, 1, 0, 1}) == fault::overflow);

  spill_layers given{.shape = {2, 2}, .tokens = {-1, 4}, .home = {0, 1}};
  test::serial_backend backend;
  CHECK_THROWS_AS(given.run(backend, false), std::invalid_argument);
}
