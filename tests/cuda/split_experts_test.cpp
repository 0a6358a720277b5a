// SPDX-License-Identifier: Apache-2.0
#include "support/serial_backend.hpp"

#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/split_experts/split_kernels.hpp>
#include <omnibal/experts/split_experts.hpp>
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

using omnibal::gpu::fault;
using omnibal::gpu::detail::split_shape;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

/// Tokens, slots and first tokens of layers, and the arrays that the device writes.
struct split_layers {
  split_shape shape{};
  std::vector<std::int64_t> tokens{};
  std::vector<std::uint32_t> slots{};
  std::vector<std::int64_t> first_tokens{};

  std::vector<std::int64_t> split{};
  std::vector<std::int64_t> rank_tokens{};
  std::vector<std::int64_t> largest{};
  std::vector<std::uint8_t> is_full{};
  fault faults = fault::none;

  [[nodiscard]] std::size_t layers() const { return slots.size() / shape.all_slots(); }

  /// Runs the algorithm of the device over a backend.
  template <class Backend>
  void run(Backend& backend, bool has_word = true) {
    split.assign(slots.size(), -1);
    rank_tokens.assign(layers() * shape.ranks, -1);
    largest.assign(layers(), -1);
    is_full.assign(layers() * shape.ranks, 7);
    faults = fault::none;
    omnibal::gpu::detail::split_experts(
        backend,
        {shape, tokens.data(), slots.data(), first_tokens.empty() ? nullptr : first_tokens.data(),
         split.data(), rank_tokens.data(), largest.data(), is_full.data(),
         has_word ? &faults : nullptr},
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
      if (backend.scratch_bytes() != 0) return "scratch";
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
    omnibal::split_experts_options options;
    if (!first_tokens.empty()) options.first_tokens = part(first_tokens);
    auto const host = omnibal::split_experts(part(tokens), part(slots), shape.ranks, options);
    std::vector<std::uint8_t> full(shape.ranks, 0);
    for (std::uint32_t const rank : host.full_ranks) full[rank] = 1;
    auto const equal = [](auto const& left, auto const& right) {
      return std::equal(left.begin(), left.end(), right.begin(), right.end());
    };
    return equal(host.tokens, part(split)) && equal(host.rank_tokens, part(rank_tokens)) &&
           host.largest == largest[layer] && equal(full, part(is_full));
  }
};

/// Returns layers with random copies, so that some experts have many and others none.
split_layers random_layers(std::uint64_t seed, split_shape const& shape, std::size_t layers) {
  omnibal::rng::engine random(seed);
  split_layers result{.shape = shape};
  result.tokens.assign(layers * shape.experts, 0);
  bool const has_first = omnibal::rng::below(random, 3) == 0;
  for (std::size_t l = 0; l != layers; ++l) {
    std::uint64_t const spread = 1 + omnibal::rng::below(random, shape.experts);
    for (std::uint32_t s = 0; s != shape.all_slots(); ++s) {
      std::uint64_t const limit = omnibal::rng::below(random, 2) == 0 ? spread : shape.experts;
      auto const expert = static_cast<std::uint32_t>(omnibal::rng::below(random, limit));
      result.slots.push_back(expert);
      std::uint64_t const most_tokens = std::uint64_t{1} << omnibal::rng::below(random, 14);
      result.tokens[l * shape.experts + expert] =
          static_cast<std::int64_t>(omnibal::rng::below(random, most_tokens));
    }
    for (std::uint32_t r = 0; has_first && r != shape.ranks; ++r) {
      result.first_tokens.push_back(static_cast<std::int64_t>(omnibal::rng::below(random, 3000)));
    }
  }
  return result;
}

}  // namespace

// Every rank computes the plan itself, some on a device: the bits must agree.
TEST_CASE("split_experts on a device is that of the host") {
  for (split_shape const& shape :
       {split_shape{1, 1, 1}, split_shape{5, 3, 4}, split_shape{6, 6, 1}, split_shape{12, 9, 3},
        split_shape{40, 16, 4}, split_shape{64, 8, 12}, split_shape{256, 8, 34},
        split_shape{256, 64, 5}, split_shape{30, 100, 2}}) {
    for (std::uint64_t seed = 0; seed != 12; ++seed) {
      INFO(shape.experts << " experts, " << shape.ranks << " x " << shape.slots << ", seed "
                         << seed);
      CHECK(random_layers(seed, shape, 1 + seed % 3).difference() == "");
    }
  }
}

// A chain of ranks needs several levels of the search, of which the order matters.
TEST_CASE("split_experts on a device moves tokens along chains") {
  for (std::uint32_t const ranks : {5u, 40u}) {
    split_layers chain{.shape = {ranks + 1, ranks, 2}};
    for (std::uint32_t r = 0; r != ranks; ++r) {
      chain.slots.insert(chain.slots.end(), {r, r + 1});
      chain.tokens.push_back(r % 3 == 0 ? 900 - 7 * std::int64_t{r} : 50);
    }
    chain.tokens.push_back(3);
    CHECK(chain.difference() == "");
  }
}

// The sums of the host are exact up to the limit.
TEST_CASE("split_experts on a device counts up to the limit") {
  split_layers huge{.shape = {1, 5, 1}, .tokens = {most}, .slots = {0, 0, 0, 0, 0}};
  CHECK(huge.difference() == "");
}

// A kernel cannot throw: it reports what is wrong, and the other layers are split.
TEST_CASE("split_experts on a device says what is wrong with its input") {
  auto const faults_of = [](std::vector<std::int64_t> const& tokens,
                            std::vector<std::uint32_t> const& slots,
                            std::vector<std::int64_t> const& first = {}) {
    split_layers given{.shape = {2, 2, 1}, .tokens = tokens, .slots = slots};
    given.first_tokens = first;
    test::serial_backend backend;
    given.run(backend);
    if (given.layers() == 2) {
      CHECK(given.largest[1] == 4);
      CHECK(given.is_full == std::vector<std::uint8_t>{0, 0, 1, 1});
    }
    return given.faults;
  };
  CHECK(faults_of({3, 4}, {0, 1}) == fault::none);
  CHECK(faults_of({3, -4, 3, 4}, {0, 1, 0, 1}) == fault::invalid_amount);
  CHECK(faults_of({3, 4, 3, 4}, {0, 2, 0, 1}) == fault::unknown_index);
  CHECK(faults_of({3, 4, 3, 4}, {0, 0, 0, 1}) == fault::unknown_index);
  CHECK(faults_of({most, 1, 3, 4}, {0, 1, 0, 1}) == fault::overflow);
  CHECK(faults_of({most, most}, {0, 1}, {most, most}) == fault::overflow);
  CHECK(faults_of({3, 4}, {0, 1}, {0, -1}) == fault::invalid_amount);
  CHECK(faults_of({3, 4}, {0, 1}, {most, 0}) == fault::overflow);

  split_layers given{.shape = {2, 2, 1}, .tokens = {-1, 4}, .slots = {0, 1}};
  test::serial_backend backend;
  CHECK_THROWS_AS(given.run(backend, false), std::invalid_argument);
}
