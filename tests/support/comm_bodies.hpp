// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every communicator must do. The same bodies run over one rank, threads and processes.

#include "gathered_rows.hpp"
#include "rank_checks.hpp"
#include "samples.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/resources.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

/// So many different values that name their rank and a destination.
inline std::vector<std::uint32_t> values_from(std::size_t rank, std::size_t to, std::size_t count) {
  std::vector<std::uint32_t> result(count);
  std::iota(result.begin(), result.end(), static_cast<std::uint32_t>(rank * 1'000'003 + to * 1009));
  return result;
}

template <class Comm>
void gather_values(Comm& comm) {
  std::size_t const rank = static_cast<std::size_t>(comm.rank());
  std::size_t const ranks = static_cast<std::size_t>(comm.size());
  auto const numbers = omnibal::all_gather(comm, std::uint64_t{rank});
  require(numbers.size() == ranks, "a number of every rank");
  for (std::size_t r = 0; r != ranks; ++r) require(numbers[r] == r, "the number of a rank");

  auto const pairs = omnibal::all_gather(comm, std::array<std::uint16_t, 3>{1, 2, 3});
  require(pairs.size() == 3 * ranks, "an array counts as its values");
  require(omnibal::all_gather(comm, std::vector<char>{}).empty(), "nothing from every rank");

  for (std::size_t const factor : {0u, 1u, 7u, 1000u}) {
    // Rank 0 has nothing, the last one most.
    auto const rows = gathered_rows(comm, values_from(rank, 0, rank * factor));
    require(rows.size() == ranks, "a row of every rank");
    for (std::size_t r = 0; r != ranks; ++r) {
      auto const wanted = values_from(r, 0, r * factor);
      require(std::equal(rows[r].begin(), rows[r].end(), wanted.begin(), wanted.end()),
              "the values of a rank");
    }
    auto const equal_rows = gathered_rows(comm, values_from(rank, 0, factor));
    require(equal_rows.values().size() == factor * ranks, "as many of every rank");
    for (std::size_t r = 0; r != ranks; ++r) {
      auto const wanted = values_from(r, 0, factor);
      require(std::equal(wanted.begin(), wanted.end(), equal_rows[r].begin()), "equal counts");
    }
  }
}

template <class Comm>
void exchange_values(Comm& comm) {
  std::size_t const rank = static_cast<std::size_t>(comm.rank());
  std::size_t const ranks = static_cast<std::size_t>(comm.size());
  for (std::uint64_t seed = 0; seed != 50; ++seed) {
    random_amounts random(seed);
    std::vector<std::size_t> counts(ranks * ranks);
    for (auto& count : counts) {
      count = static_cast<std::size_t>(random.heavy_tail(seed % 5 == 0 ? 20'000 : 50));
    }
    std::vector<std::uint32_t> sent;
    for (std::size_t to = 0; to != ranks; ++to) {
      auto const values = values_from(rank, to, counts[rank * ranks + to]);
      sent.insert(sent.end(), values.begin(), values.end());
    }
    std::vector<std::uint64_t> send_counts;
    std::vector<std::uint64_t> receive_counts;
    for (std::size_t other = 0; other != ranks; ++other) {
      send_counts.push_back(counts[rank * ranks + other]);
      receive_counts.push_back(counts[other * ranks + rank]);
    }
    auto const rows = exchanged_rows(comm, sent, send_counts, receive_counts);
    require(rows.size() == ranks, "a row from every rank");
    for (std::size_t from = 0; from != ranks; ++from) {
      auto const wanted = values_from(from, rank, counts[from * ranks + rank]);
      require(std::equal(rows[from].begin(), rows[from].end(), wanted.begin(), wanted.end()),
              "what a rank has sent");
    }
  }
}

/// What is sent in pieces arrives in others, whatever their sizes.
template <class Comm>
void exchange_pieces(Comm& comm) {
  std::size_t const rank = static_cast<std::size_t>(comm.rank());
  std::size_t const ranks = static_cast<std::size_t>(comm.size());
  for (std::uint64_t seed = 0; seed != 50; ++seed) {
    random_amounts random(seed);
    std::vector<std::size_t> counts(ranks * ranks);
    for (auto& count : counts) count = static_cast<std::size_t>(random.heavy_tail(3000));
    random_amounts own(seed * 100 + rank);
    // Cuts a message into random pieces, some of them empty.
    auto const cut = [&](auto message, auto& pieces) {
      std::uint64_t made = 0;
      while (!message.empty()) {
        auto const most = static_cast<std::int64_t>(message.size());
        auto const size = static_cast<std::size_t>(own.heavy_tail(most));
        pieces.push_back(message.first(size));
        message = message.subspan(size);
        ++made;
      }
      return made;
    };
    std::vector<std::vector<std::uint32_t>> sent;
    std::vector<std::vector<std::uint32_t>> received;
    for (std::size_t other = 0; other != ranks; ++other) {
      sent.push_back(values_from(rank, other, counts[rank * ranks + other]));
      received.emplace_back(counts[other * ranks + rank]);
    }
    std::vector<omnibal::sent_piece> sent_pieces;
    std::vector<omnibal::received_piece> received_pieces;
    std::vector<std::uint64_t> send_counts;
    std::vector<std::uint64_t> receive_counts;
    for (std::size_t other = 0; other != ranks; ++other) {
      send_counts.push_back(cut(std::as_bytes(std::span(sent[other])), sent_pieces));
      receive_counts.push_back(
          cut(std::as_writable_bytes(std::span(received[other])), received_pieces));
    }
    comm.all_to_all_pieces(sent_pieces, send_counts, received_pieces, receive_counts);
    for (std::size_t from = 0; from != ranks; ++from) {
      require(received[from] == values_from(from, rank, counts[from * ranks + rank]),
              "what a rank has sent in pieces");
    }
  }
}

template <class Comm>
void compare_values(Comm& comm) {
  auto const rank = static_cast<std::uint64_t>(comm.rank());
  require(omnibal::all_equal(comm, 17), "equal values");
  require(omnibal::all_equal(comm, rank) == (comm.size() == 1), "different values");
  // Only the last rank differs.
  bool const is_last = rank + 1 == static_cast<std::uint64_t>(comm.size());
  require(omnibal::all_equal(comm, is_last ? 1 : 2) == (comm.size() == 1), "one different value");
}

/// The lengths of the samples of a rank; some ranks have none.
inline std::vector<omnibal::resources<3>> lengths_of_rank(std::uint64_t seed, std::size_t rank) {
  random_amounts random(seed * 100 + rank);
  std::vector<omnibal::resources<3>> result(
      static_cast<std::size_t>(rank % 3 == 1 ? 0 : random.between(0, 40)));
  for (auto& lengths : result) {
    for (auto& length : lengths.amounts) length = random.heavy_tail(std::int64_t{1} << 40);
  }
  return result;
}

template <class Comm>
void gather_all_lengths(Comm& comm) {
  std::size_t const rank = static_cast<std::size_t>(comm.rank());
  auto const first = [](auto const& lengths) { return lengths[0]; };
  omnibal::gather_lengths_workspace<3> workspace;
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    auto const local = lengths_of_rank(seed, rank);
    auto const rows = omnibal::gather_lengths(comm, local);
    auto const at_once = omnibal::gather_lengths(comm, local, std::identity{}, {.max_samples = 40});
    auto const firsts = omnibal::gather_lengths(comm, local, first);
    require(omnibal::gather_lengths(comm, local, std::identity{}, {.max_samples = 41}, workspace) ==
                rows,
            "the same in a workspace");
    require(at_once == rows, "one collective and two give the same");
    require(rows.size() == static_cast<std::size_t>(comm.size()), "a row of every rank");
    for (std::size_t r = 0; r != rows.size(); ++r) {
      auto const wanted = lengths_of_rank(seed, r);
      require(std::equal(rows[r].begin(), rows[r].end(), wanted.begin(), wanted.end()),
              "the lengths of a rank");
      require(firsts[r].size() == wanted.size(), "one length of each sample");
      for (std::size_t i = 0; i != wanted.size(); ++i) {
        require(firsts[r][i] == wanted[i][0], "the first length");
      }
    }
  }
}

/// An error on the last rank is one on all, and afterwards all go on.
template <class Comm>
void agree_on_bad_lengths(Comm& comm) {
  bool const is_last = comm.rank() + 1 == comm.size();
  std::vector<int> const local{3, 4};
  auto const check = [&](auto const& call) {
    seen const wanted = is_last ? seen::own : seen::remote;
    seen const found = error_of<std::invalid_argument, omnibal::communication_error>(call);
    require(found == wanted, "an error on all ranks");
    require(omnibal::all_equal(comm, 1), "the next call succeeds");
  };
  for (bool const is_known : {false, true}) {
    omnibal::gather_lengths_options options;
    if (is_known) options.max_samples = 2;
    auto const negative = [&](int length) { return is_last ? -length : length; };
    check([&] { static_cast<void>(omnibal::gather_lengths(comm, local, negative, options)); });
    auto const too_large = [&](int) { return is_last ? std::uint64_t{1} << 63 : std::uint64_t{1}; };
    check([&] { static_cast<void>(omnibal::gather_lengths(comm, local, too_large, options)); });
    auto const throwing = [&](int length) {
      if (is_last) throw std::invalid_argument("no length");
      return length;
    };
    check([&] { static_cast<void>(omnibal::gather_lengths(comm, local, throwing, options)); });
  }
  std::vector<int> const too_many{1, 2, 3};
  check([&] {
    static_cast<void>(omnibal::gather_lengths(comm, is_last ? too_many : local, std::identity{},
                                              {.max_samples = 2}));
  });
}

/// What all ranks give may change, and is an error on all of them where one gives another.
template <class Comm>
void agree_on_most_samples(Comm& comm) {
  bool const is_last = comm.rank() + 1 == comm.size();
  std::vector<int> const local{3, 4};
  omnibal::gather_lengths_workspace<1> kept;
  auto const gather = [&](std::size_t most) {
    auto const& rows =
        omnibal::gather_lengths(comm, local, std::identity{}, {.max_samples = most}, kept);
    require(rows.values().size() == 2 * static_cast<std::size_t>(comm.size()), "all lengths");
  };
  for (std::size_t const most : {std::size_t{4}, std::size_t{4}, std::size_t{2}}) {
    gather(most);
    if (comm.size() == 1) continue;
    for (std::size_t const other : {std::size_t{8}, std::size_t{3}, std::size_t{100'000}}) {
      try {
        gather(is_last ? other : most);
        require(false, "another number on one rank");
      } catch (std::invalid_argument const& error) {
        std::string const wanted = "omnibal::gather_lengths: ranks 0 and " +
                                   std::to_string(comm.size() - 1) +
                                   " have different options.max_samples: " + std::to_string(most) +
                                   " and " + std::to_string(other);
        require(error.what() == wanted, error.what());
      }
      require(omnibal::all_equal(comm, 1), "the next call succeeds");
    }
  }
  // The other ranks learn why.
  auto const negative = [&](int length) { return is_last ? -length : length; };
  try {
    static_cast<void>(omnibal::gather_lengths(comm, local, negative));
    require(false, "a negative length");
  } catch (std::exception const& error) {
    std::string const own = "length[0] is -3";
    std::string const text = error.what();
    require(text.find(own) != std::string::npos, text);
    std::string const of_other = "rank " + std::to_string(comm.size() - 1) + " has failed: " + own;
    require(is_last || text.find(of_other) != std::string::npos, text);
  }
}

/// Calls `run(body)` for every body that a communicator must satisfy.
template <class Run>
void for_each_comm_body(Run const& run) {
  run("gather_values", [](auto& comm) { gather_values(comm); });
  run("exchange_values", [](auto& comm) { exchange_values(comm); });
  run("exchange_pieces", [](auto& comm) {
    if constexpr (omnibal::piecewise_communicator<decltype(comm)>) exchange_pieces(comm);
  });
  run("compare_values", [](auto& comm) { compare_values(comm); });
  run("gather_all_lengths", [](auto& comm) { gather_all_lengths(comm); });
  run("agree_on_bad_lengths", [](auto& comm) { agree_on_bad_lengths(comm); });
  run("agree_on_most_samples", [](auto& comm) { agree_on_most_samples(comm); });
}

}  // namespace test
