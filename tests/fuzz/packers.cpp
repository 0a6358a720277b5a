// SPDX-License-Identifier: Apache-2.0
// Packs whatever the bytes describe with every packer and compares with naive ones.

#include "packers.hpp"

#include "byte_reader.hpp"
#include "naive_packers.hpp"
#include "packing_faults.hpp"
#include "stream.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/split_long.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace {

using test::byte_reader;
using test::require;

/// What a run asks: all of few samples, or one family, which leaves time for many runs.
enum class family { all, packers, isf, best_fit, improve_packing, online, split, thorough_bound };

/// From 1 to 2^62 + 255.
std::int64_t read_capacity(byte_reader& bytes) {
  std::int64_t const power = std::int64_t{1} << bytes.next() % 63;
  return power + bytes.next();
}

/// Often where packers decide, else anywhere up to somewhat above the limit.
std::int64_t read_amount(byte_reader& bytes, std::int64_t limit) {
  std::uint8_t const kind = bytes.next();
  std::int64_t const special[] = {0,         limit / 2, limit / 2 + 1, limit / 3, limit / 3 + 1,
                                  limit - 1, limit,     limit + 1,     1};
  if (kind < std::size(special)) return special[kind];
  return limit / 240 * kind + bytes.next() % (limit / 240 + 2);
}

template <std::size_t R, class T>
void check_all_packers(std::vector<omnibal::resources<R, T>> const& samples,
                       omnibal::resources<R, T> const& capacity) {
  test::for_each_packer([&](std::string const& name, auto const& pack) {
    std::string const wrong =
        test::fault(pack(samples, std::identity{}, capacity), samples, capacity);
    require(wrong.empty(), name + ": " + wrong);
  });
  auto const next = omnibal::next_fit(samples, std::identity{}, capacity);
  require(next.groups == test::naive_next_fit(samples, capacity).groups,
          "next_fit gives the groups of a naive next-fit");
  require(omnibal::packing_bound(samples, std::identity{}, capacity) == next.report.lower_bound,
          "next_fit reports the lower bound");
}

template <std::size_t R, class T>
void check_thorough_bound(std::vector<omnibal::resources<R, T>> const& samples,
                          omnibal::resources<R, T> const& capacity, std::size_t steps) {
  auto const best = omnibal::best_packing(samples, std::identity{}, capacity);
  auto const plain = omnibal::packing_bound(samples, std::identity{}, capacity);
  auto const thorough = omnibal::packing_bound(samples, std::identity{}, capacity,
                                               {omnibal::effort::thorough, steps});
  require(plain <= thorough, "the thorough bound is not below the plain one");
  require(thorough <= best.groups.size(), "no packing has fewer groups than the thorough bound");
}

template <std::size_t R, class T, class Shuffle>
void check_isf(std::vector<omnibal::resources<R, T>> const& samples,
               omnibal::resources<R, T> const& capacity, omnibal::isf_options const& options,
               omnibal::reaches_any<omnibal::resources<R, T>> const& keep, Shuffle const& shuffle) {
  auto const result = omnibal::isf(samples, std::identity{}, capacity, options, keep, shuffle);
  auto expected = test::naive_isf(samples, capacity, options, keep, shuffle);
  expected.report.lower_bound = result.report.lower_bound;
  require(result == expected, "isf gives the groups of a naive isf");
  std::string const fault = test::fault(result, samples, capacity);
  require(fault.empty(), "isf: " + fault);
}

template <std::size_t R, class T>
void check_best_fit(std::vector<omnibal::resources<R, T>> const& samples,
                    omnibal::resources<R, T> const& capacity,
                    omnibal::best_packing_options const& options) {
  auto const check = [&](auto const&... score) {
    auto const result = omnibal::best_fit_decreasing(samples, std::identity{}, capacity,
                                                     {options.measure}, score...);
    std::string const fault = test::fault(result, samples, capacity);
    require(fault.empty(), "best_fit_decreasing: " + fault);
    return result;
  };
  check([](auto const& left, auto const& demand) { return left[0] / 2 + demand[R - 1] / 2; });
  auto const result = check();
  auto const best = omnibal::best_packing(samples, std::identity{}, capacity, options);
  std::string const fault = test::fault(best, samples, capacity);
  require(fault.empty(), "best_packing: " + fault);
  require(best.groups.size() <= result.groups.size(),
          "best_packing has no more groups than its first order");
  if constexpr (R == 1 && std::integral<T>) {
    require(result.groups == test::naive_best_fit(samples, capacity[0]),
            "best_fit_decreasing gives the groups of a naive one");
  }
}

template <std::size_t R, class T>
void check_improve(std::vector<omnibal::resources<R, T>> const& samples,
                   omnibal::resources<R, T> const& capacity,
                   omnibal::improve_packing_options const& options) {
  auto const start = omnibal::next_fit(samples, std::identity{}, capacity);
  auto const result = omnibal::improve_packing(samples, std::identity{}, capacity, start, options);
  std::string const fault = test::fault(result, samples, capacity);
  require(fault.empty(), "improve_packing: " + fault);
  require(result.groups.size() <= start.groups.size(), "improve_packing makes no more groups");
}

/// Also saves and restores the packer after half of the samples.
template <std::size_t R, class T>
void check_online(std::vector<omnibal::resources<R, T>> const& samples,
                  omnibal::resources<R, T> const& capacity,
                  omnibal::online_packer_options const& options) {
  omnibal::online_packer<R, T> packer(capacity, options);
  auto const output = test::run_stream(packer, samples);
  std::string const fault = test::stream_fault(output, samples, capacity, options);
  require(fault.empty(), "online_packer: " + fault);

  test::stream_output<R, T> resumed;
  test::push_all(packer, samples, 0, samples.size() / 2, resumed);
  omnibal::online_packer<R, T> restored(packer.state());
  test::push_all(restored, samples, samples.size() / 2, samples.size(), resumed);
  test::flush_all(restored, samples.size(), resumed);
  require(resumed == output, "online_packer has the same future when it is restored");
}

/// Splits samples of up to 30 capacities of the first.
void check_split(std::vector<omnibal::resources<1>> const& samples, std::int64_t capacity,
                 omnibal::piece_sizes sizes) {
  std::int64_t const smaller = capacity / 30 + 1;
  omnibal::split_long_options const options{.sizes = sizes, .multiple = smaller / 3 + 1};
  auto const result = omnibal::split_long(
      samples, [](auto const& sample) { return sample[0]; }, smaller, options);
  std::vector<std::int64_t> left(samples.size());
  for (std::size_t i = 0; i != samples.size(); ++i) left[i] = samples[i][0];
  for (auto const& piece : result.pieces) {
    require(piece.first == samples[piece.sample][0] - left[piece.sample],
            "split_long cuts a sample into consecutive pieces");
    require(piece.length <= smaller, "split_long makes pieces that fit");
    left[piece.sample] -= piece.length;
  }
  require(std::count(left.begin(), left.end(), 0) == std::ssize(left), "split_long keeps tokens");
  require(result.groups.item_count() == result.pieces.size(), "split_long keeps pieces");
}

template <std::size_t R, class T>
void check_packers(byte_reader& bytes, family asked) {
  omnibal::resources<R> limits{};
  omnibal::resources<R, T> capacity{};
  omnibal::resources<R, T> threshold{};
  // Tenths have no exact value, so that sums depend on their order.
  auto const convert = [tenths = bytes.next() % 2 != 0](std::int64_t amount) {
    if constexpr (std::floating_point<T>) return static_cast<T>(amount) * (tenths ? 0.1 : 1.0);
    return static_cast<T>(amount);
  };
  for (std::size_t r = 0; r != R; ++r) {
    limits[r] = read_capacity(bytes);
    capacity[r] = convert(limits[r]);
    threshold[r] = std::min(capacity[r], convert(read_amount(bytes, limits[r])));
  }
  omnibal::isf_options const options{.rounds = bytes.next() % 8u + 1,
                                     .min_gain = bytes.next() / 255.0};
  auto const measure = bytes.next() % 2 == 0 ? omnibal::size_measure::sum_of_shares
                                             : omnibal::size_measure::largest_share;
  std::size_t const few = bytes.next() % 4u + 1;
  omnibal::best_packing_options const fit_options{.measure = measure, .orders = few};
  std::uint8_t const seed = bytes.next();
  // Each sample is there so many times, so that few bytes make many blocks of samples. Only what
  // cuts them into blocks is asked about many.
  std::uint8_t const shape = bytes.next();
  std::size_t const copies = std::size_t{1} << shape % 8;
  bool const has_blocks =
      asked == family::packers || asked == family::isf || asked == family::best_fit;
  std::size_t const most = has_blocks && shape < 8 ? 4096 : asked == family::all ? 24 : 48;
  std::vector<omnibal::resources<R, T>> samples;
  while (!bytes.empty() && samples.size() < most) {
    omnibal::resources<R, T> sample{};
    for (std::size_t r = 0; r != R; ++r) {
      sample[r] = convert(read_amount(bytes, limits[r]));
    }
    samples.insert(samples.end(), copies, sample);
  }

  auto const asks = [&](family one) { return asked == family::all || asked == one; };
  if (asks(family::packers)) check_all_packers(samples, capacity);
  if (asks(family::thorough_bound)) {
    // Ends early now and then, and never takes as long as by default.
    check_thorough_bound(samples, capacity, std::size_t{1} << seed % 15);
  }
  if (asks(family::isf)) {
    omnibal::reaches_any const keep{threshold};
    auto const rotate = [seed](std::span<std::uint32_t> order, std::uint64_t round) {
      auto const middle = static_cast<std::ptrdiff_t>((seed + round) % order.size());
      std::rotate(order.begin(), order.begin() + middle, order.end());
    };
    check_isf(samples, capacity, options, keep, omnibal::rng::fisher_yates{seed});
    check_isf(samples, capacity, options, keep, omnibal::rng::feistel{seed});
    check_isf(samples, capacity, options, keep, omnibal::rng::numpy_shuffle{seed});
    check_isf(samples, capacity, options, keep, rotate);
  }
  if (asks(family::best_fit)) check_best_fit(samples, capacity, fit_options);
  if (asks(family::improve_packing)) {
    check_improve(samples, capacity, {.passes = options.rounds, .even_passes = few, .seed = seed});
  }
  if (asks(family::online)) {
    check_online(
        samples, capacity,
        {.buffer = seed + 1u, .longest_wait = 8 * options.rounds + seed, .candidates = few});
  }
  if constexpr (R == 1 && std::integral<T>) {
    if (asks(family::split)) {
      check_split(samples, capacity[0],
                  seed % 2 == 0 ? omnibal::piece_sizes::even : omnibal::piece_sizes::full);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes({data, size});
  std::uint8_t const first = bytes.next();
  auto const asked = static_cast<family>(first / 5 % 8);
  switch (first % 5) {
    case 0: check_packers<1, std::int64_t>(bytes, asked); break;
    case 1: check_packers<2, std::int64_t>(bytes, asked); break;
    case 2: check_packers<3, std::int64_t>(bytes, asked); break;
    case 3: check_packers<1, double>(bytes, asked); break;
    default: check_packers<2, double>(bytes, asked); break;
  }
  return 0;
}
