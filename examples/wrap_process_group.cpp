// A trainer's own process group as a communicator: docs/post_balancing.md.

#include "support/trainer_group.hpp"

#include <omnibal/comm/communicator.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

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
    for (int to = 0; to != size(); ++to) group_->send(to, in.data(), in.size());
    for (int from = 0; from != size(); ++from) {
      group_->receive(from, out.data(), in.size());
      out = out.subspan(in.size());
    }
  }

  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) const {
    for (int to = 0; std::uint64_t const bytes : send_counts) {
      group_->send(to++, in.data(), bytes);
      in = in.subspan(bytes);
    }
    for (int from = 0; std::uint64_t const bytes : receive_counts) {
      group_->receive(from++, out.data(), bytes);
      out = out.subspan(bytes);
    }
  }

 private:
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
