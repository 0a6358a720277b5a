// SPDX-License-Identifier: Apache-2.0
// Samples that are of another size each time they are asked: an error, never a crash.

#include "error_text.hpp"

#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

/// Two values, after `honest` calls eight or none.
class changing {
 public:
  changing(int honest, std::size_t then) : honest_(honest), then_(then) {}

  [[nodiscard]] int const* begin() const { return values_.data(); }
  [[nodiscard]] int const* end() const { return values_.data() + (++asked_ > honest_ ? then_ : 2); }

 private:
  std::vector<int> values_ = std::vector<int>(8, 1);
  int honest_;
  std::size_t then_;
  mutable int asked_ = 0;
};

}  // namespace

TEST_CASE("exchange_samples refuses a sample that changes its size") {
  std::vector<std::uint32_t> const homes{0, 3};
  std::vector<int> const ones(3, 1);
  auto const plan = omnibal::make_plan(homes, ones, ones);
  for (std::size_t const then : {std::size_t{8}, std::size_t{0}}) {
    std::vector<changing> const samples{{9, 2}, {1, then}, {9, 2}};
    std::string const error = test::error_text<std::invalid_argument>([&] {
      omnibal::self_communicator comm;
      static_cast<void>(omnibal::exchange_samples(comm, plan, samples));
    });
    CHECK(error == "omnibal::exchange_samples: fields[0][1] has " + std::to_string(then) +
                       " values, must have 2");
  }
}

TEST_CASE("exchange_samples survives samples that change between ranks") {
  // Two of the three samples of rank 0 have to leave.
  std::vector<std::uint32_t> const homes{0, 3, 3, 3};
  std::vector<int> const ones(3, 1);
  auto const plan = omnibal::make_plan(homes, ones, ones);
  for (int honest = 0; honest != 4; ++honest) {
    for (std::size_t const then : {std::size_t{8}, std::size_t{0}}) {
      bool refused = false;
      try {
        omnibal::thread_communicator::run(3, [&](auto& comm) {
          std::vector<changing> const samples(comm.rank() == 0 ? 3 : 0, changing(honest, then));
          auto const result = omnibal::exchange_samples(comm, plan, samples);
          static_cast<void>(result);
        });
      } catch (std::exception const&) {
        refused = true;
      }
      // A sample is asked twice: for its size and for its values.
      CHECK(refused == (honest == 1));
    }
  }
}
