#pragma once

/// \file
/// Packing of a stream.

#include <omnibal/check.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/online_packer/bin_completion.hpp>
#include <omnibal/pack/online_packer/waiting_samples.hpp>
#include <omnibal/pack/online_state.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// Packs a stream: each `push` takes a sample and hands out at most one group.
///
/// Samples wait until more than `options.buffer` of them do, or until the oldest has waited for
/// `options.longest_wait` pushes; then one group leaves, and the oldest is always in it. So a
/// sample leaves at the latest with the result of that many further pushes, and at the latest with
/// the group number `options.buffer` after its own push. No group is waited for because it is not
/// full: samples that never fit together leave alone. The other members of a group are chosen from
/// all that wait, so that it comes out full in those resources of which most is waiting.
///
/// `R` is the number of resources, `T` is `std::int64_t` or `double`. With a buffer of some times
/// the samples of a group there are about as many groups as `best_fit_decreasing` makes of the
/// whole stream; with a buffer that holds less than a group, groups come out that small.
///
/// Complexity of `push`: time in proportion to `options.candidates` for each sample that leaves,
/// whatever the buffer, the capacity and the demands: where lookups take long, fewer fillings are
/// compared. Memory: about 92 bytes for each sample of the buffer, 16 more for each resource above
/// two, and an index of up to 1 MiB, all allocated at construction.
/// Determinism: portable for integers, and a function of the capacity, the options and the pushes
/// alone. Not safe to call from two threads at once.
template <std::size_t R, weight T = std::int64_t>
  requires std::same_as<T, detail::working_weight<T>>
class online_packer {
 public:
  using amounts_type = resources<R, T>;
  using result_type = online_result<R, T>;
  using state_type = online_state<R, T>;

  /// A packer in which nothing waits. Errors: `std::invalid_argument` for a capacity that is not
  /// positive or not finite, and for a buffer, a wait or candidates of zero; `std::length_error`
  /// for a buffer of 2^32 - 2 samples or more.
  explicit online_packer(amounts_type const& capacity, online_packer_options const& options = {})
      : online_packer(state_type{{options, capacity, 0}, {}}) {}

  /// The same for a capacity of other numbers; a single one is the capacity of one resource. Errors
  /// also for an unsigned number above 2^63 - 1.
  template <amount Capacity>
    requires detail::same_kinds<Capacity, amounts_type> &&
        std::same_as<detail::working_weight<typename detail::weight_of<Capacity>::type, T>, T>
  explicit online_packer(Capacity const& capacity, online_packer_options const& options = {})
      : online_packer(detail::to_capacity<T>(name, capacity), options) {}

  /// A packer with the same future as the one whose state this is. Errors: as above, and
  /// `std::invalid_argument` for samples that no packer with this header could hold: too many,
  /// oversized, with a bad demand, not in the order of their pushes, or waiting for too long.
  explicit online_packer(state_type const& state)
      : header_(checked(state.header)),
        waiting_(header_.capacity, static_cast<std::size_t>(header_.options.buffer) + 1),
        search_(header_.capacity, static_cast<std::size_t>(header_.options.buffer) + 1) {
    ids_.reserve(static_cast<std::size_t>(header_.options.buffer) + 1);
    check_samples(state);
    for (waiting_sample<R, T> const& sample : state.waiting) waiting_.add(sample);
  }

  /// A copy has the same future and, like any packer, allocates nothing once it is made.
  online_packer(online_packer const& other) : online_packer(other.state()) {}
  online_packer& operator=(online_packer const& other) { return *this = online_packer(other); }
  online_packer(online_packer&&) noexcept = default;
  online_packer& operator=(online_packer&&) noexcept = default;
  ~online_packer() = default;

  /// Takes a sample, unless it exceeds the capacity alone, which the result says; and hands out a
  /// group where one is due. `demand` is a weight or resources of as many kinds as the capacity;
  /// `id` is the user's and may repeat. Errors: `std::invalid_argument` for a demand that is
  /// negative or not finite; nothing has changed then. Allocates nothing.
  template <amount Demand>
    requires detail::same_kinds<Demand, amounts_type> &&
        std::same_as<detail::working_weight<typename detail::weight_of<Demand>::type, T>, T>
  [[nodiscard]] result_type push(std::uint64_t id, Demand const& demand) & {
    detail::weight_name const of_id{"online_packer::push", "demand", id, " of id ", ""};
    amounts_type const amounts = detail::to_resources<T>(of_id, demand);
    for (std::size_t r = 0; r != R; ++r) {
      if (detail::is_valid_weight(amounts[r])) [[likely]]
        continue;
      detail::throw_invalid(of_id.function, of_id.text() + " is " + detail::to_text(amounts[r]) +
                                                " in resource " + detail::to_text(r) +
                                                ", must be finite and not negative");
    }
    bool const oversized = !amounts.fits(header_.capacity);
    std::uint64_t const now = header_.pushes++;
    if (!oversized) waiting_.add({id, now, amounts});
    bool const leaves = waiting_.size() > header_.options.buffer ||
                        (waiting_.size() != 0 &&
                         now - waiting_.push(waiting_.oldest()) >= header_.options.longest_wait);
    result_type result = leaves ? take_group() : result_type{};
    result.oversized = oversized;
    return result;
  }

  /// Hands out a group of what waits, with the oldest sample in it, and none where nothing waits:
  /// `while (auto group = packer.flush())` empties the packer. Allocates nothing.
  [[nodiscard]] result_type flush() & {
    return waiting_.size() != 0 ? take_group() : result_type{};
  }
  void flush() && = delete;

  /// The number of samples that wait, at most `options.buffer`.
  [[nodiscard]] std::size_t size() const { return waiting_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// What a checkpoint must hold. Complexity: linear in the samples that wait.
  [[nodiscard]] state_type state() const {
    state_type result{header_, {}};
    result.waiting.reserve(waiting_.size());
    for (auto of = waiting_.oldest(); of != waiting_type::none; of = waiting_.newer(of)) {
      result.waiting.push_back(waiting_.sample(of));
    }
    return result;
  }

 private:
  using waiting_type = detail::waiting_samples<R, T>;

  static constexpr std::string_view name = "online_packer";

  static online_header<R, T> const& checked(online_header<R, T> const& header) {
    detail::check_capacity(name, header.capacity);
    detail::check_positive(name, "options.buffer", header.options.buffer);
    detail::check_positive(name, "options.longest_wait", header.options.longest_wait);
    detail::check_positive(name, "options.candidates", header.options.candidates);
    if (header.options.buffer >= max_index_count - 1) {
      detail::throw_length(name, "options.buffer", header.options.buffer);
    }
    return header;
  }

  static void check_samples(state_type const& state) {
    auto const& [options, capacity, pushes] = state.header;
    if (state.waiting.size() > options.buffer) {
      detail::throw_invalid(name, "state.waiting has " + detail::to_text(state.waiting.size()) +
                                      " samples, more than the buffer " +
                                      detail::to_text(options.buffer));
    }
    for (std::size_t k = 0; k != state.waiting.size(); ++k) {
      waiting_sample<R, T> const& sample = state.waiting[k];
      for (std::size_t r = 0; r != R; ++r) {
        if (detail::is_valid_weight(sample.demand[r]) && sample.demand[r] <= capacity[r]) continue;
        throw_sample(k, "demand[" + detail::to_text(r) + "]", sample.demand[r],
                     "in [0, " + detail::to_text(capacity[r]) + "]");
      }
      if (k != 0 && sample.push <= state.waiting[k - 1].push) {
        throw_sample(k, "push", sample.push, "above that of the sample before");
      }
      if (sample.push >= pushes || pushes - 1 - sample.push >= options.longest_wait) {
        throw_sample(k, "push", sample.push,
                     "one of the last " + detail::to_text(options.longest_wait) + " of " +
                         detail::to_text(pushes) + " pushes");
      }
    }
  }

  template <class Value>
  [[noreturn]] static void throw_sample(std::size_t index, std::string const& member, Value value,
                                        std::string const& allowed) {
    detail::throw_invalid(name, "state.waiting[" + detail::to_text(index) + "]." + member + " is " +
                                    detail::to_text(value) + ", must be " + allowed);
  }

  result_type take_group() {
    ids_.clear();
    amounts_type const load = search_.take(waiting_, header_.options.candidates,
                                           [this](auto of) { ids_.push_back(waiting_.id(of)); });
    return {ids_, load, false};
  }

  online_header<R, T> header_;
  waiting_type waiting_;
  detail::bin_completion<R, T> search_;
  std::vector<std::uint64_t> ids_;
};

template <amount Capacity>
online_packer(Capacity, online_packer_options = {})
    -> online_packer<detail::kinds_of<Capacity>,
                     detail::working_weight<typename detail::weight_of<Capacity>::type>>;
template <std::size_t R, class T>
online_packer(online_state<R, T>) -> online_packer<R, T>;

}  // namespace omnibal::inline v0
