// SPDX-License-Identifier: Apache-2.0
// A trainer's own process group as a communicator: docs/guides/distributed.md.

#include "plans/trainer_group.hpp"

#include <omnibal/comm/communicator.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

class trainer_communicator {
 public:
  explicit trainer_communicator(trainer::process_group const& group) : group_(&group) {}

  int rank() const { return group_->rank(); }
  int size() const { return group_->world_size(); }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) const {
    group_->gather(in.data(), in.size(), out.data());
  }

  // Without such a collective: messages. Of two ranks the lower one sends first, so that nobody
  // waits in a circle, also where `send` waits for the receiver.
  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) const {
    for (int other = 0; other != size(); ++other) {
      auto const index = static_cast<std::size_t>(other);
      auto const sent = take(in, send_counts[index]);
      auto const received = take(out, receive_counts[index]);
      if (other == rank()) std::ranges::copy(sent, received.begin());
      if (rank() < other) group_->send(other, sent.data(), sent.size());
      if (rank() != other) group_->receive(other, received.data(), received.size());
      if (rank() > other) group_->send(other, sent.data(), sent.size());
    }
  }

 private:
  template <class Byte>
  static std::span<Byte> take(std::span<Byte>& bytes, std::uint64_t count) {
    auto const first = bytes.first(count);
    bytes = bytes.subspan(count);
    return first;
  }

  trainer::process_group const* group_;
};

static_assert(omnibal::exchanging_communicator<trainer_communicator>);

int main() {
  trainer::process_group::launch(3, [](trainer::process_group const& group) {
    trainer_communicator comm(group);
    // The numbers of tokens of what each rank has read; one of them has read nothing.
    std::vector<std::int64_t> const read[] = {{900, 300, 300, 100}, {}, {500, 200, 100}};
    std::vector<std::int64_t> const& local = read[group.rank()];
    auto const tokens = [](std::int64_t count) { return count; };

    auto const plan = omnibal::plan_exchange(comm, local, tokens, tokens);
    auto const mine = omnibal::exchange_samples(comm, plan, local);
    auto const again = omnibal::exchange_samples(comm, plan.inverse(), mine);

    if (group.rank() != 0) return;
    std::printf("rank 0 trains");
    for (std::int64_t const count : mine) std::printf(" %d", static_cast<int>(count));
    std::printf("\n%d of 2400 tokens change their rank\n", static_cast<int>(plan.moved_bytes()));
    std::printf("the inverse brings %s back\n", again == local ? "everything" : "something else");
  });
}
