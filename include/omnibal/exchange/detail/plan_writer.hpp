#pragma once

/// \file
/// Making plans.

#include <omnibal/detail/data_digest.hpp>
#include <omnibal/exchange/exchange_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Fills a plan: `start`, then `push` the sample of each slot in order with `close` after the last
/// one of a rank, then `finish`. Keeps the memory of the plan.
struct plan_writer {
  exchange_plan& plan;

  void start(std::span<std::uint32_t const> home_offsets) const {
    plan.home_offsets_.assign(home_offsets.begin(), home_offsets.end());
    plan.arrival_offsets_.assign(1, 0);
    plan.item_at_.clear();
    plan.item_at_.reserve(home_offsets.back());
  }

  void push(std::uint32_t sample) const { plan.item_at_.push_back(sample); }
  void close() const {
    plan.arrival_offsets_.push_back(static_cast<std::uint32_t>(plan.item_at_.size()));
  }

  /// Precondition: each sample was pushed once. `bytes_of` gives the bytes of a sample.
  template <class BytesOf>
  void finish(std::size_t ranks_per_node, BytesOf const& bytes_of) const {
    plan.slot_of_.resize(plan.item_at_.size());
    for (std::uint32_t slot = 0; slot != plan.item_at_.size(); ++slot) {
      plan.slot_of_[plan.item_at_[slot]] = slot;
    }
    plan.digest_ = digest_of(plan.home_offsets_, plan.arrival_offsets_, plan.item_at_);
    plan.inverse_digest_ = digest_of(plan.arrival_offsets_, plan.home_offsets_, plan.slot_of_);
    count_moved_bytes(ranks_per_node, bytes_of);
  }

  /// Counts again, for other bytes.
  template <class BytesOf>
  void count_moved_bytes(std::size_t ranks_per_node, BytesOf const& bytes_of) const {
    plan.moved_bytes_ = 0;
    plan.moved_bytes_across_nodes_ = 0;
    for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
      std::uint32_t const first = plan.home_offsets_[rank];
      std::uint32_t const last = plan.home_offsets_[rank + 1];
      for (std::uint32_t const sample : plan.arrivals(rank)) {
        if (sample >= first && sample < last) continue;
        std::int64_t const bytes = bytes_of(sample);
        plan.moved_bytes_ += bytes;
        if (plan.home_of(sample) / ranks_per_node != rank / ranks_per_node) {
          plan.moved_bytes_across_nodes_ += bytes;
        }
      }
    }
  }

 private:
  using indices = std::vector<std::uint32_t>;

  [[nodiscard]] static std::uint64_t digest_of(indices const& home_offsets,
                                               indices const& arrival_offsets,
                                               indices const& items) {
    data_digest digest;
    digest.add(std::uint64_t{home_offsets.size()});
    for (std::size_t r = 0; r != home_offsets.size(); ++r) {
      digest.add(std::uint64_t{home_offsets[r]} << 32 | arrival_offsets[r]);
    }
    for (std::size_t i = 0; i < items.size(); i += 2) {
      std::uint64_t const second = i + 1 < items.size() ? items[i + 1] : 0;
      digest.add(second << 32 | items[i]);
    }
    return digest.value();
  }
};

}  // namespace omnibal::inline v0::detail
