// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A communicator over a process group of PyTorch; requires libtorch with its distributed part.

#include <omnibal/check.hpp>
#include <omnibal/detail/agreement.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace omnibal::inline v0::c10d {

/// A communicator that uses a process group of PyTorch together with its other owners, such as a
/// trainer's group of data-parallel ranks. The group is a `ProcessGroup` or `Backend` of PyTorch's
/// c10d, or a class derived from one. The group must accept tensors of the host, as Gloo, MPI and
/// UCC do. Models `exchanging_communicator`. The communicator wraps the caller's memory in tensors
/// of bytes and copies nothing; the group may copy.
///
/// All ranks call the collectives of a group in the same order. A trainer that communicates on
/// another thread at the same time passes a separate group. A group for NCCL rejects memory of the
/// host: see `nccl::communicator_ref`.
///
/// Determinism: portable among equal ranks. Errors: `std::invalid_argument` if sizes do not add up.
/// If a rank has ended or the timeout of the group has passed, the group throws a
/// `std::runtime_error` or a `c10::Error`. The group cannot be used after that error.
template <class Group>
class communicator_ref {
 public:
  /// Shares `group`. Errors: `std::invalid_argument` if the pointer is null.
  explicit communicator_ref(c10::intrusive_ptr<Group> group) : group_(std::move(group)) {
    if (!group_) {
      omnibal::detail::throw_invalid("c10d::communicator_ref", "group is null, must be a group");
    }
  }

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(group_->getRank()); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(group_->getSize()); }
  [[nodiscard]] c10::intrusive_ptr<Group> const& get() const { return group_; }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) const {
    omnibal::detail::check_size("c10d::all_gather", "the size of out", out.size(),
                                in.size() * size());
    if (in.empty()) return;
    at::Tensor sent = tensor_over(in);
    // Gloo implements `_allgather_base` only since PyTorch 2, as a call of `allgather`.
    if constexpr (requires(std::vector<std::vector<at::Tensor>> all, std::vector<at::Tensor> own) {
                    group_->allgather(all, own);
                  }) {
      std::vector<std::vector<at::Tensor>> received(1);
      for (std::size_t rank = 0; rank != size(); ++rank) {
        received[0].push_back(tensor_over(out.subspan(rank * in.size(), in.size())));
      }
      std::vector<at::Tensor> own = {sent};
      group_->allgather(received, own)->wait();
    } else {
      at::Tensor received = tensor_over(out);
      group_->_allgather_base(received, sent)->wait();
    }
  }

  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) const {
    constexpr std::string_view name = "c10d::all_to_all_v";
    omnibal::detail::check_counts(name, "send counts", send_counts, size(), in.size());
    omnibal::detail::check_counts(name, "receive counts", receive_counts, size(), out.size());
    at::Tensor sent = tensor_over(in);
    at::Tensor received = tensor_over(out);
    std::vector<std::int64_t> sizes_sent(send_counts.begin(), send_counts.end());
    std::vector<std::int64_t> sizes_received(receive_counts.begin(), receive_counts.end());
    // PyTorch 2.15 has `all_to_all_single` and deprecates `alltoall_base`.
    if constexpr (requires {
                    group_->all_to_all_single(received, sent, sizes_received, sizes_sent);
                  }) {
      group_->all_to_all_single(received, sent, sizes_received, sizes_sent)->wait();
    } else {
      group_->alltoall_base(received, sent, sizes_received, sizes_sent)->wait();
    }
  }

 private:
  template <class Byte>
  [[nodiscard]] static at::Tensor tensor_over(std::span<Byte> bytes) {
    // A tensor cannot view constant memory. The group only reads the sent bytes.
    return at::from_blob(const_cast<std::remove_const_t<Byte>*>(bytes.data()),
                         {static_cast<std::int64_t>(bytes.size())}, at::kByte);
  }

  c10::intrusive_ptr<Group> group_;
};

}  // namespace omnibal::inline v0::c10d
