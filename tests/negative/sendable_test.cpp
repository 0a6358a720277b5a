// SPDX-License-Identifier: Apache-2.0
// Samples that refer to memory of this rank are not sent as bytes.

#include <omnibal/exchange/exchange_samples.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <catch.hpp>

namespace {

template <class Sample>
concept sendable = omnibal::sendable_samples<std::vector<Sample>>;

struct plain {
  int id;
  double weight;
  std::array<float, 3> position;
  std::int64_t tokens[4];
};
struct nested {
  plain first;
  char kind;
};
struct with_pointer {
  int id;
  float const* pixels;
};
struct with_view {
  int id;
  std::span<int const> tokens;
};
struct with_text {
  std::string_view name;
};
struct with_array_of_pointers {
  int id;
  std::array<int*, 2> rows;
};
struct deep {
  plain first;
  with_view second;
};

static_assert(sendable<int> && sendable<double> && sendable<plain> && sendable<nested>);
static_assert(sendable<std::array<int, 4>>);
// Of arrays of any length the elements travel.
static_assert(sendable<std::vector<int>> && sendable<std::span<int const>>);
static_assert(sendable<std::string> && sendable<std::vector<plain>>);

static_assert(!sendable<int*> && !sendable<with_pointer> && !sendable<with_view>);
static_assert(!sendable<with_text> && !sendable<with_array_of_pointers> && !sendable<deep>);
static_assert(!sendable<std::array<int const*, 3>>);
static_assert(!sendable<std::vector<int*>> && !sendable<std::vector<with_view>>);
static_assert(!sendable<std::vector<std::string_view>>);

}  // namespace

TEST_CASE("what refers elsewhere is no sample to send") { SUCCEED(); }
