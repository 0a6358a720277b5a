// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/comm/ragged.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/context/cut_pieces.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::context_groups;
using omnibal::context_groups_options;
using omnibal::tabulate_context_cost;
using test::error_text;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::int64_t shared(std::int64_t length, std::uint32_t degree) { return length / degree + 1; }

omnibal::context_cost plain_cost() {
  return {.degrees = {{1, 2, 0}, {1, 1, 0}, {1, 0.7, 0}, {1, 0.5, 0}}};
}

std::string error_of(std::vector<std::int64_t> const& lengths, std::size_t ranks,
                     omnibal::context_cost const& cost,
                     context_groups_options const& options = {}) {
  return error_text<std::invalid_argument>(
      [&] { static_cast<void>(context_groups(lengths, ranks, cost, shared, options)); });
}

TEST_CASE("wrong arguments of context_groups are named with their values", "[context]") {
  auto const cost = plain_cost();
  CHECK(error_of({1}, 0, cost) == "omnibal::context_groups: ranks is 0, must be positive");
  CHECK(error_of({1}, 2, {}) == "omnibal::context_groups: cost.degrees is empty");
  CHECK(error_of({3, -1}, 2, cost) ==
        "omnibal::context_groups: lengths[1] is -1, must be from 0 to 4294967295");
  CHECK(error_of({4'294'967'296}, 2, cost) ==
        "omnibal::context_groups: lengths[0] is 4294967296, must be from 0 to 4294967295");
  CHECK(error_of({1}, 2, cost, {.capacity = -1}) ==
        "omnibal::context_groups: options.capacity is -1, must be finite and not negative");
  CHECK(error_of({1}, 2, cost, {.multiple = 0}) ==
        "omnibal::context_groups: options.multiple is 0, must be positive");
  CHECK(error_of({1}, 2, cost, {.multiple = 65'537}) ==
        "omnibal::context_groups: options.multiple is 65537, must be at most 65536");
  CHECK(error_of({1}, 6, cost, {.ranks_per_node = 4}) ==
        "omnibal::context_groups: options.ranks_per_node is 4, must divide the ranks, which are 6");
  CHECK(error_of({1}, 4, cost, {.degrees = {0, 1}}) ==
        "omnibal::context_groups: options.degrees[0] is 0, must be at least 1");
  CHECK(error_of({1}, 4, cost, {.degrees = {1, 2, 2}}) ==
        "omnibal::context_groups: options.degrees[2] is 2, must be at least 3");
  // The largest degree has a successor, which no degree of 32 bits is.
  CHECK(error_of({1}, 4, cost, {.degrees = {4294967295, 0}}) ==
        "omnibal::context_groups: options.degrees[1] is 0, must be at least 4294967296");
  CHECK(error_of({1}, 4, cost, {.degrees = {2, 4294967295, 1, 2}}) ==
        "omnibal::context_groups: options.degrees[2] is 1, must be at least 4294967296");
  CHECK(error_of({1}, 4, cost, {.degrees = {3}, .ranks_per_node = 2}) ==
        "omnibal::context_groups: options.degrees is {3}, must have a degree that 4 ranks in nodes "
        "of 2 allow");
  CHECK(error_of({1}, 4, cost, {.degrees = {8}}) ==
        "omnibal::context_groups: options.degrees is {8}, must have a degree that 4 ranks allow");
  CHECK(error_of({1}, 8, cost, {.degrees = {1, 8}}) ==
        "omnibal::context_groups: options.degrees has 8, and cost.degrees has times up to degree "
        "4");
  CHECK(error_of({1}, 4, cost, {.speeds = {1, 2}}) ==
        "omnibal::context_groups: options.speeds has 2 values for 4 ranks");
  CHECK(error_of({1}, 2, cost, {.speeds = {1, 0}}) ==
        "omnibal::context_groups: options.speeds[1] is 0, must be positive and finite");
}

TEST_CASE("lengths and bytes of any integer type are numbers", "[context]") {
  auto const bytes = [](std::int64_t length, std::uint32_t) { return static_cast<char>(length); };
  auto const plan = context_groups(std::string("abc"), 2, plain_cost(), bytes);
  CHECK(plan.samples.item_count() == 3);
  CHECK(omnibal::context_pieces(plan, std::string("abc"), 2).sample_count() == 3);
  auto const error = [](auto const& lengths) {
    return error_text<std::invalid_argument>(
        [&] { static_cast<void>(context_groups(lengths, 2, plain_cost(), shared)); });
  };
  CHECK(error(std::vector<signed char>{5, -6}) ==
        "omnibal::context_groups: lengths[1] is -6, must be from 0 to 4294967295");
  CHECK(error(std::vector<std::uint64_t>{5, ~std::uint64_t{0}}) ==
        "omnibal::context_groups: lengths[1] is 18446744073709551615, must be from 0 to "
        "4294967295");
}

TEST_CASE("times that are none are named with their row", "[context]") {
  auto cost = plain_cost();
  cost.degrees[1] = {0, 0, 0};
  CHECK(error_of({1}, 2, cost) ==
        "omnibal::context_groups: cost.degrees[1] is {0, 0, 0}, must not be zero");
  cost.degrees[1] = {0, -1, 2};
  CHECK(error_of({1}, 2, cost) ==
        "omnibal::context_groups: cost.degrees[1] is {0, -1, 2}, must be finite and not negative");
  cost.degrees[1] = {0, std::numeric_limits<double>::quiet_NaN(), 2};
  CHECK(error_of({1}, 2, cost) ==
        "omnibal::context_groups: cost.degrees[1] is {0, nan, 2}, must be finite and not negative");
  cost = plain_cost();
  cost.micro_step = infinity;
  CHECK(error_of({1}, 2, cost) ==
        "omnibal::context_groups: cost.micro_step is inf, must be finite and not negative");
  // Rows above the number of ranks are not looked at.
  cost = plain_cost();
  cost.degrees[3] = {0, 0, 0};
  CHECK(error_of({1}, 2, cost) == "no error");
  cost.degrees = {{0, 1e300, 1e300}};
  CHECK(error_text<std::overflow_error>([&] {
          static_cast<void>(context_groups(std::vector<std::int64_t>(9, 1 << 30), 2, cost, shared));
        }) ==
        "omnibal::context_groups: the time of all samples exceeds the largest value of its type");
}

TEST_CASE("times near the limits of numbers end in an error or a plan", "[context]") {
  std::vector<std::int64_t> const lengths{6, 6, 6};
  omnibal::context_groups_workspace workspace;
  static_cast<void>(context_groups(lengths, 2, plain_cost(), shared, workspace));
  omnibal::context_cost cost{.degrees = {{0, 1, 0}, {0, 0.5, 0}}, .micro_step = 1e308};
  CHECK(error_text<std::overflow_error>([&] {
          static_cast<void>(context_groups(lengths, 2, cost, shared,
                                           {.capacity = 10, .degrees = {1}}, workspace));
        }) ==
        "omnibal::context_groups: the time of all samples exceeds the largest value of its type");
  cost = {.degrees = {{0, 5e-324, 0}, {0, 5e-324, 0}}};
  CHECK(context_groups(std::vector<std::int64_t>(20, 9), 2, cost, shared).micro_steps() != 0);
}

TEST_CASE("memory that is none is named with its arguments", "[context]") {
  std::vector<std::int64_t> const lengths{5, 8};
  auto const cost = plain_cost();
  auto const negative = [](std::int64_t, std::uint32_t) { return -3; };
  CHECK(error_text<std::invalid_argument>([&] {
          static_cast<void>(context_groups(lengths, 2, cost, negative));
        }) == "omnibal::context_groups: memory(8, 1) is -3, must not be negative");
  auto const growing = [](std::int64_t length, std::uint32_t degree) { return length * degree; };
  CHECK(error_text<std::invalid_argument>([&] {
          static_cast<void>(context_groups(lengths, 2, cost, growing, {.capacity = 7}));
        }) ==
        "omnibal::context_groups: memory(8, 2) is 16, must not be above that with fewer ranks, "
        "which is 8");
  auto const huge = [](std::int64_t, std::uint32_t) { return ~std::uint64_t{0}; };
  CHECK(context_groups(lengths, 2, cost, huge).status == omnibal::solve_status::solved);
  CHECK(context_groups(lengths, 2, cost, huge, {.capacity = 7}).status ==
        omnibal::solve_status::infeasible);
}

TEST_CASE("memory that changes its answers is an error or a plan, never a crash", "[context]") {
  for (std::uint64_t seed = 1; seed != 200; ++seed) {
    omnibal::rng::engine random(seed);
    auto const lying = [&random](std::int64_t length, std::uint32_t degree) {
      bool const is_honest = omnibal::rng::below(random, 100) != 0;
      return is_honest ? shared(length, degree)
                       : static_cast<std::int64_t>(omnibal::rng::below(random, 3000));
    };
    std::vector<std::int64_t> lengths(40);
    for (std::size_t i = 0; i != lengths.size(); ++i) lengths[i] = static_cast<std::int64_t>(i * i);
    try {
      auto const plan = context_groups(lengths, 4, plain_cost(), lying, {.capacity = 2000});
      if (plan.status == omnibal::solve_status::solved) CHECK(plan.samples.item_count() == 40);
    } catch (std::invalid_argument const&) {
    }
  }
}

TEST_CASE("wrong arguments of tabulate_context_cost are named with their values", "[context]") {
  auto const time = [](std::int64_t length, std::uint32_t degree) {
    return static_cast<double>(length) / degree;
  };
  auto const error = [&](auto const& functor, std::uint32_t degrees,
                         omnibal::tabulate_context_options const& options = {}) {
    return error_text<std::invalid_argument>(
        [&] { static_cast<void>(tabulate_context_cost(functor, degrees, options)); });
  };
  CHECK(error(time, 0) == "omnibal::tabulate_context_cost: degrees is 0, must be positive");
  CHECK(error(time, 2, {.lengths = {1, 2}}) ==
        "omnibal::tabulate_context_cost: options.lengths is {1, 2}, must have at least three "
        "lengths, no two of them equal");
  CHECK(error(time, 2, {.lengths = {1, 2, 0}}) ==
        "omnibal::tabulate_context_cost: options.lengths[2] is 0, must be from 1 to 1099511627776");
  CHECK(error(time, 2, {.micro_step = -1}) ==
        "omnibal::tabulate_context_cost: options.micro_step is -1, must be finite and not "
        "negative");
  auto const zero = [](std::int64_t, std::uint32_t) { return 0; };
  CHECK(error(zero, 2) ==
        "omnibal::tabulate_context_cost: time(1024, 1) is 0, must be positive and finite");
}

/// Samples 0 and 2 on the ranks 0 and 1 and sample 1 on rank 2, in one micro-step.
omnibal::context_plan two_groups() {
  omnibal::context_plan plan;
  plan.micro_step_offsets = {0, 2};
  plan.groups = {{0, 2, 1}, {2, 1, 1}};
  plan.samples = omnibal::grouping({0, 2, 3}, {0, 2, 1});
  return plan;
}

std::string error_of_pieces(omnibal::context_plan const& plan,
                            std::vector<std::int64_t> const& lengths, std::size_t ranks = 3,
                            omnibal::context_pieces_options const& options = {}) {
  return error_text<std::invalid_argument>(
      [&] { static_cast<void>(omnibal::context_pieces(plan, lengths, ranks, options)); });
}

TEST_CASE("wrong arguments of context_pieces are named with their values", "[context]") {
  auto const plan = two_groups();
  CHECK(error_of_pieces(plan, {3, 4, 5}) == "no error");
  CHECK(error_of_pieces(plan, {3, 4, 5}, 0) ==
        "omnibal::context_pieces: ranks is 0, must be positive");
  CHECK(error_of_pieces(plan, {3, 4, 5}, 3, {.multiple = 0}) ==
        "omnibal::context_pieces: options.multiple is 0, must be positive");
  CHECK(error_of_pieces(plan, {3, -4, 5}) ==
        "omnibal::context_pieces: lengths[1] is -4, must be from 0 to 2147483647");
  CHECK(error_of_pieces(plan, {3, 4, 2'147'483'648}) ==
        "omnibal::context_pieces: lengths[2] is 2147483648, must be from 0 to 2147483647");
  CHECK(error_of_pieces(plan, {3, 4}) ==
        "omnibal::context_pieces: group 0 has item 2, but there are 2 samples");
  CHECK(error_of_pieces(plan, {3, 4, 5, 6}) ==
        "omnibal::context_pieces: the groups have 3 samples, not 4");
  CHECK(error_text<std::overflow_error>([&] {
          static_cast<void>(
              omnibal::context_pieces(plan, std::vector<std::int64_t>{2'147'483'647, 0, 1}, 3));
        }) ==
        "omnibal::context_pieces: the number of tokens of group 0 exceeds the largest value "
        "of its type");
  auto const huge = omnibal::context_pieces_options{
      .multiple = 4'294'967'295, .padding = omnibal::context_padding::to_equal_pieces};
  CHECK(error_text<std::overflow_error>([&] {
          static_cast<void>(
              omnibal::context_pieces(plan, std::vector<std::int64_t>{1, 0, 1}, 3, huge));
        }) ==
        "omnibal::context_pieces: the number of tokens of group 0 exceeds the largest value "
        "of its type");
  auto wide = two_groups();
  wide.groups = {{0, 4'294'967'294, 1}, {4'294'967'294, 1, 1}};
  CHECK(error_text<std::overflow_error>([&] {
          static_cast<void>(omnibal::context_pieces(wide, std::vector<std::int64_t>{1, 0, 1},
                                                    4'294'967'295, huge));
        }) ==
        "omnibal::context_pieces: the padded length of a sample exceeds the largest value of "
        "its type");
}

TEST_CASE("wrong arguments of padded_piece_tokens are named with their values", "[context]") {
  auto const error = [](std::int64_t length, std::uint32_t degree, std::uint32_t multiple) {
    return test::error_text<std::invalid_argument>([&] {
      static_cast<void>(omnibal::padded_piece_tokens(length, degree, {.multiple = multiple}));
    });
  };
  CHECK(error(-1, 1, 1) ==
        "omnibal::padded_piece_tokens: length is -1, must be from 0 to 4294967295");
  CHECK(error(1, 0, 1) == "omnibal::padded_piece_tokens: degree is 0, must be positive");
  CHECK(error(1, 1, 0) == "omnibal::padded_piece_tokens: options.multiple is 0, must be positive");
}

TEST_CASE("plans that are none are named by context_pieces", "[context]") {
  std::vector<std::int64_t> const lengths{3, 4, 5};
  auto plan = two_groups();
  plan.status = omnibal::solve_status::infeasible;
  plan.sample = 2;
  CHECK(error_of_pieces(plan, lengths) ==
        "omnibal::context_pieces: plan has no groups, since sample 2 fits on no degree");
  plan = two_groups();
  plan.samples.close();
  CHECK(error_of_pieces(plan, lengths) ==
        "omnibal::context_pieces: plan.samples has 3 values for 2 groups");
  for (std::vector<std::uint32_t> const& offsets :
       {std::vector<std::uint32_t>{}, {1, 2}, {0, 1}, {0, 3, 2}}) {
    plan = two_groups();
    plan.micro_step_offsets = offsets;
    CHECK(error_of_pieces(plan, lengths) == "omnibal::context_pieces: plan.micro_step_offsets is " +
                                                omnibal::detail::list_text(offsets) +
                                                ", must start with 0, not decrease and end with 2");
  }
  CHECK(error_of_pieces(two_groups(), lengths, 2) ==
        "omnibal::context_pieces: plan.groups[1] has 1 ranks from 2 on, must have some from 2 to "
        "1");
  plan = two_groups();
  plan.groups[1].first_rank = 1;
  CHECK(error_of_pieces(plan, lengths) ==
        "omnibal::context_pieces: plan.groups[1] has 1 ranks from 1 on, must have some from 2 to "
        "2");
  plan = two_groups();
  plan.groups[0].degree = 0;
  CHECK(error_of_pieces(plan, lengths) ==
        "omnibal::context_pieces: plan.groups[0] has 0 ranks from 0 on, must have some from 0 to "
        "2");
  plan = two_groups();
  plan.samples = omnibal::grouping({0, 2, 3}, {0, 2, 0});
  CHECK(error_of_pieces(plan, lengths) == "omnibal::context_pieces: sample 0 is in two places");
}

TEST_CASE("wrong arguments of context_exchange are named with their values", "[context]") {
  auto const layout = omnibal::context_pieces(two_groups(), std::vector<int>{3, 4, 5}, 3);
  auto const error = [&](std::vector<int> const& home_offsets, std::int64_t token_bytes = 2,
                         omnibal::placement_options const& options = {}) {
    return error_text<std::invalid_argument>([&] {
      static_cast<void>(omnibal::context_exchange(layout, home_offsets, token_bytes, options));
    });
  };
  CHECK(error({0, 1, 1, 3}) == "no error");
  CHECK(error({0, 1, 3}) ==
        "omnibal::context_exchange: home_offsets has 3 values for 4 ranks and an end");
  CHECK(error({1, 1, 1, 3}) ==
        "omnibal::context_exchange: home_offsets[0] is 1; offsets start with 0 and do not "
        "decrease");
  CHECK(error({0, 2, 1, 3}) ==
        "omnibal::context_exchange: home_offsets[2] is 1; offsets start with 0 and do not "
        "decrease");
  CHECK(error({0, 1, 1, 4}) ==
        "omnibal::context_exchange: home_offsets ends with 4, must end with the number of "
        "samples, 3");
  CHECK(error({0, 1, 1, 3}, -2) ==
        "omnibal::context_exchange: token_bytes is -2, must be finite and not negative");
  CHECK(error({0, 1, 1, 3}, 2, {.ranks_per_node = 0}) ==
        "omnibal::context_exchange: options.ranks_per_node is 0, must be positive");
  CHECK(error_text<std::overflow_error>([&] {
          static_cast<void>(omnibal::context_exchange(layout, std::vector<int>{0, 1, 1, 3},
                                                      std::int64_t{1} << 60));
        }) ==
        "omnibal::context_exchange: the sum of the bytes exceeds the largest value of its type");
}

TEST_CASE("samples and rows that do not match a layout are named", "[context]") {
  auto const layout = omnibal::context_pieces(two_groups(), std::vector<int>{3, 4, 5}, 3);
  using rows_type = std::vector<std::vector<int>>;
  auto const cut_error = [&](std::vector<int> const& home_offsets, std::size_t rank,
                             rows_type const& samples) {
    return error_text<std::invalid_argument>(
        [&] { static_cast<void>(omnibal::cut_pieces(layout, home_offsets, rank, samples)); });
  };
  std::vector<int> const home_offsets{0, 2, 2, 3};
  CHECK(cut_error(home_offsets, 0, {{1, 2, 3}, {1, 2, 3, 4}}) == "no error");
  CHECK(cut_error(home_offsets, 1, {}) == "no error");
  CHECK(cut_error({0, 2, 3}, 0, {}) ==
        "omnibal::cut_pieces: home_offsets has 3 values for 4 ranks and an end");
  CHECK(cut_error(home_offsets, 3, {}) ==
        "omnibal::cut_pieces: rank is 3, must be below the number of ranks, 3");
  CHECK(cut_error({0, 2, 2, 4}, 2, {}) ==
        "omnibal::cut_pieces: home_offsets[2] is 2 and the next one 4; offsets do not decrease and "
        "end with the number of samples, 3");
  CHECK(cut_error({0, 2, 1, 3}, 1, {}) ==
        "omnibal::cut_pieces: home_offsets[1] is 2 and the next one 1; offsets do not decrease and "
        "end with the number of samples, 3");
  CHECK(cut_error({-1, 2, 2, 3}, 0, {}) ==
        "omnibal::cut_pieces: home_offsets[0] is -1 and the next one 2; offsets do not decrease "
        "and end with the number of samples, 3");
  CHECK(cut_error(home_offsets, 2, {}) ==
        "omnibal::cut_pieces: samples has 0 values for 1 samples of this rank");
  CHECK(cut_error(home_offsets, 0, {{1, 2, 3, 4}, {1, 2, 3, 4}}) ==
        "omnibal::cut_pieces: samples[0] has 4 values for 3 tokens, must have as many for each "
        "token");
  CHECK(cut_error(home_offsets, 0, {{1, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8}}) ==
        "omnibal::cut_pieces: samples[1] has 8 values for 4 tokens, must have as many for each "
        "token");
  auto const join_error = [&](std::size_t rank, std::vector<std::uint64_t> const& sizes) {
    omnibal::ragged<int> rows;
    rows.shape(sizes);
    return error_text<std::invalid_argument>(
        [&] { static_cast<void>(omnibal::join_pieces(layout, home_offsets, rank, rows)); });
  };
  // Of five tokens the ranks 0 and 1 have one and two at the head, the middle of rank 1 being one
  // piece, and rank 0 has the tail.
  REQUIRE(layout.piece_offsets()[3] - layout.piece_offsets()[2] == 3);
  std::vector<std::uint64_t> sizes;
  for (auto const& piece : layout.pieces().subspan(layout.piece_offsets()[2])) {
    sizes.push_back(2 * static_cast<std::uint64_t>(piece.tokens));
  }
  CHECK(join_error(2, sizes) == "no error");
  ++sizes[1];
  CHECK(join_error(2, sizes) == "omnibal::join_pieces: rows[1] has " + std::to_string(sizes[1]) +
                                    " values for " + std::to_string(sizes[1] / 2) +
                                    " tokens, must have as many for each token");
  sizes.pop_back();
  CHECK(join_error(2, sizes) ==
        "omnibal::join_pieces: rows has 2 values for 3 pieces of this rank");
  CHECK(join_error(3, {}) ==
        "omnibal::join_pieces: rank is 3, must be below the number of ranks, 3");
}

}  // namespace
