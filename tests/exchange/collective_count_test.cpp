// SPDX-License-Identifier: Apache-2.0
#include "rank_checks.hpp"
#include "samples.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>
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

/// A rank that counts its collectives.
template <class Comm = omnibal::self_communicator>
class counting_rank {
 public:
  explicit counting_rank(Comm const& comm = {}) : comm_(comm) {}

  std::size_t rank() const { return comm_.rank(); }
  std::size_t size() const { return comm_.size(); }
  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) {
    ++count_;
    comm_.all_gather(in, out);
  }
  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) {
    ++count_;
    comm_.all_to_all_v(in, send_counts, out, receive_counts);
  }

  template <class Call>
  std::size_t collectives_of(Call const& call) {
    count_ = 0;
    call(*this);
    return count_;
  }

 private:
  Comm comm_;
  std::size_t count_ = 0;
};

struct image {
  std::uint64_t number;
  std::int64_t patches;
};

struct mixed {
  std::uint64_t number;
  std::int64_t tokens;
  std::vector<image> images;
};

/// Evenly, all on one rank, more and more, or images on every other rank only.
std::vector<mixed> draw(int kind, std::size_t rank) {
  test::random_amounts random(10 * rank + static_cast<std::size_t>(kind));
  std::size_t const counts[] = {6, rank == 0 ? std::size_t{20} : 0, rank, 5};
  std::vector<mixed> drawn;
  for (std::size_t i = 0; i != counts[kind]; ++i) {
    auto& sample = drawn.emplace_back(mixed{1000 * rank + i, random.between(1, 300), {}});
    if (kind == 3 && rank % 2 == 1) continue;
    for (auto left = random.between(0, 3); left != 0; --left) {
      sample.images.push_back({10 * sample.number + sample.images.size(), random.between(1, 64)});
    }
  }
  return drawn;
}

/// The bytes of a token, of a patch and of an output; an output has a token for four patches.
constexpr std::int64_t of_token = 2 * 4 + 3 * 8;
constexpr std::int64_t of_patch = 12;
constexpr std::int64_t of_output = 16;

/// A step with an encoder: the plans, the fields of samples and of images, the outputs, their
/// gradients and the losses.
template <class Comm>
void step_with_encoder(Comm& comm, std::vector<mixed> const& drawn) {
  using omnibal::agreed;
  using omnibal::exchange_samples;
  using omnibal::sized_field;
  omnibal::language_phase const language{[](mixed const& s) { return s.tokens * s.tokens; },
                                         [](mixed const& s) { return s.tokens * of_token; }};
  omnibal::encoder_phase const vision{
      &mixed::images, &image::patches, [](image const& i) { return i.patches * of_patch; },
      [](image const& i) { return (i.patches / 4 + 1) * of_output; }};
  auto const plans = omnibal::orchestrate(comm, drawn, language, std::tuple{vision});
  auto const& samples = plans.samples;
  auto const& inputs = plans.encoders[0].inputs;
  auto const& outputs = plans.encoders[0].outputs;

  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::vector<std::int32_t>> labels;
  std::vector<std::vector<std::int64_t>> positions;
  std::vector<std::uint64_t> numbers;
  std::vector<std::vector<float>> pixels;
  std::vector<std::uint64_t> images;
  for (mixed const& sample : drawn) {
    auto const tokens = static_cast<std::size_t>(sample.tokens);
    ids.emplace_back(tokens, static_cast<std::int32_t>(sample.number));
    labels.emplace_back(tokens, -static_cast<std::int32_t>(sample.number));
    positions.emplace_back(3 * tokens, static_cast<std::int64_t>(sample.number));
    numbers.push_back(sample.number);
    for (image const& i : sample.images) {
      pixels.emplace_back(3 * i.patches, static_cast<float>(i.number));
      images.push_back(i.number);
    }
  }
  auto const tokens_of = [&](std::uint32_t s) { return samples.bytes()[s] / of_token; };
  auto const places_of = [&](std::uint32_t s) { return 3 * tokens_of(s); };
  auto const [my_ids, my_labels, my_positions, my_numbers] =
      exchange_samples(comm, agreed(samples), sized_field{ids, tokens_of},
                       sized_field{labels, tokens_of}, sized_field{positions, places_of}, numbers);
  auto const pixels_of = [&](std::uint32_t i) { return inputs.bytes()[i] / 4; };
  auto const [my_pixels, my_images] =
      exchange_samples(comm, agreed(inputs), sized_field{pixels, pixels_of}, images);

  std::vector<std::vector<float>> encoded;
  for (auto const& one : my_pixels) encoded.emplace_back((one.size() / 12 + 1) * 4, one[0]);
  auto const values_of = [&](std::uint32_t i) { return outputs.bytes()[i] / 4; };
  auto const [embeddings, of_images] =
      exchange_samples(comm, agreed(outputs), sized_field{encoded, values_of}, my_images);
  auto const offsets = plans.encoders[0].pieces_of_samples(samples, comm.rank());
  test::require(embeddings.size() == offsets.back(), "all outputs have a sample");
  for (std::size_t k = 0; k != my_numbers.size(); ++k) {
    auto const number = static_cast<std::int32_t>(my_numbers[k]);
    test::require(my_ids[k].at(0) == number && my_labels[k].at(0) == -number, "tokens");
    test::require(my_positions[k].size() == 3 * my_ids[k].size(), "positions");
    for (std::uint32_t p = offsets[k]; p != offsets[k + 1]; ++p) {
      test::require(of_images[p] / 10 == my_numbers[k], "an image of the sample");
      test::require(embeddings[p].at(0) == static_cast<float>(of_images[p]), "its output");
    }
  }

  auto const back = outputs.inverse();
  auto const gradients_of = [&](std::uint32_t i) { return back.bytes()[i] / 4; };
  test::require(
      exchange_samples(comm, agreed(back), sized_field{embeddings, gradients_of}) == encoded,
      "gradients are where the images were encoded");
  auto const home = samples.inverse();
  test::require(exchange_samples(comm, agreed(home), my_numbers) == numbers, "losses are at home");
}

}  // namespace

TEST_CASE("a step with an encoder takes eight collectives at most") {
  test::watchdog const limit;
  for (std::size_t const ranks : {1u, 2u, 3u, 4u, 8u}) {
    for (int kind = 0; kind != 4; ++kind) {
      INFO(ranks << " ranks, draw " << kind);
      CHECK_NOTHROW(
          omnibal::thread_communicator::run(ranks, [&](omnibal::thread_communicator& comm) {
            counting_rank counted(comm);
            auto const count = counted.collectives_of(
                [&](auto& c) { step_with_encoder(c, draw(kind, comm.rank())); });
            test::require(count <= 8, "eight collectives");
          }));
    }
  }
}

TEST_CASE("collective calls take as few collectives as they promise") {
  counting_rank<> comm;
  std::vector<std::int64_t> const lengths{5, 3, 9};
  auto const as_is = [](std::int64_t length) { return length; };
  CHECK(comm.collectives_of([&](auto& c) { (void)omnibal::gather_lengths(c, lengths); }) == 2);
  omnibal::gather_lengths_workspace<1> workspace;
  auto const gather_at_once = [&](auto& c) {
    (void)omnibal::gather_lengths(c, lengths, std::identity{}, {.max_samples = 4}, workspace);
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
  CHECK(comm.collectives_of(
            [&](auto& c) { (void)omnibal::exchange_samples(c, plan, rows, lengths, rows); }) == 3);
  CHECK(comm.collectives_of([&](auto& c) {
    (void)omnibal::exchange_samples(c, plan, omnibal::sized_field{rows, lengths}, lengths);
  }) == 2);
  CHECK(comm.collectives_of([&](auto& c) {
    (void)omnibal::exchange_samples(c, omnibal::agreed(plan), rows, lengths);
  }) == 2);
  CHECK(comm.collectives_of([&](auto& c) {
    (void)omnibal::exchange_samples(c, omnibal::agreed(plan), lengths);
  }) == 1);
  auto const pieces = [](std::int64_t) { return std::vector<std::int64_t>{1, 2}; };
  std::tuple const encoders{omnibal::encoder_phase{pieces, as_is, as_is, as_is},
                            omnibal::encoder_phase{pieces, as_is, as_is, as_is}};
  CHECK(comm.collectives_of([&](auto& c) {
    (void)omnibal::orchestrate(c, lengths, omnibal::language_phase{as_is, as_is}, encoders);
  }) == 3);
}
