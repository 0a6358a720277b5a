// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Saved tensors of layers that leave the memory of the process for a file and come back.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include <ATen/ATen.h>

namespace train_vlm {

/// Memory behind a link: a file without a name.
class far_memory {
 public:
  far_memory();

  /// Writes bytes behind all others; returns where they begin.
  [[nodiscard]] long write(void const* bytes, std::size_t count);
  void read(long begin, void* bytes, std::size_t count);

 private:
  struct closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, closer> file_;
};

/// The saved tensors of a layer that share a storage.
struct saved_storage {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::int64_t bytes;
  /// The storage of the input of the layer, which recomputation needs.
  bool is_input;
  /// The bytes that the link has still to send.
  std::int64_t left;
  /// The begin in the far memory; negative if the storage is on the device.
  long place = -1;
};

/// The bytes that the link transfers in the passes of a layer.
struct link_bytes {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};

/// Moves the storages that autograd saves in a layer. The link has no thread. The storages that it
/// sends in a pass are freed at the end of the pass; those that it fetches in a pass are allocated
/// at its begin. A storage moves whole.
class activation_mover {
 public:
  struct moved_parts {
    bool input = false;
    bool others = false;
  };

  /// `others` are parameters and data, which never move.
  activation_mover(std::vector<link_bytes> link, std::vector<moved_parts> moved,
                   std::vector<at::Tensor> const& others);

  /// From here to `end_forward`, autograd saves tensors of this layer.
  void begin_forward(std::size_t layer, at::Tensor const& input);
  void end_forward();
  /// Fetches the tensors of the layer, and those of earlier layers that would come too late.
  void begin_backward(std::size_t layer);

  [[nodiscard]] std::vector<std::vector<saved_storage>> const& saved() const { return saved_; }

  /// Notes a tensor that autograd saves.
  void note(at::Tensor const& tensor);

 private:
  struct place_in_step {
    std::size_t layer;
    std::size_t number;
  };
  [[nodiscard]] saved_storage& at(place_in_step const& one) {
    return saved_[one.layer][one.number];
  }
  [[nodiscard]] bool is_moved(saved_storage const& one, std::size_t layer) const {
    return one.is_input ? moved_[layer].input : moved_[layer].others;
  }

  void send(std::int64_t bytes);
  void fetch(saved_storage& one);

  std::vector<link_bytes> link_;
  std::vector<moved_parts> moved_;
  std::unordered_set<void const*> others_;
  std::vector<std::vector<saved_storage>> saved_;
  std::deque<place_in_step> queue_;
  std::size_t layer_ = 0;
  void const* input_ = nullptr;
  far_memory far_;
};

}  // namespace train_vlm
