#pragma once

/// \file
/// The part with the least load among those that have room.

#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// What no part of several has less than.
[[nodiscard]] constexpr uint128 least_of(uint128 left, uint128 right) {
  return right < left ? right : left;
}
template <std::size_t R>
[[nodiscard]] constexpr resources<R> least_of(resources<R> const& left, resources<R> const& right) {
  resources<R> result = left;
  for (std::size_t r = 0; r != R; ++r) {
    if (right[r] < result[r]) result[r] = right[r];
  }
  return result;
}

/// Parts that fill up, each with a load. A tree over them knows below each node the least load and
/// the most room, so that a search leaves out what has no room for a sample or is not the least. It
/// finds what a look at every part would find.
template <class Layout, class Load>
class roomy_parts {
 public:
  using amounts_type = typename Layout::amounts_type;
  using demand_type = typename Layout::demand_type;
  using rooms_type = std::vector<typename Layout::room_type>;

  /// Knows no loads before `fill`. `layout` and `rooms` must outlive this object.
  roomy_parts(Layout const& layout, rooms_type const& rooms)
      : layout_(&layout), rooms_(&rooms), leaves_(std::bit_ceil(rooms.size())) {}

  [[nodiscard]] bool is_filled() const { return !nodes_.empty(); }

  /// `load(part)` is the load of a part now.
  template <class LoadOf>
  void fill(LoadOf const& load) {
    nodes_.resize(2 * leaves_);
    for (std::size_t leaf = 0; leaf != leaves_; ++leaf) {
      // Those that only fill the last level have no room, and the load of a part.
      bool const is_part = leaf < rooms_->size();
      nodes_[leaves_ + leaf] = {load(is_part ? leaf : 0),
                                is_part ? layout_->left((*rooms_)[leaf]) : amounts_type{}};
    }
    for (std::size_t node = leaves_; --node > 0;) join(node);
  }

  /// The part with room for `demand` of which `value(load)` is least, the first of equal ones; the
  /// number of parts where none has room. The value must not fall as any amount of the load rises.
  template <class Value>
  [[nodiscard]] std::size_t find(demand_type const& demand, Value const& value) const {
    search<Value> wanted{demand, layout_->amounts(demand), value, rooms_->size(), {}};
    visit(1, 0, leaves_, wanted);
    return wanted.part;
  }

  /// After the room of a part has changed, and its load to `load`.
  void set(std::size_t part, Load const& load) {
    std::size_t node = leaves_ + part;
    nodes_[node] = {load, layout_->left((*rooms_)[part])};
    while (node > 1) join(node >>= 1);
  }
  [[nodiscard]] Load const& load(std::size_t part) const { return nodes_[leaves_ + part].least; }

 private:
  struct bounds {
    Load least{};
    amounts_type most{};
  };
  template <class Value>
  struct search {
    demand_type const& demand;
    amounts_type amounts;
    Value const& value;
    std::size_t part;
    std::remove_cvref_t<std::invoke_result_t<Value const&, Load const&>> least;
  };

  void join(std::size_t node) {
    bounds const& left = nodes_[2 * node];
    bounds const& right = nodes_[2 * node + 1];
    amounts_type most = left.most;
    for (std::size_t r = 0; r != amounts_type::size(); ++r) {
      if (right.most[r] > most[r]) most[r] = right.most[r];
    }
    nodes_[node] = {least_of(left.least, right.least), most};
  }

  /// False where no part below a node has room. What rounding makes of floating-point amounts only
  /// the parts know.
  template <class Value>
  [[nodiscard]] bool may_fit(std::size_t node, search<Value> const& wanted) const {
    if constexpr (std::integral<typename amounts_type::value_type>) {
      return wanted.amounts.fits(nodes_[node].most);
    } else {
      return true;
    }
  }

  /// Looks at the parts [first, first + width) below a node.
  template <class Value>
  void visit(std::size_t node, std::size_t first, std::size_t width, search<Value>& wanted) const {
    std::size_t const parts = rooms_->size();
    if (first >= parts || !may_fit(node, wanted)) return;
    auto const least = wanted.value(nodes_[node].least);
    if (wanted.part != parts && wanted.least < least) return;
    if (wanted.part < first && !(least < wanted.least)) return;
    if (width == 1) {
      if (!layout_->fits((*rooms_)[first], wanted.demand)) return;
      wanted.part = first;
      wanted.least = least;
      return;
    }
    std::size_t const left = 2 * node;
    std::size_t const half = width / 2;
    bool const is_right_first =
        wanted.value(nodes_[left + 1].least) < wanted.value(nodes_[left].least);
    if (is_right_first) visit(left + 1, first + half, half, wanted);
    visit(left, first, half, wanted);
    if (!is_right_first) visit(left + 1, first + half, half, wanted);
  }

  Layout const* layout_;
  rooms_type const* rooms_;
  std::size_t leaves_;
  std::vector<bounds> nodes_;
};

}  // namespace omnibal::inline v0::detail
