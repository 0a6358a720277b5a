// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A stand-in for the process group that a trainer has already: a collective, and messages whose
/// sender waits until they are received. Its ranks are threads here, so that the example runs
/// anywhere.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
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

  /// Returns when the bytes were received. Throws where nobody receives them for a minute.
  void send(int to, void const* data, std::size_t bytes) const {
    message sent = {data, bytes, false};
    std::unique_lock lock(shared_->mutex);
    shared_->box(rank_, to) = &sent;
    shared_->changed.notify_all();
    wait(lock, [&] { return sent.is_received; });
  }

  /// Throws where nothing comes for a minute.
  void receive(int from, void* data, std::size_t bytes) const {
    std::unique_lock lock(shared_->mutex);
    message*& box = shared_->box(from, rank_);
    wait(lock, [&] { return box != nullptr; });
    if (box->bytes != bytes) throw std::runtime_error("process_group: another size");
    if (bytes != 0) std::memcpy(data, box->data, bytes);
    box->is_received = true;
    box = nullptr;
    shared_->changed.notify_all();
  }

  /// Writes the bytes of all ranks to `all`, by rank.
  void gather(void const* own, std::size_t bytes, void* all) const {
    auto* const first = static_cast<std::byte*>(all);
    for (int other = 0; other != world_size(); ++other) {
      std::byte* const received = first + static_cast<std::size_t>(other) * bytes;
      if (other == rank_) {
        if (bytes != 0) std::memcpy(received, own, bytes);
        continue;
      }
      // Of two ranks the lower one sends first.
      if (rank_ < other) send(other, own, bytes);
      receive(other, received, bytes);
      if (rank_ > other) send(other, own, bytes);
    }
  }

 private:
  struct message {
    void const* data;
    std::size_t bytes;
    bool is_received;
  };

  struct post_office {
    explicit post_office(int size)
        : world_size(size),
          boxes(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}
    message*& box(int from, int to) {
      return boxes[static_cast<std::size_t>(from) * static_cast<std::size_t>(world_size) +
                   static_cast<std::size_t>(to)];
    }

    int world_size;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<message*> boxes;
  };

  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition const& condition) const {
    if (!shared_->changed.wait_for(lock, std::chrono::minutes(1), condition)) {
      throw std::runtime_error("process_group: timeout");
    }
  }

  process_group(post_office& shared, int rank) : shared_(&shared), rank_(rank) {}

  post_office* shared_;
  int rank_;
};

}  // namespace trainer
