// SPDX-License-Identifier: Apache-2.0
#pragma once

// What exchanges must satisfy on every communicator. The same bodies run over one rank, threads and
// processes.

#include "gathered_rows.hpp"
#include "rank_checks.hpp"
#include "samples.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/orchestrate.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace test {

/// A sample that names itself: of which rank it is and the how many-th.
template <std::size_t Bytes>
struct block {
  std::array<unsigned char, Bytes> bytes;

  friend bool operator==(block const&, block const&) = default;
};

struct text_sample {
  std::uint32_t rank;
  std::uint32_t index;
  std::int64_t length;

  friend bool operator==(text_sample const&, text_sample const&) = default;
};

/// The samples of a rank in a round: heavy tails, sometimes none on many ranks or on all.
inline std::vector<text_sample> samples_of_rank(std::uint64_t round, std::size_t rank,
                                                std::size_t ranks) {
  random_amounts random(round * 1000 + rank);
  std::int64_t count = random.between(0, 12);
  if (round % 7 == 1) count = 0;
  if (round % 7 == 2) count = rank + 1 == ranks ? 40 : 0;
  if (round % 7 == 3) count = rank % 2 == 0 ? 0 : count;
  std::vector<text_sample> result;
  for (std::int64_t i = 0; i != count; ++i) {
    result.push_back(
        {static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(i), random.heavy_tail(5000)});
  }
  return result;
}

/// The values that a sample travels with, as many as its length; some have none.
inline std::vector<std::uint16_t> payload_of(text_sample const& sample) {
  std::vector<std::uint16_t> result(static_cast<std::size_t>(sample.length) % 100);
  for (std::size_t i = 0; i != result.size(); ++i) {
    result[i] = static_cast<std::uint16_t>(sample.rank * 4001 + sample.index * 101 + i);
  }
  return result;
}

inline constexpr auto squared = [](text_sample const& s) { return s.length * s.length; };
inline constexpr auto doubled = [](text_sample const& s) { return 2 * s.length; };

/// `mine` is what the plan says, and with the inverse it is `local` again.
template <class Comm>
void check_exchange(Comm& comm, omnibal::exchange_plan const& plan,
                    std::vector<text_sample> const& local) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  require(omnibal::all_equal(comm, plan.digest()), "the same plan on all ranks");
  auto const inverse = plan.inverse();
  require(inverse.inverse() == plan, "the inverse of the inverse");
  require(inverse.inverse().digest() == plan.digest(), "the digest of the inverse of the inverse");

  auto const mine = omnibal::exchange_samples(comm, plan, local);
  auto const all = gathered_rows(comm, local);
  auto const arrivals = plan.arrivals(rank);
  require(mine.size() == arrivals.size(), "the number of arrivals");
  for (std::size_t k = 0; k != mine.size(); ++k) {
    require(mine[k] == all.values()[arrivals[k]], "arrivals in plan order");
  }
  require(omnibal::exchange_samples(comm, inverse, mine) == local, "the input again");

  std::vector<std::vector<std::uint16_t>> payloads;
  for (auto const& sample : local) payloads.push_back(payload_of(sample));
  auto const moved = omnibal::exchange_samples(comm, plan, payloads);
  for (std::size_t k = 0; k != mine.size(); ++k) {
    require(moved[k] == payload_of(mine[k]), "a payload goes with its sample");
  }
  require(omnibal::exchange_samples(comm, inverse, moved) == payloads, "the payloads again");
}

/// A range whose elements are made when they are asked for.
template <class Sample>
class made_on_the_way {
 public:
  explicit made_on_the_way(std::vector<Sample> const& samples) : samples_(&samples) {}

  class iterator {
   public:
    using iterator_concept = std::random_access_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = Sample;
    using difference_type = std::ptrdiff_t;
    using reference = Sample;
    using pointer = void;

    iterator() = default;
    explicit iterator(Sample const* at) : at_(at) {}
    Sample operator*() const { return *at_; }
    Sample operator[](std::ptrdiff_t step) const { return at_[step]; }
    iterator& operator+=(std::ptrdiff_t steps) {
      at_ += steps;
      return *this;
    }
    iterator& operator-=(std::ptrdiff_t steps) { return *this += -steps; }
    iterator& operator++() { return *this += 1; }
    iterator& operator--() { return *this += -1; }
    iterator operator++(int) { return iterator(at_++); }
    iterator operator--(int) { return iterator(at_--); }
    friend iterator operator+(iterator at, std::ptrdiff_t steps) { return at += steps; }
    friend iterator operator+(std::ptrdiff_t steps, iterator at) { return at += steps; }
    friend iterator operator-(iterator at, std::ptrdiff_t steps) { return at -= steps; }
    friend std::ptrdiff_t operator-(iterator left, iterator right) { return left.at_ - right.at_; }
    friend auto operator<=>(iterator left, iterator right) = default;

   private:
    Sample const* at_ = nullptr;
  };

  iterator begin() const { return iterator(samples_->data()); }
  iterator end() const { return iterator(samples_->data() + samples_->size()); }

 private:
  std::vector<Sample> const* samples_;
};

template <std::size_t Bytes, class Comm>
void check_blocks(Comm& comm, omnibal::exchange_plan const& plan,
                  std::vector<text_sample> const& local) {
  auto const block_of = [](text_sample const& sample) {
    block<Bytes> result{};
    for (std::size_t i = 0; i != Bytes; ++i) {
      result.bytes[i] = static_cast<unsigned char>(sample.rank * 31 + sample.index * 7 + i);
    }
    return result;
  };
  std::vector<block<Bytes>> blocks;
  for (auto const& sample : local) blocks.push_back(block_of(sample));
  auto const samples = omnibal::exchange_samples(comm, plan, local);
  auto const mine = omnibal::exchange_samples(comm, plan, blocks);
  for (std::size_t k = 0; k != mine.size(); ++k) {
    require(mine[k] == block_of(samples[k]), "payloads of odd sizes");
  }
  require(omnibal::exchange_samples(comm, plan, made_on_the_way(blocks)) == mine,
          "payloads that are made on the way");
}

/// Several fields at once are what each of them alone is.
template <class Comm>
void check_fields(Comm& comm, omnibal::exchange_plan const& plan,
                  std::vector<text_sample> const& local) {
  using omnibal::sized_field;
  auto const inverse = plan.inverse();
  std::vector<std::vector<std::uint16_t>> payloads;
  std::vector<std::string> names;
  std::vector<std::uint8_t> bytes;
  std::vector<block<257>> blocks;
  for (auto const& sample : local) {
    payloads.push_back(payload_of(sample));
    names.push_back(std::to_string(sample.rank) + "/" + std::to_string(sample.index));
    bytes.push_back(static_cast<std::uint8_t>(sample.index));
    blocks.push_back({{static_cast<unsigned char>(sample.length)}});
  }
  std::tuple const before{payloads, local, names, bytes, blocks};
  std::tuple const after{
      omnibal::exchange_samples(comm, plan, payloads), omnibal::exchange_samples(comm, plan, local),
      omnibal::exchange_samples(comm, plan, names), omnibal::exchange_samples(comm, plan, bytes),
      omnibal::exchange_samples(comm, plan, blocks)};
  require(omnibal::exchange_samples(comm, plan, payloads, local, names, bytes, blocks) == after,
          "fields at once");
  require(omnibal::exchange_samples(comm, inverse, after) == before, "the fields again");
  require(omnibal::exchange_samples(comm, omnibal::agreed(plan), before) == after,
          "fields of a plan that is agreed");

  // What was planned are twice the lengths.
  auto const values = [&](std::uint32_t s) { return plan.bytes()[s] / 2 % 100; };
  auto const values_after = [&](std::uint32_t s) { return inverse.bytes()[s] / 2 % 100; };
  require(
      omnibal::exchange_samples(comm, plan, sized_field{payloads, values}) == std::get<0>(after),
      "sizes that are known");
  require(omnibal::exchange_samples(comm, omnibal::agreed(plan), sized_field{payloads, values},
                                    names, blocks) ==
              std::tuple(std::get<0>(after), std::get<2>(after), std::get<4>(after)),
          "sizes of which some are known");
  auto const [payloads_again, bytes_again] =
      omnibal::exchange_samples(comm, omnibal::agreed(inverse),
                                sized_field{std::get<0>(after), values_after}, std::get<3>(after));
  require(payloads_again == payloads && bytes_again == bytes, "known sizes on the way back");
}

template <class Comm>
void exchange_many_rounds(Comm& comm, std::uint64_t rounds) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  auto const ranks = static_cast<std::size_t>(comm.size());
  omnibal::plan_exchange_workspace<1> workspace;
  auto const reversed = [](auto const& costs, std::size_t parts, auto const& cost) {
    auto const even = omnibal::lpt(costs, parts, cost);
    omnibal::grouping result;
    for (std::size_t p = parts; p-- != 0;) {
      for (std::size_t k = even[p].size(); k-- != 0;) result.push(even[p][k]);
      result.close();
    }
    return result;
  };
  for (std::uint64_t round = 0; round != rounds; ++round) {
    auto const local = samples_of_rank(round, rank, ranks);
    auto const plan = omnibal::plan_exchange(comm, local, squared, doubled);
    check_exchange(comm, plan, local);
    omnibal::make_plan_options const options{.ranks_per_node = 1 + round % 4, .max_overload = 0.1};
    auto const& kept = omnibal::plan_exchange(comm, local, squared, doubled, options,
                                              omnibal::rebalance, workspace);
    check_exchange(comm, kept, local);
    // The order within a part is that of the balancer, which descends here.
    auto const backwards = omnibal::plan_exchange(comm, local, squared, doubled, options, reversed);
    check_exchange(comm, backwards, local);
    auto const dealt = omnibal::plan_exchange(comm, local, squared, doubled, {}, omnibal::deal);
    check_exchange(comm, dealt, local);
    check_fields(comm, round % 2 == 0 ? kept : backwards, local);
    if (round % 8 != 0) continue;
    check_blocks<1>(comm, dealt, local);
    check_blocks<3>(comm, dealt, local);
    check_blocks<257>(comm, dealt, local);
  }
}

/// Strings, views and rows in place of vectors.
template <class Comm>
void exchange_other_payloads(Comm& comm) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  auto const ranks = static_cast<std::size_t>(comm.size());
  auto const local = samples_of_rank(4, rank, ranks);
  auto const plan = omnibal::plan_exchange(comm, local, squared, doubled, {}, omnibal::lpt);
  std::vector<std::string> texts;
  omnibal::ragged<char> rows;
  for (auto const& sample : local) {
    texts.push_back(std::to_string(sample.rank) + "/" + std::to_string(sample.index));
    rows.push(texts.back());
  }
  std::vector<std::span<char const>> views(texts.begin(), texts.end());
  auto const mine = omnibal::exchange_samples(comm, plan, texts);
  omnibal::ragged<char> const of_views = omnibal::exchange_samples(comm, plan, views);
  require(of_views == omnibal::exchange_samples(comm, plan, rows), "views and rows");
  for (std::size_t k = 0; k != mine.size(); ++k) {
    require(std::equal(mine[k].begin(), mine[k].end(), of_views[k].begin(), of_views[k].end()),
            "strings and views");
  }
  require(omnibal::exchange_samples(comm, plan.inverse(), mine) == texts, "the strings again");
  require(omnibal::exchange_samples(comm, plan.inverse(), of_views) == rows, "the rows again");
}

/// One sample of so many bytes on each rank, and a few more, every one of which leaves.
template <class Comm>
void exchange_payloads_of(Comm& comm, std::size_t bytes) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  auto const ranks = static_cast<std::size_t>(comm.size());
  auto const next_rank = [&](auto const&, std::size_t parts, auto const&) {
    omnibal::grouping result;
    for (std::size_t p = 0; p != parts; ++p) {
      result.push(static_cast<std::uint32_t>((p + 1) % parts));
      result.close();
    }
    return result;
  };
  auto const one = [](int) { return 1; };
  auto const nothing = [](int) { return 0; };
  auto const plan = omnibal::plan_exchange(comm, std::vector<int>(1), one, nothing, {}, next_rank);
  std::vector<std::vector<unsigned char>> local(1);
  std::size_t const more = bytes < 2 ? 0 : 1;
  local[0].assign(bytes + more * rank, static_cast<unsigned char>(rank + 1));
  auto const mine = omnibal::exchange_samples(comm, plan, local);
  std::size_t const from = (rank + 1) % ranks;
  require(mine.size() == 1 && mine[0].size() == bytes + more * from, "the size of a payload");
  require(std::all_of(
              mine[0].begin(), mine[0].end(),
              [&](unsigned char value) { return value == static_cast<unsigned char>(from + 1); }),
          "the values of a payload");
  require(omnibal::exchange_samples(comm, plan.inverse(), mine) == local, "payloads again");
}

/// Floating-point costs and costs of two phases.
template <class Comm>
void plan_for_other_costs(Comm& comm) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  auto const ranks = static_cast<std::size_t>(comm.size());
  for (std::uint64_t round = 0; round != 20; ++round) {
    auto const local = samples_of_rank(round, rank, ranks);
    auto const floating = [](text_sample const& s) { return 1e-3 * static_cast<double>(s.length); };
    auto const plan = omnibal::plan_exchange(comm, local, floating, doubled);
    check_exchange(comm, plan, local);

    // The integers to which the owners map their costs give the same plan.
    auto const all = gathered_rows(comm, local);
    double largest = 0;
    for (auto const& s : all.values()) largest = std::max(largest, floating(s));
    std::vector<std::int64_t> costs;
    std::vector<std::int64_t> bytes;
    for (auto const& s : all.values()) {
      double const scaled = largest > 0 ? floating(s) * 2147483648.0 / largest : 0;
      costs.push_back(static_cast<std::int64_t>(scaled));
      bytes.push_back(doubled(s));
    }
    require(omnibal::make_plan(all.offsets(), costs, bytes) == plan, "quantized costs");

    auto const two = [](text_sample const& s) {
      return omnibal::resources{s.length, std::int64_t{s.index % 3}};
    };
    check_exchange(comm, omnibal::plan_exchange(comm, local, two, doubled), local);
    check_exchange(comm, omnibal::plan_exchange(comm, local, two, doubled, {}, omnibal::lpt),
                   local);
  }
}

/// An error on one rank is one on all; afterwards all go on.
template <class Comm>
void agree_on_errors(Comm& comm) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  auto const ranks = static_cast<std::size_t>(comm.size());
  bool const is_last = rank + 1 == ranks;
  auto const local = samples_of_rank(4, 0, ranks);
  require(!local.empty(), "samples to fail with");
  auto const check = [&](std::string const& what, auto const& call) {
    seen const wanted = is_last ? seen::own : seen::remote;
    auto const found = error_of<std::invalid_argument, omnibal::communication_error>(call);
    require(found == wanted, "an error on all ranks: " + what);
    require(omnibal::all_equal(comm, 1), "the next call succeeds: " + what);
  };
  auto const with_cost = [&](auto const& cost) {
    static_cast<void>(omnibal::plan_exchange(comm, local, cost, doubled));
  };
  check("a negative cost",
        [&] { with_cost([&](text_sample const& s) { return is_last ? -1 : s.length; }); });
  for (double const bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1.0}) {
    check("a bad floating-point cost",
          [&] { with_cost([&](auto const&) { return is_last ? bad : 1.0; }); });
  }
  check("a cost that throws", [&] {
    with_cost([&](text_sample const& s) {
      if (is_last) throw std::invalid_argument("no cost");
      return s.length;
    });
  });
  check("negative bytes", [&] {
    auto const bytes = [&](auto const&) { return is_last ? -1 : 1; };
    static_cast<void>(omnibal::plan_exchange(comm, local, squared, bytes));
  });
  check("bad options", [&] {
    omnibal::make_plan_options options;
    options.ranks_per_node = is_last ? 0 : 1;
    static_cast<void>(omnibal::plan_exchange(comm, local, squared, doubled, options));
  });
  check("a bad max_overload", [&] {
    omnibal::make_plan_options options;
    options.max_overload = is_last ? -1 : 0.5;
    static_cast<void>(omnibal::plan_exchange(comm, local, squared, doubled, options));
  });
  check("a balancer that throws", [&] {
    auto const balance = [&](auto const& costs, std::size_t parts, auto const& cost) {
      if (is_last) throw std::invalid_argument("no parts");
      return omnibal::lpt(costs, parts, cost);
    };
    static_cast<void>(omnibal::plan_exchange(comm, local, squared, doubled, {}, balance));
  });
  auto const plan = omnibal::plan_exchange(comm, local, squared, doubled);
  check("another number of samples", [&] {
    auto samples = local;
    if (is_last) samples.pop_back();
    static_cast<void>(omnibal::exchange_samples(comm, plan, samples));
  });
  for (bool const is_agreed : {false, true}) {
    auto const how = is_agreed ? omnibal::agreed(plan) : plan;
    auto const sizes = [&](std::uint32_t s) { return plan.bytes()[s] / 2; };
    check("another number of samples in one field", [&] {
      auto samples = local;
      if (is_last) samples.resize(samples.size() + 1);
      static_cast<void>(omnibal::exchange_samples(comm, how, local, samples));
    });
    check("another number of arrays", [&] {
      std::vector<std::string> const samples(local.size() + (is_last ? 1 : 0), "text");
      static_cast<void>(omnibal::exchange_samples(comm, how, local, samples));
    });
    check("arrays of other sizes than planned", [&] {
      std::vector<std::string> samples;
      for (auto const& s : local) samples.emplace_back(static_cast<std::size_t>(s.length), 'a');
      if (is_last) samples[0] += "b";
      static_cast<void>(
          omnibal::exchange_samples(comm, how, omnibal::sized_field{samples, sizes}, local));
    });
  }
  check("a plan for other ranks", [&] {
    std::vector<std::uint32_t> offsets(ranks + 2, 0);
    auto const other = omnibal::make_plan(offsets, std::vector<int>{}, std::vector<int>{});
    static_cast<void>(omnibal::exchange_samples(comm, is_last ? other : plan, local));
  });
  check("an encoder that throws", [&] {
    auto const pieces = [&](text_sample const&) {
      if (is_last) throw std::invalid_argument("no pieces");
      return std::vector<int>{1};
    };
    auto const one = [](int) { return 1; };
    static_cast<void>(
        omnibal::orchestrate(comm, local, omnibal::language_phase{squared, doubled},
                             std::tuple{omnibal::encoder_phase{pieces, one, one, one}}));
  });
}

/// What differs between ranks is an invalid argument on all of them.
template <class Comm>
void refuse_differences(Comm& comm) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  auto const ranks = static_cast<std::size_t>(comm.size());
  bool const is_last = rank + 1 == ranks;
  auto const local = samples_of_rank(4, rank, ranks);
  auto const check = [&](std::string const& what, auto const& call) {
    seen const wanted = ranks == 1 ? seen::nothing : seen::own;
    auto const found = error_of<std::invalid_argument, omnibal::communication_error>(call);
    require(found == wanted, "an error on all ranks: " + what);
    require(omnibal::all_equal(comm, 1), "the next call succeeds: " + what);
  };
  auto const with_options = [&](omnibal::make_plan_options const& options) {
    static_cast<void>(omnibal::plan_exchange(comm, local, squared, doubled, options));
  };
  check("tolerances", [&] { with_options({.max_overload = is_last ? 0.1 : 0.2}); });
  check("nodes", [&] { with_options({.ranks_per_node = is_last ? std::size_t{1} : 2}); });
  check("balancers", [&] {
    auto const balance = [&](auto const& costs, std::size_t parts, auto const&) {
      std::uint32_t const all = is_last ? 0 : static_cast<std::uint32_t>(parts - 1);
      omnibal::grouping result;
      for (std::uint32_t p = 0; p != parts; ++p) {
        for (std::uint32_t i = 0; p == all && i != costs.size(); ++i) {
          result.push(is_last ? static_cast<std::uint32_t>(costs.size()) - 1 - i : i);
        }
        result.close();
      }
      return result;
    };
    auto const one = [](auto const&) { return 1; };
    static_cast<void>(omnibal::plan_exchange(comm, std::vector<int>(2), one, one, {}, balance));
  });
  check("kinds of costs", [&] {
    auto const one = [](auto const&) { return 1.5; };
    auto const two = [](auto const&) { return omnibal::resources<2>{1, 2}; };
    if (is_last && ranks > 1) {
      static_cast<void>(omnibal::plan_exchange(comm, local, two, doubled, {}, omnibal::lpt));
    } else {
      static_cast<void>(omnibal::plan_exchange(comm, local, one, doubled, {}, omnibal::lpt));
    }
  });
  check("orchestrations", [&] {
    static_cast<void>(omnibal::orchestrate(comm, local, omnibal::language_phase{squared, doubled},
                                           std::tuple{}, {.max_overload = is_last ? 0.1 : 0.2}));
  });
  auto const plan = omnibal::plan_exchange(
      comm, std::vector<int>(2), [](int) { return 1; }, [](int) { return 1; });
  check("known sizes", [&] {
    auto const size = [&](std::uint32_t s) { return is_last && s == 2 * ranks - 1 ? 2 : 1; };
    std::vector<std::string> rows(2, "a");
    if (is_last) rows[1] = "aa";
    omnibal::sized_field const field{rows, size};
    static_cast<void>(omnibal::exchange_samples(comm, plan, field));
  });
  check("plans", [&] {
    std::vector<std::uint32_t> offsets;
    for (std::uint32_t r = 0; r <= ranks; ++r) offsets.push_back(2 * r);
    auto const backwards = [](auto const& costs, std::size_t parts, auto const&) {
      omnibal::grouping result;
      for (std::size_t i = costs.size(); i-- != 0;) {
        result.push(static_cast<std::uint32_t>(i));
        if (i % 2 == 0) result.close();
      }
      static_cast<void>(parts);
      return result;
    };
    std::vector<int> const ones(2 * ranks, 1);
    auto const other = omnibal::make_plan(offsets, ones, ones, {}, backwards);
    bool const differs = is_last && ranks != 1;
    static_cast<void>(omnibal::exchange_samples(comm, differs ? other : plan, std::vector<int>(2)));
  });
}

/// An image of a sample; `number` counts the images of the sample.
struct image {
  std::uint32_t rank;
  std::uint32_t sample;
  std::uint32_t number;
  std::int64_t tiles;

  friend bool operator==(image const&, image const&) = default;
};

struct mixed_sample {
  text_sample text;
  std::vector<image> images;
  std::vector<image> sounds;
};

inline std::vector<mixed_sample> mixed_of_rank(std::uint64_t round, std::size_t rank,
                                               std::size_t ranks) {
  random_amounts random(round * 77 + rank);
  std::vector<mixed_sample> result;
  for (auto const& text : samples_of_rank(round, rank, ranks)) {
    auto& sample = result.emplace_back(mixed_sample{text, {}, {}});
    for (auto* const pieces : {&sample.images, &sample.sounds}) {
      // Every other sample has text alone.
      auto const count = static_cast<std::uint32_t>(random.between(0, 1) * random.between(0, 4));
      for (std::uint32_t k = 0; k != count; ++k) {
        pieces->push_back({text.rank, text.index, k, random.heavy_tail(40)});
      }
    }
  }
  return result;
}

/// Encodes pieces where `encoder` says and finds each output at its sample, in order.
template <class Comm>
void check_encoder(Comm& comm, omnibal::orchestration const& plans, std::size_t encoder,
                   std::vector<mixed_sample> const& local,
                   std::vector<image> mixed_sample::*pieces) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  auto const& routes = plans.encoders[encoder];
  std::vector<text_sample> texts;
  std::vector<std::uint32_t> counts;
  std::vector<image> inputs;
  for (auto const& sample : local) {
    texts.push_back(sample.text);
    counts.push_back(static_cast<std::uint32_t>((sample.*pieces).size()));
    inputs.insert(inputs.end(), (sample.*pieces).begin(), (sample.*pieces).end());
  }
  auto const samples = omnibal::exchange_samples(comm, plans.samples, texts);
  auto const piece_counts = omnibal::exchange_samples(comm, plans.samples, counts);
  auto const encoded = omnibal::exchange_samples(comm, routes.inputs, inputs);
  auto const outputs = omnibal::exchange_samples(comm, routes.outputs, encoded);
  auto const offsets = routes.pieces_of_samples(plans.samples, rank);
  require(offsets.size() == samples.size() + 1, "an offset for each sample");
  require(offsets.front() == 0 && offsets.back() == outputs.size(), "all outputs have a sample");
  for (std::size_t s = 0; s != samples.size(); ++s) {
    require(offsets[s + 1] - offsets[s] == piece_counts[s], "the number of pieces of a sample");
    for (std::uint32_t k = 0; k != piece_counts[s]; ++k) {
      image const& output = outputs[offsets[s] + k];
      require(
          output.rank == samples[s].rank && output.sample == samples[s].index && output.number == k,
          "the pieces of a sample in order");
    }
  }
  auto const gradients = omnibal::exchange_samples(comm, routes.outputs.inverse(), outputs);
  require(gradients == encoded, "gradients go back to where the outputs came from");
  require(omnibal::exchange_samples(comm, routes.inputs.inverse(), gradients) == inputs,
          "and to the samples");
}

template <class Comm>
void orchestrate_many_rounds(Comm& comm) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  auto const ranks = static_cast<std::size_t>(comm.size());
  auto const text_cost = [](mixed_sample const& s) { return squared(s.text); };
  auto const text_bytes = [](mixed_sample const& s) { return doubled(s.text); };
  omnibal::language_phase const language{text_cost, text_bytes};
  auto const tiles = [](image const& i) { return i.tiles; };
  auto const seconds = [](image const& i) { return 0.25 * static_cast<double>(i.tiles); };
  omnibal::encoder_phase const vision{&mixed_sample::images, tiles, tiles, tiles};
  omnibal::encoder_phase const audio{&mixed_sample::sounds, seconds, tiles, tiles};
  for (std::uint64_t round = 0; round != 14; ++round) {
    auto const local = mixed_of_rank(round, rank, ranks);
    auto const plans = omnibal::orchestrate(comm, local, language, std::tuple{vision, audio},
                                            {.ranks_per_node = 2});
    require(omnibal::all_equal(comm, plans.digest()), "the same plans on all ranks");
    require(plans.encoders.size() == 2, "routes for each encoder");
    check_encoder(comm, plans, 0, local, &mixed_sample::images);
    check_encoder(comm, plans, 1, local, &mixed_sample::sounds);

    // The integers to which the owners map their seconds give the same plans.
    double largest = 0;
    for (mixed_sample const& sample : local) {
      for (image const& sound : sample.sounds) largest = std::max(largest, seconds(sound));
    }
    for (double const of_rank : omnibal::all_gather(comm, largest)) {
      largest = std::max(largest, of_rank);
    }
    auto const whole = [&](image const& sound) {
      return largest > 0 ? static_cast<std::int64_t>(seconds(sound) / largest * 2147483648.0) : 0;
    };
    omnibal::encoder_phase const audio_in_integers{&mixed_sample::sounds, whole, tiles, tiles};
    auto const same = omnibal::orchestrate(
        comm, local, language, std::tuple{vision, audio_in_integers}, {.ranks_per_node = 2});
    require(same.digest() == plans.digest(), "quantized costs of an encoder");

    omnibal::encoder_phase const dealt_audio{&mixed_sample::sounds, seconds, tiles, tiles,
                                             omnibal::deal};
    auto const dealt = omnibal::orchestrate(comm, local, language, std::tuple{dealt_audio});
    check_encoder(comm, dealt, 0, local, &mixed_sample::sounds);
    auto const text_alone = omnibal::orchestrate(comm, local, language, std::tuple{});
    require(text_alone.encoders.empty(), "no encoders");
  }
}

/// Calls `run(name, body)` for every body.
template <class Run>
void for_each_exchange_body(Run const& run) {
  run("exchange_many_rounds", [](auto& comm) { exchange_many_rounds(comm, 28); });
  run("exchange_other_payloads", [](auto& comm) { exchange_other_payloads(comm); });
  run("exchange_payloads_of", [](auto& comm) {
    for (std::size_t const bytes : {0u, 1u, 2u, 63u, 4096u, 1'000'003u}) {
      exchange_payloads_of(comm, bytes);
    }
  });
  run("plan_for_other_costs", [](auto& comm) { plan_for_other_costs(comm); });
  run("agree_on_errors", [](auto& comm) { agree_on_errors(comm); });
  run("refuse_differences", [](auto& comm) { refuse_differences(comm); });
  run("orchestrate_many_rounds", [](auto& comm) { orchestrate_many_rounds(comm); });
}

}  // namespace test
