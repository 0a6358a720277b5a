#pragma once

/// \file
/// A stand-in for the process group that a trainer has already: it sends and receives bytes between
/// its ranks. Its ranks are threads here, so that the example runs anywhere.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace trainer {

class process_group {
 public:
  /// Calls `body(group)` on so many ranks and returns when all have returned.
  template <class Body>
  static void launch(int world_size, Body const& body) {
    post_office shared(world_size);
    std::vector<std::jthread> others;
    for (int rank = 1; rank != world_size; ++rank) {
      others.emplace_back([&, rank] { body(process_group(shared, rank)); });
    }
    body(process_group(shared, 0));
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world_size() const { return shared_->world_size; }

  /// Returns when the bytes may be changed.
  void send(int to, void const* data, std::size_t bytes) const {
    auto const* const first = static_cast<std::byte const*>(data);
    std::lock_guard const lock(shared_->mutex);
    shared_->box(rank_, to).emplace_back(first, first + bytes);
    shared_->arrived.notify_all();
  }

  /// Throws where nothing comes for a minute.
  void receive(int from, void* data, std::size_t bytes) const {
    std::unique_lock lock(shared_->mutex);
    auto& box = shared_->box(from, rank_);
    if (!shared_->arrived.wait_for(lock, std::chrono::minutes(1), [&] { return !box.empty(); })) {
      throw std::runtime_error("process_group: timeout");
    }
    if (box.front().size() != bytes) throw std::runtime_error("process_group: another size");
    if (bytes != 0) std::memcpy(data, box.front().data(), bytes);
    box.pop_front();
  }

 private:
  struct post_office {
    using messages = std::deque<std::vector<std::byte>>;

    explicit post_office(int size)
        : world_size(size),
          boxes(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}
    messages& box(int from, int to) {
      return boxes[static_cast<std::size_t>(from) * static_cast<std::size_t>(world_size) +
                   static_cast<std::size_t>(to)];
    }

    int world_size;
    std::mutex mutex;
    std::condition_variable arrived;
    std::vector<messages> boxes;
  };

  process_group(post_office& shared, int rank) : shared_(&shared), rank_(rank) {}

  post_office* shared_;
  int rank_;
};

}  // namespace trainer
