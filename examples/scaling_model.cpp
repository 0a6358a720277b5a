// SPDX-License-Identifier: Apache-2.0
// What post-balancing costs on many ranks, by a model and not by measurement: the table of
// docs/evidence/benchmarks.md.
//
// usage: scaling_model

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <initializer_list>

namespace {

struct assumptions {
  /// Samples of a rank, numbers that are gathered of each, bytes that each carries.
  double samples = 16;
  double numbers = 2;
  double sample_bytes = 1e6;
  /// The share of the bytes that change their rank.
  double moved = 0.2;
  /// What an adapter of 200 Gbit/s moves each way, and the time that a step of a collective takes.
  double bytes_per_second = 25e9;
  double seconds_per_step = 5e-6;
  double slot_bytes = 256 * 1024;
  /// The standard deviation of the cost of a sample, over its mean.
  double spread = 1.5;
};

/// Bytes and microseconds that a rank spends on a step of the way.
class model {
 public:
  model(assumptions const& given, double ranks) : given_(given), ranks_(ranks) {}

  /// A header and the numbers of all samples of all ranks.
  [[nodiscard]] double gathered_bytes() const {
    return 8 * ranks_ * (1 + given_.numbers * given_.samples);
  }
  [[nodiscard]] double gather_in_ring() const { return time(ranks_ - 1, gathered_bytes()); }
  [[nodiscard]] double gather_in_tree() const {
    return time(std::ceil(std::log2(ranks_)), gathered_bytes());
  }
  /// What comes to the host before an exact exchange.
  [[nodiscard]] double size_bytes() const { return 24 * ranks_ + 16; }
  [[nodiscard]] double exact_bytes() const {
    return given_.moved * given_.samples * given_.sample_bytes;
  }
  [[nodiscard]] double exact_exchange() const { return time(1, exact_bytes()); }
  [[nodiscard]] double bounded_bytes() const { return given_.slot_bytes * (ranks_ - 1); }
  [[nodiscard]] double bounded_exchange() const { return time(1, bounded_bytes()); }

  /// How much the largest load of groups of so many ranks is above the mean, in percent.
  [[nodiscard]] double excess_of_groups(double group) const {
    double const groups = ranks_ / group;
    if (groups <= 1) return 0;
    return 100 * given_.spread * std::sqrt(2 * std::log(groups) / (group * given_.samples));
  }

 private:
  [[nodiscard]] double time(double steps, double bytes) const {
    return 1e6 * (steps * given_.seconds_per_step + bytes / given_.bytes_per_second);
  }

  assumptions given_;
  double ranks_;
};

/// A line of the table: `value(model)` for each number of ranks, divided by `unit`.
template <class Value>
void print_line(char const* name, double unit, Value const& value) {
  std::printf("%-44s", name);
  for (double const ranks : {8.0, 64.0, 512.0, 1024.0, 10'000.0}) {
    double const amount = value(model({}, ranks)) / unit;
    std::printf(" %10.*f", amount < 10 ? 2 : amount < 100 ? 1 : 0, amount);
  }
  std::printf("\n");
}

}  // namespace

int main() {
  std::printf("%-44s %10d %10d %10d %10d %10d\n", "ranks", 8, 64, 512, 1024, 10'000);
  print_line("gather, kB received by a rank", 1e3, [](auto m) { return m.gathered_bytes(); });
  print_line("gather in a ring, us", 1, [](auto m) { return m.gather_in_ring(); });
  print_line("gather in a tree, us", 1, [](auto m) { return m.gather_in_tree(); });
  print_line("exact: sizes to the host, kB", 1e3, [](auto m) { return m.size_bytes(); });
  print_line("exact: exchange, MB sent by a rank", 1e6, [](auto m) { return m.exact_bytes(); });
  print_line("exact: exchange, us", 1, [](auto m) { return m.exact_exchange(); });
  print_line("bounded: exchange, MB sent by a rank", 1e6, [](auto m) { return m.bounded_bytes(); });
  print_line("bounded: exchange, us", 1, [](auto m) { return m.bounded_exchange(); });
  print_line("groups of 8: largest load above the mean, %", 1,
             [](auto m) { return m.excess_of_groups(8); });
  print_line("groups of 64", 1, [](auto m) { return m.excess_of_groups(64); });
  print_line("groups of 256", 1, [](auto m) { return m.excess_of_groups(256); });
  print_line("groups of 1,024", 1, [](auto m) { return m.excess_of_groups(1024); });
}
