// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Label search for the saved modules with the largest gain within the limits of both queues.

#include <omnibal/config.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>
#include <omnibal/recompute/select_activations/window_relaxation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Label search over the modules in order. A label is a partial solution: the bytes in both queues
/// and the gain. The search drops a label in two cases. In the first case, another label has at
/// most the same bytes in both queues and at least the same gain. In the second case, the bound of
/// the label by the prices is not above the gain of a known solution. If too many labels remain,
/// the search also drops the labels with the smallest bounds; its own bound covers the largest of
/// these bounds.
class queue_label_search {
 public:
  queue_label_search(queue_limits const& limits, window_prices const& prices)
      : limits_(limits), prices_(prices) {
    has_fetching_ = can_fetching_bind();
  }

  /// Searches for a solution that gains more than `known`. Returns true if there is one.
  bool run(std::int64_t known, std::size_t max_labels) {
    known_ = known;
    best_ = known;
    dropped_ = -1;
    max_labels_ = max_labels;
    find_rests();
    steps_.assign(1, {0, 0});
    labels_.assign(1, {0, 0, 0, 0});
    std::size_t item = 0;
    for (std::uint32_t layer = 0; layer != limits_.size() && !labels_.empty(); ++layer) {
      begin_layer(layer);
      for (; item != limits_.offsets[layer + 1] && !labels_.empty(); ++item) extend(item);
      end_layer(layer);
    }
    for (label const& one : labels_) {
      if (one.gain <= best_) continue;
      best_ = one.gain;
      best_origin_ = one.origin;
    }
    return best_ > known_;
  }

  [[nodiscard]] std::int64_t gain() const { return best_; }
  /// Returns an upper bound of the gain of all solutions.
  [[nodiscard]] std::int64_t bound() const {
    return std::max(best_,
                    dropped_ < 0 ? best_ : static_cast<std::int64_t>(dropped_ >> prices_.shift));
  }
  /// Writes for each item whether the best solution saves it. Precondition: `run` found a solution.
  void write(std::vector<unsigned char>& saved) const {
    saved.assign(limits_.items.size(), 0);
    for (std::size_t j = 0; j != saved.size(); ++j) saved[j] = fixed_[j] == fixing::saved ? 1 : 0;
    for (std::uint32_t at = best_origin_; at != 0; at = steps_[at].origin)
      saved[steps_[at].item] = 1;
  }

 private:
  enum class fixing : unsigned char { none, saved, recomputed };

  struct label {
    std::int64_t sending;
    std::int64_t fetching;
    std::int64_t gain;
    std::uint32_t origin;
  };

  /// A label of the next item, and whether the item is saved.
  struct extension {
    label made;
    bool is_saved;
  };

  /// A saved item of a label; `origin` is the index of the previous saved item. Step 0 ends the
  /// list.
  struct saved_step {
    std::uint32_t origin;
    std::uint32_t item;
  };

  /// Returns false if the limits of the queue of bytes to send imply the limits of the queue of
  /// fetched bytes for all layers. Then the search ignores the queue of fetched bytes.
  [[nodiscard]] bool can_fetching_bind() const {
    for (std::size_t first = 0; first != limits_.size(); ++first) {
      int128 bytes = 0;
      int128 sent = 0;
      int128 fetched = 0;
      for (std::size_t i = first; i != limits_.size(); ++i) {
        for (std::uint32_t j = limits_.offsets[i]; j != limits_.offsets[i + 1]; ++j) {
          bytes += limits_.items[j].bytes;
        }
        sent += limits_.sent[i];
        if (i != first) fetched += limits_.fetched[i];
        if (std::min(bytes, limits_.max_sending[i] + sent) > limits_.max_fetching[i] + fetched) {
          return true;
        }
      }
    }
    return false;
  }

  /// Fixes the items that every better solution saves, or that every better solution recomputes.
  /// Sums the reduced gains of the items from each item to the end.
  void find_rests() {
    std::size_t const count = limits_.items.size();
    int128 const slack = prices_.bound - (static_cast<int128>(known_ + 1) << prices_.shift);
    rests_.assign(count + 1, 0);
    fixed_.assign(count, fixing::none);
    for (std::size_t j = count; j-- != 0;) {
      int128 const reduced = prices_.reduced_gain(limits_.items[j]);
      rests_[j] = rests_[j + 1] + std::max<int128>(0, reduced);
      if (reduced > slack) fixed_[j] = fixing::saved;
      if (-reduced > slack) fixed_[j] = fixing::recomputed;
    }
  }

  /// Finds the prices of the bytes in the queues for a layer, and the bound of a label without
  /// bytes.
  void begin_layer(std::uint32_t layer) {
    sending_price_ = 0;
    fetching_price_ = 0;
    room_ = 0;
    for (std::size_t c = 0; c != prices_.windows.size(); ++c) {
      window const& one = prices_.windows[c];
      std::int64_t const price = prices_.prices[c];
      if (one.first > layer) {
        room_ += static_cast<int128>(price) * one.bytes;
        continue;
      }
      if (one.last <= layer) continue;
      bool const is_sending = one.queue == offload_queue::sending;
      int128 left = limits_.max_bytes(one.queue)[one.last - 1];
      for (std::uint32_t i = is_sending ? layer : layer + 1; i < one.last; ++i) {
        left += limits_.leaving(one.queue)[i];
      }
      room_ += price * left;
      (is_sending ? sending_price_ : fetching_price_) += price;
    }
    if (!has_fetching_) return;
    for (label& one : labels_) {
      one.fetching = std::max<std::int64_t>(0, one.fetching - limits_.fetched[layer]);
    }
  }

  /// Drops the labels that exceed the limits of the layer with the bytes of this and earlier
  /// layers.
  void end_layer(std::uint32_t layer) {
    std::size_t kept = 0;
    for (label const& one : labels_) {
      if (fits(one, layer)) labels_[kept++] = one;
    }
    labels_.resize(kept);
    for (label& one : labels_) {
      one.sending = std::max<std::int64_t>(0, one.sending - limits_.sent[layer]);
    }
  }

  [[nodiscard]] int128 bound_of(label const& one, std::size_t next) const {
    return (static_cast<int128>(one.gain) << prices_.shift) + rests_[next] + room_ -
           static_cast<int128>(sending_price_) * one.sending -
           static_cast<int128>(fetching_price_) * one.fetching;
  }

  [[nodiscard]] bool fits(label const& one, std::uint32_t layer) const {
    return one.sending - limits_.sent[layer] <= limits_.max_sending[layer] &&
           (!has_fetching_ || one.fetching <= limits_.max_fetching[layer]);
  }

  /// Extends all labels by both choices of an item, or by the only choice if the item is fixed.
  void extend(std::size_t item) {
    saved_item const& one = limits_.items[item];
    auto const with_item = [&](label const& from) {
      return label{from.sending + one.bytes, has_fetching_ ? from.fetching + one.bytes : 0,
                   from.gain + one.gain, from.origin};
    };
    if (fixed_[item] == fixing::recomputed) return;
    if (fixed_[item] == fixing::saved) {
      std::size_t kept = 0;
      for (label const& from : labels_) {
        label const next = with_item(from);
        if (fits(next, one.layer)) labels_[kept++] = next;
      }
      labels_.resize(kept);
      return;
    }
    extended_.clear();
    bounds_.clear();
    std::size_t left = 0;
    std::size_t right = 0;
    best_seen_ = -1;
    while (left != labels_.size() || right != labels_.size()) {
      bool const is_left =
          right == labels_.size() ||
          (left != labels_.size() && labels_[left].sending <= labels_[right].sending + one.bytes);
      if (is_left) {
        keep({.made = labels_[left++], .is_saved = false}, item);
      } else {
        label const next = with_item(labels_[right++]);
        if (fits(next, one.layer)) keep({.made = next, .is_saved = true}, item);
      }
    }
    if (extended_.size() > max_labels_) drop_labels();
    labels_.clear();
    for (auto const& [made, is_saved] : extended_) {
      labels_.push_back(made);
      if (!is_saved) continue;
      labels_.back().origin = static_cast<std::uint32_t>(steps_.size());
      steps_.push_back({made.origin, static_cast<std::uint32_t>(item)});
    }
  }

  void keep(extension const& extended, std::size_t item) {
    if (is_dominated(extended.made)) return;
    int128 const bound = bound_of(extended.made, item + 1);
    if (bound >> prices_.shift <= known_) return;
    best_seen_ = std::max(best_seen_, extended.made.gain);
    extended_.push_back(extended);
    bounds_.push_back(bound);
  }

  /// Returns true if an earlier label is known to be at least as good. Labels are in ascending
  /// order of the bytes to send. Therefore only the gain and the fetched bytes are compared, with
  /// the last `compared_labels` labels.
  [[nodiscard]] bool is_dominated(label const& made) const {
    if (made.gain > best_seen_) return false;
    if (!has_fetching_) return true;
    std::size_t const oldest =
        extended_.size() > compared_labels ? extended_.size() - compared_labels : 0;
    for (std::size_t k = extended_.size(); k-- != oldest;) {
      if (extended_[k].made.fetching <= made.fetching && extended_[k].made.gain >= made.gain)
        return true;
    }
    return false;
  }

  /// Keeps the labels with the largest bounds.
  void drop_labels() {
    sorted_ = bounds_;
    auto const last = sorted_.begin() + static_cast<std::ptrdiff_t>(max_labels_);
    std::nth_element(sorted_.begin(), last, sorted_.end(), std::greater<int128>{});
    int128 const limit = *last;
    dropped_ = std::max(dropped_, limit);
    auto ties = static_cast<std::size_t>(std::count(sorted_.begin(), last, limit));
    std::size_t kept = 0;
    for (std::size_t k = 0; k != extended_.size(); ++k) {
      if (bounds_[k] < limit || (bounds_[k] == limit && ties == 0)) continue;
      if (bounds_[k] == limit) --ties;
      extended_[kept++] = extended_[k];
    }
    extended_.resize(kept);
  }

  static constexpr std::size_t compared_labels = 64;

  queue_limits const& limits_;
  window_prices const& prices_;
  bool has_fetching_ = true;
  std::int64_t known_ = -1;
  std::int64_t best_ = -1;
  std::int64_t best_seen_ = -1;
  std::uint32_t best_origin_ = 0;
  int128 dropped_ = -1;
  std::size_t max_labels_ = 0;
  std::vector<int128> rests_;
  std::vector<fixing> fixed_;
  std::int64_t sending_price_ = 0;
  std::int64_t fetching_price_ = 0;
  int128 room_ = 0;
  std::vector<saved_step> steps_;
  std::vector<label> labels_;
  std::vector<extension> extended_;
  std::vector<int128> bounds_;
  std::vector<int128> sorted_;
};

}  // namespace omnibal::inline v0::detail
