#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/orchestrate.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <vector>

#include <catch.hpp>

namespace {

/// One rank that counts its collectives.
class counting_rank {
 public:
  static std::size_t rank() { return 0; }
  static std::size_t size() { return 1; }
  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) {
    ++count_;
    omnibal::self_communicator{}.all_gather(in, out);
  }
  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) {
    ++count_;
    omnibal::self_communicator{}.all_to_all_v(in, send_counts, out, receive_counts);
  }

  template <class Call>
  std::size_t collectives_of(Call const& call) {
    count_ = 0;
    call(*this);
    return count_;
  }

 private:
  std::size_t count_ = 0;
};

}  // namespace

TEST_CASE("collective calls take as few collectives as they promise") {
  counting_rank comm;
  std::vector<std::int64_t> const lengths{5, 3, 9};
  auto const as_is = [](std::int64_t length) { return length; };
  CHECK(comm.collectives_of([&](auto& c) { (void)omnibal::gather_lengths(c, lengths); }) == 2);
  omnibal::gather_lengths_workspace<1> workspace;
  auto const gather_at_once = [&](auto& c) {
    (void)omnibal::gather_lengths(c, lengths, std::identity{}, {.most_samples = 4}, workspace);
  };
  CHECK(comm.collectives_of(gather_at_once) == 2);
  CHECK(comm.collectives_of(gather_at_once) == 1);
  CHECK(comm.collectives_of(
            [&](auto& c) { (void)omnibal::plan_exchange(c, lengths, as_is, as_is); }) == 3);
  auto const plan = omnibal::plan_exchange(comm, lengths, as_is, as_is);
  CHECK(comm.collectives_of([&](auto& c) { (void)omnibal::exchange_samples(c, plan, lengths); }) ==
        2);
  omnibal::ragged<char> rows;
  for (std::int64_t const length : lengths) {
    rows.push(std::vector<char>(static_cast<std::size_t>(length)));
  }
  CHECK(comm.collectives_of([&](auto& c) { (void)omnibal::exchange_samples(c, plan, rows); }) == 3);
  auto const pieces = [](std::int64_t) { return std::vector<std::int64_t>{1, 2}; };
  std::tuple const encoders{omnibal::encoder_phase{pieces, as_is, as_is, as_is},
                            omnibal::encoder_phase{pieces, as_is, as_is, as_is}};
  CHECK(comm.collectives_of([&](auto& c) {
    (void)omnibal::orchestrate(c, lengths, omnibal::language_phase{as_is, as_is}, encoders);
  }) == 3);
}
