#pragma once

/// \file
/// What stages may cost and take on each device, in lists without what is nowhere better.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// What some stages cost.
template <class C>
struct device_label {
  C bottleneck;
  C sum;
};

/// Labels with the bytes that they take on each device. The last of them are the list that is made.
template <class C>
class device_labels {
 public:
  using label = device_label<C>;

  void clear(std::size_t devices) {
    devices_ = devices;
    labels_.clear();
    usage_.clear();
  }

  [[nodiscard]] std::size_t size() const { return labels_.size(); }
  [[nodiscard]] label const& operator[](std::size_t index) const { return labels_[index]; }
  /// The bytes on each device.
  [[nodiscard]] std::span<std::int64_t const> usage(std::size_t index) const {
    return std::span(usage_).subspan(index * devices_, devices_);
  }

  void add(label const& made, std::span<std::int64_t const> used) {
    labels_.push_back(made);
    usage_.insert(usage_.end(), used.begin(), used.end());
  }

  /// Adds a label to the list from `begin` on unless one of it is as good, and drops those of it
  /// than which the new one is as good.
  void add_unless_dominated(std::size_t begin, label const& made,
                            std::span<std::int64_t const> used) {
    for (std::size_t l = begin; l != labels_.size(); ++l) {
      if (is_as_good(labels_[l], usage(l), made, used)) return;
    }
    std::size_t kept = begin;
    for (std::size_t l = begin; l != labels_.size(); ++l) {
      if (!is_as_good(made, used, labels_[l], usage(l))) move_label(l, kept++);
    }
    resize(kept);
    add(made, used);
  }

  /// Drops all of the list from `begin` on but those that are named, by ascending index in it.
  void keep_only(std::size_t begin, std::span<std::size_t const> ascending) {
    for (std::size_t i = 0; i != ascending.size(); ++i) move_label(begin + ascending[i], begin + i);
    resize(begin + ascending.size());
  }

 private:
  /// Whether `left` is nowhere worse.
  [[nodiscard]] static bool is_as_good(label const& left, std::span<std::int64_t const> left_used,
                                       label const& right,
                                       std::span<std::int64_t const> right_used) {
    if (left.bottleneck > right.bottleneck || left.sum > right.sum) return false;
    for (std::size_t d = 0; d != left_used.size(); ++d) {
      if (left_used[d] > right_used[d]) return false;
    }
    return true;
  }

  void move_label(std::size_t from, std::size_t to) {
    if (from == to) return;
    labels_[to] = labels_[from];
    std::copy_n(usage_.begin() + static_cast<std::ptrdiff_t>(from * devices_), devices_,
                usage_.begin() + static_cast<std::ptrdiff_t>(to * devices_));
  }

  void resize(std::size_t count) {
    labels_.resize(count);
    usage_.resize(count * devices_);
  }

  std::size_t devices_ = 0;
  std::vector<label> labels_;
  std::vector<std::int64_t> usage_;  ///< of each label, device by device
};

}  // namespace omnibal::inline v0::detail
