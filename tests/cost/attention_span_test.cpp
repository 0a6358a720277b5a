// SPDX-License-Identifier: Apache-2.0
// Spans against brute force over all pairs of tokens.

#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/cost/transformer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::attention_span;
using omnibal::span_kind;

/// The number of earlier tokens, and of the token itself, that a token sees.
std::int64_t keys_of(attention_span const& span, std::int64_t token) {
  switch (span.kind) {
    case span_kind::whole: return token + 1;
    case span_kind::window: return std::min(token + 1, span.tokens);
    case span_kind::chunk: return token % span.tokens + 1;
  }
  return 0;
}

}  // namespace

TEST_CASE("squares are twice the pairs of the mask, without half of its diagonal") {
  // A token itself counts as half a pair, as in length^2 / 2. Behind the first tokens of a window
  // no triangle is left, and every key counts whole.
  for (std::int64_t length = 0; length != 40; ++length) {
    for (std::int64_t tokens = 1; tokens != 45; ++tokens) {
      for (auto const kind : {span_kind::whole, span_kind::window, span_kind::chunk}) {
        attention_span const span{kind, tokens};
        std::int64_t pairs = 0;
        for (std::int64_t i = 0; i != length; ++i) pairs += keys_of(span, i);
        std::int64_t const diagonal = kind == span_kind::window ? std::min(length, tokens) : length;
        CHECK(span.squares(length) == 2 * pairs - diagonal);
      }
    }
  }
}

TEST_CASE("a span of the whole length or more changes nothing") {
  for (std::int64_t const length : {1, 17, 4096}) {
    for (auto const kind : {span_kind::window, span_kind::chunk}) {
      CHECK(attention_span{kind, length}.squares(length) == length * length);
      CHECK(attention_span{kind, length + 1}.squares(length) == length * length);
      CHECK(attention_span{kind, 1}.squares(length) ==
            (kind == span_kind::window ? 2 * length - 1 : length));
    }
  }
}

TEST_CASE("squares grow with the length and with the span") {
  test::random_amounts random(1);
  for (int run = 0; run != 2000; ++run) {
    auto const kind = run % 2 == 0 ? span_kind::window : span_kind::chunk;
    attention_span const span{kind, random.between(1, 5000)};
    std::int64_t const length = random.between(0, 20'000);
    CHECK(span.squares(length) <= span.squares(length + 1));
    CHECK(span.squares(length) <= length * length);
    CHECK(span.squares(length) >= length);
    if (kind == span_kind::window) {
      CHECK(span.squares(length) <= attention_span{kind, span.tokens + 1}.squares(length));
    }
  }
}

TEST_CASE("sequences have the sums of single documents") {
  test::random_amounts random(2);
  for (int run = 0; run != 300; ++run) {
    std::array<attention_span, 2> const spans{
        attention_span{span_kind::window, random.between(1, 3000)},
        attention_span{span_kind::chunk, random.between(1, 3000)}};
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(random.between(0, 20)));
    for (auto& length : lengths) length = random.between(0, 5000);
    auto const made = omnibal::sequences_of(lengths, {}, spans);
    for (std::size_t i = 0; i != spans.size(); ++i) {
      std::int64_t sum = 0;
      for (std::int64_t const length : lengths) sum += spans[i].squares(length);
      CHECK(made.spans[i].span == spans[i]);
      CHECK(made.spans[i].squares == sum);
    }
    CHECK(made.tokens == omnibal::sequences_of(lengths).tokens);
    CHECK(made.squares == omnibal::sequences_of(lengths).squares);
  }
}

TEST_CASE("a layer finds its squares, or computes them if it can") {
  omnibal::transformer layer{.hidden = 32, .heads = 8, .mlp = 20};
  layer.span = {span_kind::window, 100};
  auto const flops = [&](std::vector<std::int64_t> const& lengths, auto const&... spans) {
    std::array<attention_span, sizeof...(spans)> const all{spans...};
    return layer({.documents = omnibal::sequences_of(lengths, {}, all)}).flops();
  };
  attention_span const other{span_kind::chunk, 50};
  attention_span const whole{};
  CHECK(flops({300, 40}, other, layer.span) == flops({300, 40}, layer.span));
  CHECK(flops({300, 40}, whole, layer.span) == flops({300, 40}, layer.span));
  CHECK(flops({300, 40}, layer.span, layer.span) == flops({300, 40}, layer.span));
  // Equal lengths, also if they are longer than the window.
  CHECK(flops({300, 300, 300}) == flops({300, 300, 300}, layer.span));
  // Nothing can be longer than the window.
  CHECK(flops({60, 50}) == flops({60, 50}, layer.span));
  CHECK(flops({}) == 0);
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(flops({300, 40}));
        }) ==
        "omnibal::transformer: documents.spans has no squares for a window of 100 tokens; pass "
        "attention_spans(model) to sequences_of");
}

TEST_CASE("a model names its windows and chunks once") {
  omnibal::transformer whole{.hidden = 32, .heads = 8, .mlp = 20};
  omnibal::transformer windowed = whole;
  windowed.span = {span_kind::window, 100};
  omnibal::transformer chunked = whole;
  chunked.span = {span_kind::chunk, 70};
  omnibal::mixed_language_model model{
      .input = {.vocabulary = 100, .hidden = 32},
      .runs = {{2, windowed}, {1, whole}, {2, windowed}, {0, chunked}},
      .output = {.vocabulary = 100, .hidden = 32},
      .prediction_layers = 1,
      .prediction = {.layer = chunked, .vocabulary = 100}};
  auto const spans = omnibal::attention_spans(model);
  CHECK(spans == std::array{windowed.span, chunked.span});
  CHECK(omnibal::attention_spans(whole) == std::array<attention_span, 2>{});
  std::vector<std::int64_t> const lengths{300, 40, 123};
  std::int64_t sum = 0;
  for (std::int64_t const length : lengths) sum += omnibal::document_cost(model)(length);
  std::int64_t together = 0;
  for (auto const& cost :
       omnibal::layer_costs(model, {.documents = omnibal::sequences_of(lengths, {}, spans)})) {
    together += cost.flops();
  }
  CHECK(sum == together);
  model.runs[3] = {1, whole};
  model.runs[3].layer.span = {span_kind::window, 7};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::attention_spans(model));
        }) == "omnibal::attention_spans: the model has more than 2 different windows and chunks");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::document_cost(model));
        }) == "omnibal::quadratic_cost: the layers have more than 2 different windows and chunks");
}

TEST_CASE("costs with spans add up and multiply") {
  attention_span const window{span_kind::window, 100};
  attention_span const chunk{span_kind::chunk, 70};
  omnibal::quadratic_cost const left{
      .linear = 1, .quadratic = 2, .spans = {omnibal::span_factor{window, 3}}};
  omnibal::quadratic_cost const right{
      .linear = 4, .spans = {omnibal::span_factor{chunk, 5}, omnibal::span_factor{window, 6}}};
  for (std::int64_t const length : {0, 1, 69, 70, 71, 100, 1000}) {
    std::int64_t const expected = left(length) + 7 * right(length);
    CHECK((left + 7 * right)(length) == expected);
    CHECK((7 * right + left)(length) == expected);
  }
  CHECK(0 * right == omnibal::quadratic_cost{});
  CHECK(left(1000) == 1000 + 2 * 1000 * 1000 + 3 * window.squares(1000));
}

TEST_CASE("bad spans are errors") {
  auto const invalid = [](auto const& call) {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(call()); });
  };
  CHECK(invalid([] {
          return attention_span{span_kind::window, 0}.squares(5);
        }) == "omnibal::attention_span: tokens is 0, must be from 1 to 1099511627776");
  CHECK(invalid([] {
          return attention_span{span_kind::chunk, -1}.squares(5);
        }) == "omnibal::attention_span: tokens is -1, must be from 1 to 1099511627776");
  CHECK(invalid([] {
          return attention_span{span_kind::window, 4}.squares(-1);
        }) == "omnibal::attention_span: length is -1, must be from 0 to 1099511627776");
  CHECK(test::error_text<std::overflow_error>(
            [] { static_cast<void>(attention_span{}.squares(std::int64_t{1} << 32)); }) ==
        "omnibal::attention_span: the squares of a length exceeds the largest value of its type");
  std::vector<std::int64_t> const lengths{5};
  std::vector<attention_span> spans{{span_kind::window, 1}, {span_kind::window, 2}};
  spans.push_back({span_kind::chunk, 1});
  CHECK(invalid([&] { return omnibal::sequences_of(lengths, {}, spans); }) ==
        "omnibal::sequences_of: spans is 3, has more than 2 different windows and chunks");
  spans = {{span_kind::window, 0}};
  CHECK(invalid([&] { return omnibal::sequences_of(lengths, {}, spans); }) ==
        "omnibal::sequences_of: spans.tokens is 0, must be from 1 to 1099511627776");
}
