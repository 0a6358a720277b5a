// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"
#include "support/serial_backend.hpp"

#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/isf/list_ranking.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

namespace detail = omnibal::gpu::detail;
using detail::chain_chunk;
using test::serial_backend;
using test::visit_order;

constexpr visit_order orders[] = {visit_order::forward, visit_order::backward,
                                  visit_order::shuffled};

/// The links of a chain in an array.
struct listed_chain {
  std::uint32_t const* links;
  std::uint32_t positions;

  std::uint32_t size() const { return positions; }
  std::uint32_t next(std::uint32_t i) const { return links[i]; }
};

/// What a walk visits, as a visitor sees it.
struct seen {
  std::vector<std::uint32_t> visited;
  /// The link of each of them.
  std::vector<std::uint32_t> next;
  /// For each segment that is not skipped at its beginning: the position visited before it.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> covers;

  friend bool operator==(seen const&, seen const&) = default;
};

struct write_down {
  static constexpr std::size_t shared_bytes = 16;
  seen* found;
  int* finished;

  void finish(test::serial_block&) const { ++*finished; }

  void operator()(test::serial_block& block, detail::visited_chunk const& chunk) const {
    seen& to = *found;
    std::uint32_t const begin = chunk.part.begin;
    auto* const last = block.take<std::uint32_t>(1);
    for (std::uint32_t i = 0; i != chunk.part.count; ++i) {
      if (i % detail::chain_segment == 0) {
        std::uint16_t const cover = chunk.covers[i / detail::chain_segment];
        bool const is_known = cover != detail::no_place && !chunk.is_visited(i);
        if (is_known) to.covers.emplace_back(begin + i, begin + cover);
      }
      if (!chunk.is_visited(i)) continue;
      std::uint32_t const next = chunk.next_of(i);
      to.visited.push_back(begin + i);
      to.next.push_back(next < chunk.part.count ? begin + next : chunk.leaves);
      *last = i;
    }
    CHECK(chunk.is_visited(chunk.entry));
    CHECK(to.next.back() == chunk.leaves);
    CHECK(*last + begin == to.visited.back());
  }
};

seen walk_naively(std::vector<std::uint32_t> const& links) {
  seen result;
  for (std::uint32_t i = 0; i < links.size(); i = links[i]) {
    result.visited.push_back(i);
    result.next.push_back(links[i]);
    // The segments that the link passes over, in the chunk of its beginning.
    std::uint32_t const end = std::min((i / chain_chunk + 1) * chain_chunk, links[i]);
    for (std::uint32_t s = (i / 16 + 1) * 16; s < end; s += 16) result.covers.emplace_back(s, i);
  }
  return result;
}

/// Sorted by position, as blocks run in any order.
void sort(seen& what) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links;
  for (std::size_t k = 0; k != what.visited.size(); ++k) {
    links.emplace_back(what.visited[k], what.next[k]);
  }
  std::sort(links.begin(), links.end());
  for (std::size_t k = 0; k != links.size(); ++k) {
    std::tie(what.visited[k], what.next[k]) = links[k];
  }
  std::sort(what.covers.begin(), what.covers.end());
}

void check_walk(std::vector<std::uint32_t> const& chain, std::size_t bound) {
  listed_chain const listed{chain.data(), static_cast<std::uint32_t>(chain.size())};
  for (visit_order const order : orders) {
    seen found;
    int finished = 0;
    auto const run = [&](auto& backend) {
      auto const made = detail::make_links(backend, bound);
      detail::walk_chain(backend, made, listed);
      detail::visit_chain(backend, made, listed, write_down{&found, &finished});
    };
    serial_backend backend(order, bound);
    run(backend);
    CHECK(backend.launches() == (bound == 0 ? 1 : 3));
    CHECK(finished == (bound == 0 ? 0 : 1));
    detail::scratch_meter meter;
    run(meter);
    CHECK(meter.scratch_bytes() == backend.scratch_bytes());
    sort(found);
    CHECK(found == walk_naively(chain));
  }
}

using length_of = std::function<std::uint32_t(std::uint32_t)>;

std::vector<std::uint32_t> make_chain(std::size_t size, length_of const& length) {
  std::vector<std::uint32_t> links(size);
  auto const end = static_cast<std::uint32_t>(size);
  for (std::uint32_t i = 0; i != end; ++i) links[i] = i + std::min(length(i), end - i);
  return links;
}

/// Lengths of links on which a walk by chunks fails most easily.
std::vector<std::pair<std::string, length_of>> lengths(test::random_amounts& random) {
  auto const upto = [&random](std::int64_t most) {
    return [&random, most](std::uint32_t) {
      return static_cast<std::uint32_t>(random.between(1, most));
    };
  };
  auto const always = [](std::uint32_t length) {
    return [length](std::uint32_t) { return length; };
  };
  return {{"all one", always(1)},
          {"all two", always(2)},
          {"up to 4", upto(4)},
          {"up to 40", upto(40)},
          {"up to 600", upto(600)},
          {"up to 9000", upto(9000)},
          {"to the end", always(0x7fffffff)},
          {"a segment", always(16)},
          {"a row", always(256)},
          {"a chunk", always(chain_chunk)},
          {"a chunk less one", always(chain_chunk - 1)},
          {"a chunk and one", always(chain_chunk + 1)},
          {"one, then chunks", [](std::uint32_t i) { return i == 0 ? 1 : 2 * chain_chunk; }},
          {"a row, then chunks",
           [](std::uint32_t i) { return i == 0 ? chain_chunk + detail::chain_row : chain_chunk; }},
          {"heavy tail", [&random](std::uint32_t) {
             return 1 + static_cast<std::uint32_t>(random.heavy_tail(20000));
           }}};
}

}  // namespace

TEST_CASE("a walk by chunks visits what a walk by steps visits") {
  test::random_amounts random(1);
  for (std::size_t const size :
       {0u, 1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 4095u, 4096u, 4097u, 8192u, 12345u}) {
    for (auto const& [name, length] : lengths(random)) {
      INFO(name << ", " << size);
      check_walk(make_chain(size, length), size);
    }
  }
}

TEST_CASE("a walk goes over regions, and enters them behind their windows", "[slow]") {
  test::random_amounts random(2);
  for (auto const& [name, length] : lengths(random)) {
    INFO(name);
    check_walk(make_chain(70 * chain_chunk + 5, length), 70 * chain_chunk + 5);
  }
  std::uint32_t const window = detail::isf_tuning::window;
  for (std::uint32_t const place : {window - 1, window, window + 1, detail::chain_region - 1}) {
    INFO(place);
    auto const length = [place](std::uint32_t i) {
      return i == 0 ? detail::chain_region + place : 1 + i % 5;
    };
    check_walk(make_chain(40 * chain_chunk, length), 40 * chain_chunk);
  }
}

TEST_CASE("a chain is shorter than its bound") {
  test::random_amounts random(3);
  for (std::size_t const size : {0u, 1u, 4096u, 5000u}) {
    for (auto const& [name, length] : lengths(random)) {
      INFO(name << ", " << size);
      check_walk(make_chain(size, length), 20000);
    }
  }
}

TEST_CASE("many small chains are walked") {
  test::random_amounts random(5);
  for (int round = 0; round != 1000; ++round) {
    auto const most = random.between(1, 40);
    auto const size = static_cast<std::size_t>(random.between(0, 300));
    check_walk(make_chain(size,
                          [&](std::uint32_t) {
                            return static_cast<std::uint32_t>(random.between(1, most));
                          }),
               size);
  }
}
