// SPDX-License-Identifier: Apache-2.0
// Fits and tables through whatever points the bytes describe: finite where they return, exact where
// they say so.

#include "byte_reader.hpp"
#include "odd_numbers.hpp"

#include <omnibal/config.hpp>
#include <omnibal/cost/affine_fit.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/measured_table.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/two_point_probe.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using omnibal::detail::int128;
using test::byte_reader;
using test::oddity;
using test::read_number;
using test::require;
using test::returns;

template <std::size_t R, class T>
struct point {
  omnibal::resources<R, T> size;
  T value;
};

template <std::size_t R, class T>
void check_fit(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::uint8_t const form = bytes.next();
  omnibal::affine_fit_options const options{.offset = omnibal::fit_offset{form & 1},
                                            .signs = omnibal::fit_signs{form >> 1 & 1},
                                            .loss = omnibal::fit_loss{form >> 2 & 1}};
  // Half of the inputs lie on a plane.
  bool const is_exact = form % 16 < 8 && kind == oddity::none;
  T const slope = static_cast<T>(bytes.next());
  std::vector<point<R, T>> points;
  while (!bytes.empty() && points.size() < 60) {
    point<R, T> made{};
    for (auto& amount : made.size.amounts) amount = read_number<T>(bytes, kind);
    made.value = is_exact ? slope * made.size[0] : read_number<T>(bytes, kind);
    points.push_back(made);
  }
  // Which points do not determine the coefficients is not told here.
  returns("affine_fit", oddity::wrong, [&] {
    auto const fit = omnibal::affine_fit(points, &point<R, T>::size, &point<R, T>::value, options);
    bool is_finite = std::isfinite(fit.offset) && !std::isnan(fit.largest_residual) &&
                     !std::isnan(fit.root_mean_square_residual);
    bool is_negative = fit.offset < 0;
    for (double const coefficient : fit.slopes.amounts) {
      is_finite = is_finite && std::isfinite(coefficient);
      is_negative = is_negative || coefficient < 0;
    }
    require(is_finite, "affine_fit has finite coefficients");
    require(!is_negative || options.signs == omnibal::fit_signs::any,
            "affine_fit has no negative coefficients");
    require(options.offset == omnibal::fit_offset::free || fit.offset == 0,
            "affine_fit has no offset");
    require(fit.largest_residual_index < points.size(), "affine_fit names a point");
    if constexpr (std::integral<T>) {
      require(!fit.exact || fit.largest_residual == 0, "affine_fit is exact where it says so");
      require(!is_exact || fit.exact, "affine_fit finds whole coefficients");
    }
    for (auto const& one : points) {
      if (kind != oddity::none) break;
      double const cost = fit(one.size);
      require(cost >= 0 && std::isfinite(cost), "affine_fit gives costs");
    }
  });
}

template <class T>
struct measurement {
  std::int64_t size;
  T value;
};

template <class T>
void check_table(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::int64_t const asked = read_number<std::int64_t>(bytes, kind);
  std::vector<measurement<T>> points;
  while (!bytes.empty() && points.size() < 40) {
    points.push_back({read_number<std::int64_t>(bytes, kind), read_number<T>(bytes, kind)});
  }
  bool const is_sorted = kind == oddity::wrong || bytes.next() % 2 == 0;
  if (is_sorted) {
    auto const by_size = [](auto const& a, auto const& b) { return a.size < b.size; };
    std::sort(points.begin(), points.end(), by_size);
    auto const is_same = [](auto const& a, auto const& b) { return a.size == b.size; };
    points.erase(std::unique(points.begin(), points.end(), is_same), points.end());
  }
  bool const is_right = is_sorted && !points.empty();
  returns("measured_table", is_right ? kind : oddity::wrong, [&] {
    auto const table =
        omnibal::measured_table(points, &measurement<T>::size, &measurement<T>::value);
    require(table.points() == points.size(), "measured_table has its points");
    for (auto const& one : points) {
      if constexpr (std::integral<T>) {
        require(table(one.size) == one.value, "measured_table gives what was measured");
      }
    }
    // Beyond the points the value may leave its type.
    returns("measured_table", oddity::large, [&] {
      if (asked >= 0) require(table(asked) >= 0, "measured_table is never negative");
    });
  });
}

void check_probe(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  omnibal::memory_reading const few{bytes.next() % 64, read_number<std::int64_t>(bytes, kind)};
  omnibal::memory_reading const many{bytes.next() % 64, read_number<std::int64_t>(bytes, kind)};
  std::int64_t const layers = bytes.next();
  std::int64_t const target = read_number<std::int64_t>(bytes, kind);
  bool const is_right =
      few.checkpointed_layers < many.checkpointed_layers && few.free_bytes < many.free_bytes;
  auto const allowed = is_right ? std::max(kind, oddity::large) : oddity::wrong;
  returns("two_point_probe", allowed, [&] {
    auto const line = omnibal::two_point_probe(few, many);
    require(line.free_bytes(few.checkpointed_layers) == few.free_bytes &&
                line.free_bytes(many.checkpointed_layers) == many.free_bytes,
            "two_point_probe gives what was read");
    auto const count = line.checkpointed_for(layers, target);
    std::int64_t const left = line.free_bytes(count.layers);
    require(count.layers >= 0 && count.layers <= layers, "two_point_probe has so many layers");
    if (count.status != omnibal::solve_status::solved) {
      require(count.layers == layers && int128{target} - left == count.missing_bytes,
              "two_point_probe says what is missing");
      return;
    }
    require(left >= target, "two_point_probe leaves what was asked for");
    require(count.layers == 0 || line.free_bytes(count.layers - 1) < target,
            "two_point_probe checkpoints no more than it must");
  });
}

void check_quadratic(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  omnibal::quadratic_cost const cost{read_number<std::int64_t>(bytes, kind),
                                     read_number<std::int64_t>(bytes, kind)};
  std::int64_t const length = read_number<std::int64_t>(bytes, kind);
  bool const is_right = length <= omnibal::detail::max_tokens;
  returns("quadratic_cost", is_right ? std::max(kind, oddity::large) : oddity::wrong, [&] {
    require(
        int128{cost(length)} == (int128{cost.quadratic} * length + cost.linear) * int128{length},
        "quadratic_cost is what it says");
  });
}

/// Lengths through spans: sums, layers and costs of samples agree, or say what is wrong.
void check_spans(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  omnibal::transformer layer{.hidden = 8, .heads = 2, .mlp = 4};
  layer.span.kind = omnibal::span_kind{bytes.next() % 3};
  layer.span.tokens = read_number<std::int64_t>(bytes, kind);
  if (bytes.next() % 2 == 0) layer.indexer = {.heads = 1, .head_size = 2};
  std::vector<std::int64_t> lengths;
  while (!bytes.empty() && lengths.size() < 40) {
    lengths.push_back(read_number<std::int64_t>(bytes, kind));
  }
  // A window of no tokens is wrong, which the bytes of any kind can say.
  returns("sequences_of", oddity::wrong, [&] {
    auto const spans = omnibal::attention_spans(layer);
    auto const made = omnibal::sequences_of(lengths, {}, spans);
    int128 squares = 0;
    int128 flops = 0;
    auto const cost = layer.sample_cost();
    for (std::int64_t const length : lengths) {
      squares += layer.span.squares(length);
      flops += cost(length);
    }
    require(layer.span.kind == omnibal::span_kind::whole || made.spans[0].squares == squares,
            "sequences_of adds the squares of its lengths");
    require(layer({.documents = made}).flops() == flops, "a layer costs what its documents cost");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes({data, size});
  switch (bytes.next() % 9) {
    case 0: check_fit<1, std::int64_t>(bytes); break;
    case 1: check_fit<2, std::int64_t>(bytes); break;
    case 2: check_fit<3, double>(bytes); break;
    case 3: check_fit<1, double>(bytes); break;
    case 4: check_table<std::int64_t>(bytes); break;
    case 5: check_table<double>(bytes); break;
    case 6: check_probe(bytes); break;
    case 7: check_quadratic(bytes); break;
    default: check_spans(bytes); break;
  }
  return 0;
}
