// SPDX-License-Identifier: Apache-2.0
/// \file
/// Samples that change their rank over MPI, beside a bare `MPI_Alltoallv` of the same bytes in the
/// same run, where all samples leave; and what balancing costs in a step of training. To be run by
/// mpirun: see docs/evidence/benchmarks.md.

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/mpi.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/rng/permutation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <mpi.h>

namespace {

namespace mpi = omnibal::mpi;

/// The seconds from when all ranks begin until all are done.
template <class Call>
double seconds_of(mpi::communicator const& comm, Call const& call) {
  MPI_Barrier(comm.get());
  double const begin = MPI_Wtime();
  call();
  MPI_Barrier(comm.get());
  return MPI_Wtime() - begin;
}

double median(std::vector<double> values) {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Each rank gets samples of all others and keeps none, in a random order; of one rank all stay.
omnibal::exchange_plan scattering_plan(std::size_t ranks, std::uint32_t samples_of_rank) {
  auto const scatter = [&](auto const&, std::size_t parts, auto const&) {
    omnibal::rng::permutation const order(samples_of_rank, 1);
    omnibal::grouping result;
    for (std::size_t to = 0; to != parts; ++to) {
      for (std::uint32_t i = 0; i != samples_of_rank; ++i) {
        auto const sample = static_cast<std::uint32_t>(order(i));
        std::size_t const step = parts == 1 ? 0 : 1 + sample % (parts - 1);
        std::size_t const from = (to + parts - step) % parts;
        result.push(static_cast<std::uint32_t>(from) * samples_of_rank + sample);
      }
      result.close();
    }
    return result;
  };
  std::vector<std::uint32_t> offsets;
  for (std::size_t rank = 0; rank <= ranks; ++rank) {
    offsets.push_back(static_cast<std::uint32_t>(rank) * samples_of_rank);
  }
  // Without bytes the placement leaves the parts where they are.
  std::vector<int> const nothing(offsets.back(), 0);
  return omnibal::make_plan(offsets, nothing, nothing, {}, scatter);
}

/// `MPI_Alltoallv` of as many bytes from each rank to each as samples bring.
class bare_exchange {
 public:
  bare_exchange(mpi::communicator const& comm, omnibal::exchange_plan const& plan,
                std::size_t row_bytes)
      : comm_(comm.get()) {
    send_.fill(plan.send_counts(comm.rank()), row_bytes);
    receive_.fill(plan.receive_counts(comm.rank()), row_bytes);
  }

  void operator()() {
    mpi::detail::check(MPI_Alltoallv(send_.bytes.data(), send_.counts.data(), send_.places.data(),
                                     MPI_BYTE, receive_.bytes.data(), receive_.counts.data(),
                                     receive_.places.data(), MPI_BYTE, comm_),
                       "MPI_Alltoallv");
  }

 private:
  struct side {
    std::vector<int> counts;
    std::vector<int> places;
    std::vector<std::byte> bytes;

    void fill(std::vector<std::uint64_t> const& rows, std::size_t row_bytes) {
      int place = 0;
      for (std::uint64_t const row_count : rows) {
        places.push_back(place);
        counts.push_back(static_cast<int>(row_count * row_bytes));
        place += counts.back();
      }
      bytes.assign(static_cast<std::size_t>(place), std::byte{1});
    }
  };

  MPI_Comm comm_;
  side send_;
  side receive_;
};

struct timing {
  double seconds;
  /// The time of the call over that of the bare exchange: the median of the rounds.
  double ratio;
};

template <class Call>
timing compare(mpi::communicator const& comm, bare_exchange& bare, int rounds, Call const& call) {
  // The first calls take memory and make connections.
  bare();
  call();
  std::vector<double> seconds;
  std::vector<double> ratios;
  for (int round = 0; round != rounds; ++round) {
    double const of_bare = seconds_of(comm, [&] { bare(); });
    seconds.push_back(seconds_of(comm, call));
    ratios.push_back(seconds.back() / of_bare);
  }
  return {median(seconds), median(ratios)};
}

struct promise {
  std::size_t from_bytes;
  double max_ratio;
};

/// Prints a row; false where the promise is missed.
bool report(mpi::communicator const& comm, std::string const& name, std::size_t bytes,
            timing const& found, promise const& made) {
  if (comm.rank() != 0) return true;
  bool const is_promised = bytes >= made.from_bytes && comm.size() > 1;
  bool const is_held = !is_promised || found.ratio <= made.max_ratio;
  std::printf("| %s | %zu | %.3f | %.2f | ", name.c_str(), bytes, 1e3 * found.seconds, found.ratio);
  if (is_promised) {
    std::printf("%.2f | %s |\n", made.max_ratio, is_held ? "held" : "MISSED");
  } else {
    std::printf(" | |\n");
  }
  return is_held;
}

bool run(mpi::communicator& comm, bool is_quick) {
  if (comm.rank() == 0) {
    std::printf("%zu processes; bytes are those that each of them sends.\n\n", comm.size());
    std::printf(
        "| call | bytes | ms | / MPI_Alltoallv | promised | |\n|---|---|---|---|---|---|\n");
  }
  constexpr std::size_t row_bytes = 65'536;
  struct block {
    std::byte bytes[row_bytes];
  };
  promise const no_promise{std::numeric_limits<std::size_t>::max(), 0.0};
  // What comes from more than one rank is put into its places by one more copy.
  promise const of_samples{std::size_t{64} << 20, comm.size() == 2 ? 1.3 : 2.0};
  bool is_held = true;
  for (std::size_t const most : {std::size_t{1} << 20, std::size_t{64} << 20}) {
    if (is_quick && most > (std::size_t{1} << 20)) continue;
    auto const samples = static_cast<std::uint32_t>(most / row_bytes);
    auto const plan = scattering_plan(comm.size(), samples);
    bare_exchange bare(comm, plan, row_bytes);
    std::vector<block> const local(samples);
    omnibal::ragged<std::byte> rows;
    for (std::uint32_t i = 0; i != samples; ++i) {
      rows.push(std::vector<std::byte>(row_bytes, std::byte{1}));
    }
    std::vector<block> out;
    omnibal::ragged<std::byte> out_rows;
    omnibal::exchange_samples_workspace workspace;
    auto const bytes_of = [&](std::vector<std::uint64_t> counts) {
      for (std::uint64_t& count : counts) count *= row_bytes;
      return counts;
    };
    auto const send_counts = bytes_of(plan.send_counts(comm.rank()));
    auto const receive_counts = bytes_of(plan.receive_counts(comm.rank()));
    std::vector<std::byte> const sent(most, std::byte{1});
    std::vector<std::byte> received(most);
    int const rounds = is_quick ? 3 : 31;

    // What each copy costs that collects samples or puts them into their places.
    auto const copied =
        compare(comm, bare, rounds, [&] { std::memcpy(received.data(), sent.data(), most); });
    is_held &= report(comm, "one copy of the bytes", most, copied, no_promise);
    auto const plain = compare(comm, bare, rounds, [&] {
      comm.all_to_all_v(sent, send_counts, received, receive_counts);
    });
    is_held &=
        report(comm, "mpi::communicator::all_to_all_v", most, plain, {std::size_t{64} << 20, 1.5});
    auto const fixed = compare(
        comm, bare, rounds, [&] { omnibal::exchange_samples(comm, plan, local, out, workspace); });
    is_held &= report(comm, "exchange_samples, one size", most, fixed, of_samples);
    auto const sized = compare(comm, bare, rounds, [&] {
      omnibal::exchange_samples(comm, plan, rows, out_rows, workspace);
    });
    is_held &= report(comm, "exchange_samples, any size", most, sized, of_samples);
  }
  return is_held;
}

/// What a rank has drawn: documents of 100 to 12,800 tokens, of which a third are patches of
/// images.
struct drawn_samples {
  omnibal::ragged<std::int32_t> tokens;
  omnibal::ragged<std::int32_t> labels;
  omnibal::ragged<std::byte> pixels;
};

drawn_samples draw(std::size_t rank, std::size_t samples) {
  constexpr std::size_t patch_bytes = 1176;
  omnibal::rng::permutation const order(128, rank);
  drawn_samples drawn;
  for (std::size_t i = 0; i != samples; ++i) {
    std::size_t const chosen = order(i);
    std::size_t const length = (100 + chosen % 16 * 6) << chosen / 16;
    drawn.tokens.push(std::vector<std::int32_t>(length));
    drawn.labels.push(std::vector<std::int32_t>(length));
    drawn.pixels.push(std::vector<std::byte>(length / 3 * patch_bytes));
  }
  return drawn;
}

/// The seconds of a forward and a backward pass: a model of 7 * 10^9 parameters, 32 layers and a
/// width of 4096, on a device that does 400 * 10^12 operations in a second.
double step_seconds(omnibal::ragged<std::int32_t> const& tokens) {
  double operations = 0;
  for (auto const row : tokens) {
    auto const length = static_cast<double>(row.size());
    operations += 6 * 7e9 * length + 12 * 32 * 4096.0 * length * length;
  }
  return operations / 400e12;
}

/// All that a step does besides training: lengths are gathered, all make a plan and compare it, the
/// fields of all samples move, and a loss of each goes back. Times are the least of the rounds:
/// what other work on the machine adds is not balancing.
void run_steps(mpi::communicator& comm, int rounds) {
  if (comm.rank() == 0) {
    std::printf(
        "\n| samples of a rank | MB that move | gather, plan, agree: ms | exchange: ms | "
        "losses back: ms | step: ms | share |\n|---|---|---|---|---|---|---|\n");
  }
  omnibal::exchange_samples_workspace workspace;
  for (std::size_t const samples : {1u, 2u, 4u, 8u, 32u}) {
    drawn_samples const local = draw(comm.rank(), samples);
    drawn_samples mine;
    std::vector<float> own_losses;
    auto const work = [](auto const& row) {
      auto const length = static_cast<std::int64_t>(row.size());
      return length + length * length / 26'700;
    };
    auto const bytes = [](auto const& row) { return 400 * row.size(); };
    omnibal::exchange_plan plan;
    std::vector<double> times[3];
    for (int round = 0; round != rounds; ++round) {
      times[0].push_back(seconds_of(
          comm, [&] { plan = omnibal::plan_exchange(comm, local.tokens, work, bytes); }));
      times[1].push_back(seconds_of(comm, [&] {
        omnibal::exchange_samples(comm, omnibal::agreed(plan),
                                  std::tie(local.tokens, local.labels, local.pixels),
                                  std::tie(mine.tokens, mine.labels, mine.pixels), workspace);
      }));
      std::vector<float> const losses(mine.tokens.size(), 1.0F);
      auto const inverse = plan.inverse();
      times[2].push_back(seconds_of(comm, [&] {
        omnibal::exchange_samples(comm, omnibal::agreed(inverse), losses, own_losses, workspace);
      }));
    }
    double step = 0;
    for (double const seconds : omnibal::all_gather(comm, step_seconds(mine.tokens))) {
      step = std::max(step, seconds);
    }
    if (comm.rank() != 0) continue;
    double overhead = 0;
    std::printf("| %zu | %.1f |", samples, 1e-6 * static_cast<double>(plan.moved_bytes()));
    for (auto const& of_part : times) {
      double const least = *std::min_element(of_part.begin(), of_part.end());
      overhead += least;
      std::printf(" %.3f |", 1e3 * least);
    }
    std::printf(" %.0f | %.2f %% |\n", 1e3 * step, 100 * overhead / (step + overhead));
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool const is_quick = argc > 1 && std::string(argv[1]) == "--quick";
  mpi::environment const environment(argc, argv);
  try {
    mpi::communicator comm;
    bool const is_held = run(comm, is_quick);
    run_steps(comm, is_quick ? 3 : 31);
    return is_held ? 0 : 1;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "mpi_timings: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 1;
}
