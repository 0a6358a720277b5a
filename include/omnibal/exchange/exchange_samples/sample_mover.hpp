#pragma once

/// \file
/// Moving samples as a plan says.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/padded_gather.hpp>
#include <omnibal/detail/sample_routes.hpp>
#include <omnibal/exchange/exchange_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Pieces of `std::byte` or `std::byte const` for each rank; those that follow one another in
/// memory become one. Keeps its memory.
template <class Byte>
class piece_list {
 public:
  /// `most_pieces` is a number that will not be exceeded.
  void clear(std::size_t ranks, std::size_t most_pieces) {
    pieces_.clear();
    pieces_.reserve(most_pieces);
    counts_.clear();
    counts_.reserve(ranks);
    first_ = 0;
  }
  void push(std::span<Byte> piece) {
    if (piece.empty()) return;
    if (pieces_.size() != first_ && pieces_.back().data() + pieces_.back().size() == piece.data()) {
      pieces_.back() = {pieces_.back().data(), pieces_.back().size() + piece.size()};
    } else {
      pieces_.push_back(piece);
    }
  }
  /// The next pieces are for the next rank.
  void close() {
    counts_.push_back(pieces_.size() - first_);
    first_ = pieces_.size();
  }

  [[nodiscard]] std::span<std::span<Byte> const> pieces() const { return pieces_; }
  [[nodiscard]] std::span<std::uint64_t const> counts() const { return counts_; }

 private:
  std::vector<std::span<Byte>> pieces_;
  std::vector<std::uint64_t> counts_;
  std::size_t first_ = 0;
};

/// Sends what leaves and copies what stays. Where the communicator takes pieces, what leaves is not
/// collected and what comes is not put into its place afterwards. Keeps its memory.
class sample_mover {
 public:
  /// `local(i)` gives the i-th of `count` samples of a trivially copyable type.
  template <class T, class Comm, class Local>
  void move_fixed(Comm& comm, exchange_plan const& plan, std::size_t count, Local const& local,
                  std::vector<T>& out) {
    // A sample that is made on the way is collected.
    constexpr bool in_pieces = piecewise_communicator<Comm> && sizeof(T) >= least_piece_bytes &&
                               std::is_reference_v<decltype(local(0u))>;
    std::span<std::byte> sent;
    std::span<std::byte> received;
    agree(comm, plan, count, 4 * sizeof(T) + (in_pieces ? 2 : 0), [&] {
      out.resize(plan.arrivals(own_rank(comm)).size());
      if (in_pieces) {
        reserve_pieces();
      } else {
        sent = sent_.take(routes_.leaving_count() * sizeof(T));
        received = received_.take(routes_.coming_count() * sizeof(T));
      }
    });
    for (auto const& sample : routes_.staying()) out[sample.to] = local(sample.from);
    if constexpr (in_pieces) {
      exchange_pieces(
          comm,
          [&](std::size_t k) {
            return std::as_bytes(std::span<T const>(&local(routes_.leaving(k)), 1));
          },
          [&](std::size_t k) {
            return std::as_writable_bytes(std::span<T>(&out[routes_.coming(k)], 1));
          });
    } else {
      for (std::size_t k = 0; k != routes_.leaving_count(); ++k) {
        T const& sample = local(routes_.leaving(k));
        std::memcpy(sent.data() + k * sizeof(T), &sample, sizeof(T));
      }
      scale(routes_.send_counts(), sizeof(T), send_bytes_);
      scale(routes_.receive_counts(), sizeof(T), receive_bytes_);
      exchange(comm, sent, received);
      for (std::size_t k = 0; k != routes_.coming_count(); ++k) {
        std::memcpy(&out[routes_.coming(k)], received.data() + k * sizeof(T), sizeof(T));
      }
    }
  }

  /// `local(i)` gives a span of values: the sizes travel first.
  template <class T, class Comm, class Local>
  void move_sized(Comm& comm, exchange_plan const& plan, std::size_t count, Local const& local,
                  ragged<T>& out) {
    agree(comm, plan, count, 2 * sizeof(T) + 1, [&] {
      leaving_sizes_.resize(routes_.leaving_count());
      coming_sizes_.resize(routes_.coming_count());
      lengths_.resize(plan.arrivals(own_rank(comm)).size());
      if (piecewise_communicator<Comm>) reserve_pieces();
    });
    exchange_sizes(comm, local);
    for (auto const& sample : routes_.staying()) lengths_[sample.to] = local(sample.from).size();
    for (std::size_t k = 0; k != coming_sizes_.size(); ++k) {
      lengths_[routes_.coming(k)] = coming_sizes_[k];
    }
    out.shape(lengths_);
    auto const bytes_of = [&](std::uint32_t i, std::uint64_t size) {
      std::span<T const> const sample = local(i);
      if (sample.size() != size) throw_changed(i, size, sample.size());
      return std::as_bytes(sample);
    };
    for (auto const& sample : routes_.staying()) {
      auto const row = out[sample.to];
      copy(bytes_of(sample.from, row.size()), std::as_writable_bytes(row).data());
    }
    auto const leaves = [&](std::size_t k) {
      return bytes_of(routes_.leaving(k), leaving_sizes_[k]);
    };
    auto const comes = [&](std::size_t k) {
      return std::as_writable_bytes(out[routes_.coming(k)]);
    };
    if constexpr (piecewise_communicator<Comm>) {
      exchange_pieces(comm, leaves, comes);
    } else {
      exchange_collected(comm, sizeof(T), leaves, comes);
    }
  }

 private:
  static constexpr std::string_view name = "exchange_samples";
  /// Smaller samples are collected sooner than their places are listed.
  static constexpr std::size_t least_piece_bytes = 64;

  [[noreturn]] static void throw_changed(std::size_t sample, std::uint64_t before,
                                         std::size_t now) {
    throw_invalid(name, "local[" + to_text(sample) + "] had " + to_text(before) +
                            " values and now has " + to_text(now));
  }

  /// Finds the routes of this rank and allocates, and makes sure that all ranks could and have the
  /// same plan. `shape` tells the size of the type that travels, and how it travels.
  template <class Comm, class Allocate>
  void agree(Comm& comm, exchange_plan const& plan, std::size_t count, std::uint64_t shape,
             Allocate const& allocate) {
    agreement_.run({name, "plans or types of samples"}, comm, [&](auto& report) {
      std::size_t const rank = own_rank(comm);
      if (plan.ranks() != rank_count(comm)) {
        throw_invalid(name, "the plan is for " + to_text(plan.ranks()) + " ranks, but there are " +
                                to_text(rank_count(comm)));
      }
      if (plan.home_count(rank) != count) {
        throw_invalid(name, "there are " + to_text(count) + " samples, but the plan has " +
                                to_text(plan.home_count(rank)) + " of rank " + to_text(rank));
      }
      routes_.prepare(plan, rank);
      send_bytes_.resize(plan.ranks());
      receive_bytes_.resize(plan.ranks());
      allocate();
      data_digest digest;
      digest.add(plan.digest());
      digest.add(shape);
      report.digest = digest.value();
    });
  }

  template <class Comm, class Local>
  void exchange_sizes(Comm& comm, Local const& local) {
    for (std::size_t k = 0; k != leaving_sizes_.size(); ++k) {
      leaving_sizes_[k] = local(routes_.leaving(k)).size();
    }
    scale(routes_.send_counts(), sizeof(std::uint64_t), send_bytes_);
    scale(routes_.receive_counts(), sizeof(std::uint64_t), receive_bytes_);
    exchange(comm, std::as_bytes(std::span(leaving_sizes_)),
             std::as_writable_bytes(std::span(coming_sizes_)));
  }

  void reserve_pieces() {
    sent_pieces_.clear(send_bytes_.size(), routes_.leaving_count());
    received_pieces_.clear(send_bytes_.size(), routes_.coming_count());
  }
  /// `leaves(k)` and `comes(k)` give the bytes of the k-th sample that leaves or comes.
  template <class Comm, class Leaves, class Comes>
  void exchange_pieces(Comm& comm, Leaves const& leaves, Comes const& comes) {
    std::size_t sent = 0;
    std::size_t received = 0;
    for (std::size_t rank = 0; rank != send_bytes_.size(); ++rank) {
      for (auto left = routes_.send_counts()[rank]; left != 0; --left) {
        sent_pieces_.push(leaves(sent++));
      }
      for (auto left = routes_.receive_counts()[rank]; left != 0; --left) {
        received_pieces_.push(comes(received++));
      }
      sent_pieces_.close();
      received_pieces_.close();
    }
    comm.all_to_all_pieces(sent_pieces_.pieces(), sent_pieces_.counts(), received_pieces_.pieces(),
                           received_pieces_.counts());
  }

  template <class Comm, class Leaves, class Comes>
  void exchange_collected(Comm& comm, std::size_t value_bytes, Leaves const& leaves,
                          Comes const& comes) {
    auto const sent =
        sent_.take(sum_sizes(routes_.send_counts(), leaving_sizes_, send_bytes_, value_bytes));
    auto const received = received_.take(
        sum_sizes(routes_.receive_counts(), coming_sizes_, receive_bytes_, value_bytes));
    std::byte* next = sent.data();
    for (std::size_t k = 0; k != leaving_sizes_.size(); ++k) next = copy(leaves(k), next);
    exchange(comm, sent, received);
    std::byte const* from = received.data();
    for (std::size_t k = 0; k != coming_sizes_.size(); ++k) {
      auto const row = comes(k);
      copy({from, row.size()}, row.data());
      from += row.size();
    }
  }

  template <class Comm>
  void exchange(Comm& comm, std::span<std::byte const> sent, std::span<std::byte> received) {
    comm.all_to_all_v(sent, std::span<std::uint64_t const>(send_bytes_), received,
                      std::span<std::uint64_t const>(receive_bytes_));
  }

  static void scale(std::span<std::uint64_t const> counts, std::uint64_t factor,
                    std::vector<std::uint64_t>& result) {
    for (std::size_t rank = 0; rank != counts.size(); ++rank) {
      result[rank] = counts[rank] * factor;
    }
  }

  /// The bytes for each rank, and their sum: sizes of `counts[0]` samples, of the next `counts[1]`
  /// and so on.
  [[nodiscard]] static std::uint64_t sum_sizes(std::span<std::uint64_t const> counts,
                                               std::vector<std::uint64_t> const& sizes,
                                               std::vector<std::uint64_t>& result,
                                               std::size_t value_bytes) {
    std::uint64_t sum = 0;
    std::size_t next = 0;
    for (std::size_t rank = 0; rank != counts.size(); ++rank) {
      result[rank] = 0;
      for (std::uint64_t k = 0; k != counts[rank]; ++k) result[rank] += sizes[next++];
      result[rank] *= value_bytes;
      sum += result[rank];
    }
    return sum;
  }

  static std::byte* copy(std::span<std::byte const> from, std::byte* to) {
    return std::copy(from.begin(), from.end(), to);
  }

  agreement<std::uint64_t> agreement_;
  sample_routes routes_;
  byte_buffer sent_;
  byte_buffer received_;
  piece_list<std::byte const> sent_pieces_;
  piece_list<std::byte> received_pieces_;
  std::vector<std::uint64_t> send_bytes_;
  std::vector<std::uint64_t> receive_bytes_;
  std::vector<std::uint64_t> leaving_sizes_;
  std::vector<std::uint64_t> coming_sizes_;
  std::vector<std::uint64_t> lengths_;
};

}  // namespace omnibal::inline v0::detail
