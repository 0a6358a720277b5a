// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The concepts of communicators, and the error of a rank whose call fails because another rank has
/// failed.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

/// The exception of a rank if another rank has failed or left. The text names that rank and, if
/// known, begins with the reason. The exception of the failed rank contains the whole reason.
class communication_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

template <class T>
inline constexpr bool is_reference_wrapper = false;
template <class T>
inline constexpr bool is_reference_wrapper<std::reference_wrapper<T>> = true;

template <class T>
[[nodiscard]] consteval bool find_reference();

/// A pointer, a reference wrapper or a view, or an array or an aggregate that has such a type among
/// its first 16 members. Members of classes that are not aggregates stay hidden.
template <class T>
concept refers_elsewhere = find_reference<std::remove_cv_t<T>>();

/// A type that converts to every type, to initialize any member of an aggregate.
struct any_member {
  template <class Member>
  operator Member() const;
};

/// A type that converts only to types that refer to other memory, to initialize only such members.
struct referring_member {
  template <refers_elsewhere Member>
  operator Member() const;
};

/// Returns true if the member of T with the number `sizeof...(Before)` refers to other memory. Each
/// element of an array counts as a member.
template <class T, std::size_t... Before>
[[nodiscard]] consteval bool refers_at(std::index_sequence<Before...>) {
  return requires { T{(static_cast<void>(Before), any_member{})..., referring_member{}}; };
}

template <class T, std::size_t... Places>
[[nodiscard]] consteval bool refers_at_any(std::index_sequence<Places...>) {
  return (refers_at<T>(std::make_index_sequence<Places>{}) || ...);
}

template <class T>
consteval bool find_reference() {
  constexpr std::size_t max_members = 16;
  if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T> || is_reference_wrapper<T>) {
    return true;
  } else if constexpr (std::is_array_v<T>) {
    return find_reference<std::remove_cv_t<std::remove_all_extents_t<T>>>();
  } else if constexpr (std::ranges::enable_borrowed_range<T>) {
    return true;
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    return refers_at_any<T>(std::make_index_sequence<max_members>{});
  } else {
    return false;
  }
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// Ranks that can gather. `all_gather(in, out)` writes the bytes of every rank to `out`, in the
/// order of the ranks. `in` has the same size on all ranks, and `out` has that size for each rank.
/// The call returns when `out` is complete and `in` may be changed, and throws if it fails. All
/// ranks call the same collectives in the same order.
///
/// A communicator is a handle of a few words. Its collectives may be `const` member functions, but
/// need not be. An adapter for another process group needs about twenty lines.
template <class Comm>
concept communicator = requires(Comm& comm, std::span<std::byte const> in,
                                std::span<std::byte> out) {
  { comm.rank() } -> std::integral;
  { comm.size() } -> std::integral;
  comm.all_gather(in, out);
};

/// Ranks that can also exchange bytes. `all_to_all_v(in, send_counts, out, receive_counts)` sends
/// the first `send_counts[0]` bytes of `in` to rank 0, the next `send_counts[1]` bytes to rank 1
/// and so on. The call writes to `out` the bytes from rank 0, then the bytes from rank 1 and so on.
/// The counts match the counts of the other side, may be zero, and add up to the sizes of `in` and
/// `out`. `in` and `out` do not overlap.
template <class Comm>
concept exchanging_communicator = communicator<Comm> &&
    requires(Comm& comm, std::span<std::byte const> in, std::span<std::byte> out,
             std::span<std::uint64_t const> counts) {
  comm.all_to_all_v(in, counts, out, counts);
};

/// Bytes that are sent from their place in memory.
using sent_piece = std::span<std::byte const>;
/// Bytes that are received at their final place in memory.
using received_piece = std::span<std::byte>;

/// Ranks that can exchange bytes in pieces, without a copy before or after the exchange.
/// `all_to_all_pieces(sent, send_counts, received, receive_counts)` sends the bytes of the first
/// `send_counts[0]` pieces, one after the other, to rank 0 and so on. The call writes the bytes
/// from rank 0 into the first `receive_counts[0]` pieces and so on. Both sides pass the same number
/// of bytes, but may divide them differently. Sent and received pieces do not overlap. This
/// operation is optional for a communicator.
template <class Comm>
concept piecewise_communicator = exchanging_communicator<Comm> &&
    requires(Comm& comm, std::span<sent_piece const> sent, std::span<received_piece const> received,
             std::span<std::uint64_t const> counts) {
  comm.all_to_all_pieces(sent, counts, received, counts);
};

/// A value that is sent as its bytes. `bool` is excluded because a `std::vector<bool>` has no array
/// of values. Types that refer to memory of their rank are excluded: pointers, views, and arrays
/// and aggregates with such a type among their first 16 members. The concept can see neither the
/// members of classes with constructors nor whether a number is an index or a handle that is valid
/// only on this rank. The caller must not send such values.
template <class T>
concept wire_value =
    std::is_trivially_copyable_v<T> && std::default_initializable<T> && !std::same_as<T, bool> &&
    !detail::refers_elsewhere<T>;

/// An array of values that are sent as their bytes.
template <class Range>
concept wire_range = std::ranges::contiguous_range<Range const> &&
    std::ranges::sized_range<Range const> && wire_value<std::ranges::range_value_t<Range const>>;

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

/// Returns the values of a range as a span.
template <wire_range Range>
[[nodiscard]] auto values_of(Range const& range) {
  return std::span<std::ranges::range_value_t<Range const> const>(std::ranges::data(range),
                                                                  std::ranges::size(range));
}

/// Returns the text of an exception.
[[nodiscard]] inline std::string text_of(std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (std::exception const& known) {
    return known.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

/// Returns the rank of the caller.
template <class Comm>
[[nodiscard]] std::size_t own_rank(Comm& comm) {
  return static_cast<std::size_t>(comm.rank());
}

template <class Comm>
[[nodiscard]] std::size_t rank_count(Comm& comm) {
  return static_cast<std::size_t>(comm.size());
}

}  // namespace omnibal::inline v0::detail
