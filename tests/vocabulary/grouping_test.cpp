// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"
#include "error_text.hpp"
#include "to_vector.hpp"

#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::grouping_view;
using test::allocations_of;
using test::error_text;
using test::to_vector;

using indices = std::vector<std::uint32_t>;

static_assert(std::is_trivially_copyable_v<grouping_view>);
static_assert(std::is_convertible_v<grouping const&, grouping_view>);
static_assert(!std::is_convertible_v<grouping_view, grouping>);

/// {4, 1}, {}, {7, 8, 9}
grouping three_groups() { return grouping({0, 2, 2, 5}, {4, 1, 7, 8, 9}); }

TEST_CASE("a grouping is a range of its groups", "[grouping]") {
  static_assert(std::random_access_iterator<omnibal::grouping::iterator>);
  omnibal::grouping groups;
  CHECK(groups.begin() == groups.end());
  for (std::uint32_t const item : {4u, 0u, 7u}) groups.push(item);
  groups.close();
  groups.close();
  groups.push(5);
  groups.close();
  groups.push(9);

  std::vector<std::vector<std::uint32_t>> found;
  for (auto const group : groups) found.emplace_back(group.begin(), group.end());
  CHECK(found == std::vector<std::vector<std::uint32_t>>{{4, 0, 7}, {}, {5}});
  CHECK(groups.end() - groups.begin() == 3);
  CHECK(groups.begin()[2].front() == 5);
  CHECK((*--groups.end()).size() == 1);
  CHECK(omnibal::grouping_view{}.begin() == omnibal::grouping_view{}.end());
}

}  // namespace

TEST_CASE("no groups") {
  grouping const none;
  CHECK(none.size() == 0);
  CHECK(none.empty());
  CHECK(none.item_count() == 0);
  CHECK(none.items().empty());
  CHECK(none.open_group().empty());
  CHECK(to_vector(none.offsets()) == indices{0});
  CHECK(none.view().size() == 0);
  CHECK(grouping_view().empty());
  CHECK(grouping_view().item_count() == 0);
  CHECK(grouping_view().items().empty());
  CHECK(grouping_view().offsets().empty());
}

TEST_CASE("pushed indices become a group when it is closed") {
  grouping groups;
  groups.push(4);
  groups.push(1);
  CHECK(groups.empty());
  CHECK(groups.item_count() == 0);
  CHECK(groups.items().empty());
  CHECK(to_vector(groups.open_group()) == indices{4, 1});

  groups.close();
  CHECK(groups.size() == 1);
  CHECK(to_vector(groups[0]) == indices{4, 1});
  CHECK(groups.open_group().empty());

  groups.close();
  for (std::uint32_t const item : {7u, 8u, 9u}) groups.push(item);
  groups.close();
  CHECK(groups == three_groups());
}

TEST_CASE("owner and view show the same groups") {
  grouping const groups = three_groups();
  grouping_view const view = groups;
  CHECK(to_vector(groups.offsets()) == indices{0, 2, 2, 5});
  CHECK(to_vector(view.offsets()) == indices{0, 2, 2, 5});
  CHECK(to_vector(groups.items()) == indices{4, 1, 7, 8, 9});
  CHECK(to_vector(view.items()) == indices{4, 1, 7, 8, 9});
  CHECK(groups.size() == 3);
  CHECK(view.size() == 3);
  CHECK(groups.item_count() == 5);
  CHECK(view.item_count() == 5);

  std::vector<indices> const expected{{4, 1}, {}, {7, 8, 9}};
  for (std::size_t g = 0; g != expected.size(); ++g) {
    CAPTURE(g);
    CHECK(to_vector(groups[g]) == expected[g]);
    CHECK(to_vector(view[g]) == expected[g]);
    CHECK(view.group_size(g) == expected[g].size());
  }
  CHECK(view.offset(2) == 2);
  CHECK(view.offset(view.size()) == 5);
  CHECK(view.item(3) == 8);
}

TEST_CASE("a view leaves the open group out") {
  grouping groups = three_groups();
  groups.push(100);
  CHECK(groups.view().size() == 3);
  CHECK(groups.view().item_count() == 5);
  CHECK(to_vector(groups.items()) == indices{4, 1, 7, 8, 9});
}

TEST_CASE("groups differ in offsets, items or the open group") {
  CHECK(three_groups() == three_groups());
  CHECK(three_groups() != grouping({0, 2, 3, 5}, {4, 1, 7, 8, 9}));
  CHECK(three_groups() != grouping({0, 2, 2, 5}, {4, 1, 7, 9, 8}));
  grouping open = three_groups();
  open.push(1);
  CHECK(three_groups() != open);
}

TEST_CASE("ready arrays must be groups") {
  struct {
    indices offsets;
    char const* text;
  } const rows[] = {
      {{}, "omnibal::grouping: offsets must start with 0"},
      {{1, 3}, "omnibal::grouping: offsets must start with 0"},
      {{0, 3, 2, 3}, "omnibal::grouping: offsets[2] is 2, below the offset before it"},
      {{0, 2}, "omnibal::grouping: the last offset is 2, must be the number of items, 3"},
      {{0, 4}, "omnibal::grouping: the last offset is 4, must be the number of items, 3"},
      {{0}, "omnibal::grouping: the last offset is 0, must be the number of items, 3"},
  };
  for (auto const& row : rows) {
    CHECK(error_text<std::invalid_argument>([&] { grouping(row.offsets, {5, 6, 7}); }) == row.text);
  }
  CHECK(grouping({0}, {}) == grouping());
  CHECK(grouping({0, 0, 0}, {}).size() == 2);
}

TEST_CASE("groups that are cleared keep their memory") {
  grouping groups = three_groups();
  groups.push(100);
  groups.clear();
  CHECK(groups == grouping());
  CHECK(allocations_of([&] {
          for (std::uint32_t item = 0; item != 6; ++item) groups.push(item);
          for (int g = 0; g != 3; ++g) groups.close();
        }) == 0);
  CHECK(groups == grouping({0, 6, 6, 6}, {0, 1, 2, 3, 4, 5}));
}

TEST_CASE("reserved groups allocate nothing more") {
  grouping groups;
  groups.reserve(10, 100);
  CHECK(allocations_of([&] {
          for (std::uint32_t item = 0; item != 100; ++item) {
            groups.push(item);
            if (item % 10 == 9) groups.close();
          }
        }) == 0);
  CHECK(groups.size() == 10);
}

TEST_CASE("groups can be moved") {
  grouping from = three_groups();
  grouping const to = std::move(from);
  CHECK(to == three_groups());
  from.clear();
  CHECK(from == grouping());
  from = three_groups();
  CHECK(from == to);
}
