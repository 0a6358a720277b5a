// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The exchange of the fields of samples according to a plan.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/padded_gather.hpp>
#include <omnibal/detail/sample_routes.hpp>
#include <omnibal/exchange/exchange_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A plan, and whether the caller guarantees that all ranks have the same plan.
struct followed_plan {
  followed_plan(exchange_plan const& followed) : plan(followed) {}

  exchange_plan const& plan;
  bool is_agreed = false;
};

/// The messages to all ranks, or from them, in pieces of `std::byte const` or `std::byte`. Pieces
/// that are adjacent in memory become one piece. Later calls reuse its memory.
template <class Byte>
class piece_messages {
 public:
  using piece = std::span<Byte>;

  void start() {
    first_ = 0;
    pieces_.clear();
    counts_.clear();
    bytes_.clear();
  }
  void add(piece added) {
    message_bytes_ += added.size();
    if (added.empty()) return;
    if (pieces_.size() != first_) {
      piece& last = pieces_.back();
      if (last.data() + last.size() == added.data()) {
        last = {last.data(), last.size() + added.size()};
        return;
      }
    }
    pieces_.push_back(added);
  }
  /// Ends the message of one rank and begins the message of the next rank.
  void close() {
    counts_.push_back(pieces_.size() - first_);
    bytes_.push_back(std::exchange(message_bytes_, 0));
    first_ = pieces_.size();
  }

  [[nodiscard]] std::span<piece const> pieces() const { return pieces_; }
  /// Returns the number of pieces of each rank.
  [[nodiscard]] std::span<std::uint64_t const> counts() const { return counts_; }
  /// Returns the number of bytes of each rank.
  [[nodiscard]] std::span<std::uint64_t const> bytes() const { return bytes_; }

  /// Returns all pieces as one block, for communicators that do not accept pieces. Adjacent pieces
  /// require no copy.
  [[nodiscard]] piece block() {
    auto const sum = std::accumulate(bytes_.begin(), bytes_.end(), std::uint64_t{0});
    if (is_block()) return {pieces_.front().data(), sum};
    return memory_.take(sum);
  }
  /// Copies the pieces into the block.
  void collect() {
    if (is_block()) return;
    std::byte* to = memory_.take(block().size()).data();
    for (piece const one : pieces_) to = std::copy(one.begin(), one.end(), to);
  }
  /// Copies the block into the pieces.
  void distribute() {
    if (is_block()) return;
    std::byte const* from = block().data();
    for (piece const one : pieces_) {
      std::copy_n(from, one.size(), one.begin());
      from += one.size();
    }
  }

 private:
  [[nodiscard]] bool is_block() const {
    auto const is_apart = [](piece a, piece b) { return a.data() + a.size() != b.data(); };
    return !pieces_.empty() &&
           std::adjacent_find(pieces_.begin(), pieces_.end(), is_apart) == pieces_.end();
  }

  std::size_t first_ = 0;
  std::uint64_t message_bytes_ = 0;
  std::vector<piece> pieces_;
  std::vector<std::uint64_t> counts_;
  std::vector<std::uint64_t> bytes_;
  byte_buffer memory_;
};

/// Copies values of one size from `from(k)` to `to(k)`. If the compiler knows the size, a copy is a
/// few moves instead of a call.
template <class To, class From>
void copy_values(std::size_t value_bytes, std::size_t count, To const& to, From const& from) {
  auto const copy = [&](auto bytes) {
    for (std::size_t k = 0; k != count; ++k) std::memcpy(to(k), from(k), bytes);
  };
  switch (value_bytes) {
    case 4: return copy(std::integral_constant<std::size_t, 4>{});
    case 8: return copy(std::integral_constant<std::size_t, 8>{});
    case 16: return copy(std::integral_constant<std::size_t, 16>{});
    case 32: return copy(std::integral_constant<std::size_t, 32>{});
    default: return copy(value_bytes);
  }
}

/// A field of the samples of this rank: arrays of values, or one value each. Sizes are numbers of
/// values. The captures of the functors are small, and their construction allocates nothing.
struct sample_field {
  /// Whether a sample is one value, or how the other ranks know the sizes.
  enum class sizes { one, known, told };

  sizes kind = sizes::one;
  std::size_t count = 0;
  std::size_t value_bytes = 0;
  /// The values before the exchange if a sample is one value.
  std::byte const* values = nullptr;
  /// The memory of `values` if the samples are not in an array.
  std::vector<std::byte> made{};
  /// Returns the array of a sample before the exchange.
  std::function<std::span<std::byte const>(std::uint32_t)> array;
  /// Returns the array of a sample after the exchange.
  std::function<std::span<std::byte>(std::uint32_t)> place;
  /// Allocates the places for arrays of these sizes, or for a number of single values, and returns
  /// the first place of single values.
  std::function<std::byte*(std::span<std::uint64_t const>, std::size_t)> shape;
  /// If sizes are known: returns the size of sample i; the second argument is the number of samples
  /// of all ranks.
  std::function<std::uint64_t(std::uint32_t, std::size_t)> size_of;

  [[nodiscard]] bool is_one() const { return kind == sizes::one; }
  /// Returns true if values are small enough that a copy costs less than a list of their places.
  [[nodiscard]] bool is_packed() const { return is_one() && value_bytes < 64; }
  [[nodiscard]] std::span<std::byte const> row(std::uint32_t i) const {
    if (!is_one()) return array(i);
    return {values + i * value_bytes, value_bytes};
  }
  [[nodiscard]] std::uint64_t size(std::uint32_t i) const { return row(i).size() / value_bytes; }
};

/// Sends the samples that leave and copies the samples that stay, one field after the other in each
/// message. Later calls reuse its memory.
class sample_mover {
 public:
  /// Moves the fields. The ranks agree before the first message. If the plan is agreed, their
  /// reports are part of that message instead.
  template <class Comm>
  void move(Comm& comm, followed_plan const& followed, std::span<sample_field const> fields) {
    constexpr agreement_names names{name, "plans or types of samples"};
    fields_ = fields;
    bool const tells_sizes = std::any_of(fields.begin(), fields.end(), is_told);
    auto const prepare = [&](auto& report) {
      if (!followed.is_agreed) find_routes(comm, followed.plan);
      for (std::size_t f = 0; f != fields.size(); ++f) check(followed.plan, f);
      report.digest = digest_.value();
      if (!tells_sizes) pack_samples<Comm>();
    };
    reports_along_ = followed.is_agreed;
    if (reports_along_) {
      find_routes(comm, followed.plan);
      agreement_.start(comm, prepare);
    } else {
      agreement_.run(names, comm, prepare);
    }
    if (tells_sizes) {
      pack_sizes<Comm>();
      exchange(comm);
      if (reports_along_) agreement_.finish(names, comm);
      reports_along_ = false;
      pack_samples<Comm>();
    } else if (agreement_.has_failed()) {
      pack_nothing<Comm>();
    }
    if (!agreement_.has_failed()) keep();
    exchange(comm);
    if (reports_along_) agreement_.finish(names, comm);
    distribute_values();
  }

 private:
  static constexpr std::string_view name = "exchange_samples";

  [[nodiscard]] static bool is_told(sample_field const& field) {
    return field.kind == sample_field::sizes::told;
  }

  /// The leaving or arriving data of a field: the sizes of arrays, or small contiguous values.
  struct kept_side {
    std::vector<std::uint64_t> sizes;
    byte_buffer memory;
    std::span<std::byte> packed;

    void start(std::size_t arrays) {
      sizes.resize(arrays);
      packed = {};
    }
    void pack(std::size_t bytes) { packed = memory.take(bytes); }
  };
  struct kept_field {
    kept_side sent;
    kept_side received;
    /// The first place of values.
    std::byte* places = nullptr;
  };

  /// Checks the conditions that, for an agreed plan, hold either on all ranks or on no rank.
  template <class Comm>
  void find_routes(Comm& comm, exchange_plan const& plan) {
    if (plan.ranks() != rank_count(comm)) {
      throw_invalid(name, "the plan is for " + to_text(plan.ranks()) + " ranks, but there are " +
                              to_text(rank_count(comm)));
    }
    rank_ = own_rank(comm);
    routes_.prepare(plan, rank_);
    kept_.resize(std::max(fields_.size(), kept_.size()));
    digest_ = {};
    digest_.add(plan.digest());
    std::uint64_t sum = 0;
    for (std::size_t f = 0; f != fields_.size(); ++f) {
      digest_.add(4 * fields_[f].value_bytes + static_cast<std::uint64_t>(fields_[f].kind));
      bool const is_one = fields_[f].is_one();
      kept_[f].sent.start(is_one ? 0 : routes_.leaving_count());
      kept_[f].received.start(is_one ? 0 : routes_.coming_count());
      if (fields_[f].kind == sample_field::sizes::known) find_sizes(plan, f, sum);
    }
  }

  /// Finds the sizes of a field; `sum` accumulates the bytes of all samples over the fields.
  void find_sizes(exchange_plan const& plan, std::size_t f, std::uint64_t& sum) {
    sample_field const& field = fields_[f];
    std::size_t const samples = plan.sample_count();
    for (std::uint32_t i = 0; i != samples; ++i) {
      std::uint64_t bytes = 0;
      if (__builtin_mul_overflow(field.size_of(i, samples), field.value_bytes, &bytes)) {
        throw_overflow(name, "the sum of the sizes");
      }
      checked_add(name, "the sum of the sizes", sum, bytes);
      digest_.add(bytes);
    }
    for (std::size_t k = 0; k != routes_.leaving_count(); ++k) {
      kept_[f].sent.sizes[k] =
          field.size_of(plan.home_offsets()[rank_] + routes_.leaving(k), samples);
    }
    for (std::size_t k = 0; k != routes_.coming_count(); ++k) {
      kept_[f].received.sizes[k] = field.size_of(plan.arrivals(rank_)[routes_.coming(k)], samples);
    }
  }

  /// Checks the conditions that may fail on one rank only.
  void check(exchange_plan const& plan, std::size_t f) {
    sample_field const& field = fields_[f];
    if (field.count != plan.home_count(rank_)) {
      throw_invalid(name, "fields[" + to_text(f) + "] has " + to_text(field.count) +
                              " samples, but the plan has " + to_text(plan.home_count(rank_)) +
                              " of rank " + to_text(rank_));
    }
    for (std::size_t k = 0; is_told(field) && k != routes_.leaving_count(); ++k) {
      kept_[f].sent.sizes[k] = field.size(routes_.leaving(k));
    }
    for (std::uint32_t i = 0; field.kind == sample_field::sizes::known && i != field.count; ++i) {
      row(f, i, field.size_of(plan.home_offsets()[rank_] + i, plan.sample_count()));
    }
  }

  /// Returns the bytes of a sample. Checks their number, because the functor of the caller may
  /// return another size than the size for which memory was allocated.
  std::span<std::byte const> row(std::size_t f, std::uint32_t i, std::uint64_t size) const {
    auto const found = fields_[f].row(i);
    if (found.size() != size * fields_[f].value_bytes) {
      throw_invalid(name, "fields[" + to_text(f) + "][" + to_text(i) + "] has " +
                              to_text(found.size() / fields_[f].value_bytes) +
                              " values, must have " + to_text(size));
    }
    return found;
  }

  template <class Comm>
  void pack_sizes() {
    auto const word = [&](kept_side& side, std::size_t k, std::size_t f) {
      bool const is_sent = is_told(fields_[f]);
      return std::as_writable_bytes(
          std::span(side.sizes).subspan(is_sent ? k : 0, is_sent ? 1 : 0));
    };
    pack<Comm>(word, word);
  }

  template <class Comm>
  void pack_samples() {
    std::size_t const count = routes_.staying().size() + routes_.coming_count();
    for (std::size_t f = 0; f != fields_.size(); ++f) {
      if (!fields_[f].is_one()) find_lengths(f, count);
      kept_[f].places = fields_[f].shape(lengths_, count);
      if (fields_[f].is_packed()) collect_values(f);
    }
    pack<Comm>(
        [&](kept_side const& side, std::size_t k, std::size_t f) {
          return row(f, routes_.leaving(k), fields_[f].is_one() ? 1 : side.sizes[k]);
        },
        [&](kept_side const&, std::size_t k, std::size_t f) {
          return place(f, routes_.coming(k));
        });
  }

  void find_lengths(std::size_t f, std::size_t count) {
    lengths_.resize(count);
    for (auto const& stay : routes_.staying()) lengths_[stay.to] = fields_[f].size(stay.from);
    for (std::size_t k = 0; k != routes_.coming_count(); ++k) {
      lengths_[routes_.coming(k)] = kept_[f].received.sizes[k];
    }
  }

  [[nodiscard]] std::span<std::byte> place(std::size_t f, std::uint32_t i) const {
    sample_field const& field = fields_[f];
    if (!field.is_one()) return field.place(i);
    return {kept_[f].places + i * field.value_bytes, field.value_bytes};
  }

  /// On a rank that has failed, prepares messages of the expected sizes with arbitrary contents,
  /// besides the report.
  template <class Comm>
  void pack_nothing() {
    std::uint64_t largest = 0;
    for (std::size_t f = 0; f != fields_.size(); ++f) {
      kept_[f].sent.packed = kept_[f].received.packed = {};
      std::uint64_t most = fields_[f].is_one() ? 1 : 0;
      for (auto const* const side : {&kept_[f].sent, &kept_[f].received}) {
        for (std::uint64_t const size : side->sizes) most = std::max(most, size);
      }
      largest = std::max(largest, most * fields_[f].value_bytes);
    }
    auto const any = nothing_.take(2 * largest);
    auto const some_of = [&](std::span<std::byte> bytes) {
      return [&, bytes](kept_side const& side, std::size_t k, std::size_t f) {
        return bytes.first((fields_[f].is_one() ? 1 : side.sizes[k]) * fields_[f].value_bytes);
      };
    };
    pack<Comm>(some_of(any.first(largest)), some_of(any.last(largest)));
  }

  void keep() {
    auto const stays = routes_.staying();
    for (std::size_t f = 0; f != fields_.size(); ++f) {
      std::size_t const bytes = fields_[f].value_bytes;
      if (fields_[f].is_one()) {
        copy_values(
            bytes, stays.size(),
            [&](std::size_t k) { return kept_[f].places + stays[k].to * bytes; },
            [&](std::size_t k) { return fields_[f].values + stays[k].from * bytes; });
        continue;
      }
      for (auto const& stay : stays) {
        auto const to = fields_[f].place(stay.to);
        auto const from = row(f, stay.from, to.size() / bytes);
        std::copy(from.begin(), from.end(), to.begin());
      }
    }
  }

  /// Collects small values before they leave.
  void collect_values(std::size_t f) {
    std::size_t const bytes = fields_[f].value_bytes;
    kept_side& sent = kept_[f].sent;
    kept_[f].received.pack(routes_.coming_count() * bytes);
    sent.pack(routes_.leaving_count() * bytes);
    copy_values(
        bytes, routes_.leaving_count(),
        [&](std::size_t k) { return sent.packed.data() + k * bytes; },
        [&](std::size_t k) { return fields_[f].values + routes_.leaving(k) * bytes; });
  }
  /// Copies small values to their places after they arrive.
  void distribute_values() {
    for (std::size_t f = 0; f != fields_.size(); ++f) {
      std::size_t const bytes = fields_[f].value_bytes;
      std::span<std::byte const> const packed = kept_[f].received.packed;
      copy_values(
          bytes, packed.size() / bytes,
          [&](std::size_t k) { return kept_[f].places + routes_.coming(k) * bytes; },
          [&](std::size_t k) { return packed.data() + k * bytes; });
    }
  }

  /// Prepares the messages of an exchange. `send(side, k, f)` and `receive(side, k, f)` return the
  /// bytes of field f of the k-th leaving or arriving sample, for fields that are not packed.
  template <class Comm, class Send, class Receive>
  void pack(Send const& send, Receive const& receive) {
    pack_side(sent_, routes_.send_counts(), &kept_field::sent, send);
    pack_side(received_, routes_.receive_counts(), &kept_field::received, receive);
    if constexpr (piecewise_communicator<Comm>) return;
    sent_.collect();
    static_cast<void>(received_.block());
  }
  template <class Byte, class Piece>
  void pack_side(piece_messages<Byte>& messages, std::span<std::uint64_t const> counts,
                 kept_side kept_field::*own_side, Piece const& piece) {
    messages.start();
    std::size_t first = 0;
    for (std::size_t rank = 0; rank != counts.size(); ++rank) {
      if (reports_along_ && rank != rank_) {
        std::size_t const reporter = std::is_const_v<Byte> ? rank_ : rank;
        messages.add(std::as_writable_bytes(agreement_.reports().subspan(reporter, 1)));
      }
      std::size_t const last = first + counts[rank];
      for (std::size_t f = 0; f != fields_.size(); ++f) {
        kept_side& side = kept_[f].*own_side;
        std::size_t const bytes = fields_[f].value_bytes;
        if (!side.packed.empty()) {
          messages.add(side.packed.subspan(first * bytes, counts[rank] * bytes));
          continue;
        }
        for (std::size_t k = first; k != last; ++k) messages.add(piece(side, k, f));
      }
      first = last;
      messages.close();
    }
  }

  template <class Comm>
  void exchange(Comm& comm) {
    if constexpr (piecewise_communicator<Comm>) {
      comm.all_to_all_pieces(sent_.pieces(), sent_.counts(), received_.pieces(),
                             received_.counts());
    } else {
      comm.all_to_all_v(sent_.block(), sent_.bytes(), received_.block(), received_.bytes());
      received_.distribute();
    }
  }

  agreement<std::uint64_t> agreement_;
  sample_routes routes_;
  data_digest digest_;
  std::size_t rank_ = 0;
  bool reports_along_ = false;
  std::span<sample_field const> fields_;
  std::vector<kept_field> kept_;
  std::vector<std::uint64_t> lengths_;
  byte_buffer nothing_;
  piece_messages<std::byte const> sent_;
  piece_messages<std::byte> received_;
};

}  // namespace omnibal::inline v0::detail
