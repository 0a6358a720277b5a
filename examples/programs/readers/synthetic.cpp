// SPDX-License-Identifier: Apache-2.0
#include "synthetic.hpp"

#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>

namespace examples {

namespace {

using omnibal::rng::below;
using omnibal::rng::engine;

constexpr std::int64_t tokens_per_image = 256;
/// Tokens of the conversation template around every sample.
constexpr std::int64_t template_tokens = 16;

struct share {
  std::int64_t value;
  std::uint32_t per_mille;
};

/// A kind of sample: how many images it has, and the median of its text.
struct component {
  std::uint32_t per_mille;
  std::span<share const> images;
  std::int64_t median_text_tokens;
};

// An image of t > 1 tiles also brings a thumbnail, so that 2, 4, 6, 8, 12 tiles are 3, 5, 7, 9, 13.
constexpr std::array one_image{share{1, 340}, share{3, 220}, share{5, 300}, share{7, 140}};
constexpr std::array document{share{5, 250}, share{7, 400}, share{9, 335}, share{13, 15}};
constexpr std::array several_images{share{2, 400}, share{3, 250}, share{4, 180},
                                    share{5, 80},  share{6, 50},  share{8, 40}};
constexpr std::array no_image{share{0, 1000}};

constexpr std::array mixture{component{420, one_image, 80}, component{180, document, 240},
                             component{100, several_images, 180}, component{300, no_image, 420}};

/// A point of the distribution function of exp(Z), Z standard normal: P(exp(Z) < factor / 1024) is
/// probability / 65536. A table, because `std::exp` differs between platforms in the last digit.
struct quantile {
  std::uint32_t probability;
  std::uint32_t factor;
};

constexpr std::array log_normal{
    quantile{0, 20},        quantile{2048, 159},    quantile{4096, 221},    quantile{6144, 274},
    quantile{8192, 324},    quantile{10240, 373},   quantile{12288, 422},   quantile{14336, 471},
    quantile{16384, 522},   quantile{18432, 574},   quantile{20480, 628},   quantile{22528, 685},
    quantile{24576, 745},   quantile{26624, 808},   quantile{28672, 875},   quantile{30720, 947},
    quantile{32768, 1024},  quantile{34816, 1108},  quantile{36864, 1198},  quantile{38912, 1298},
    quantile{40960, 1408},  quantile{43008, 1531},  quantile{45056, 1669},  quantile{47104, 1827},
    quantile{49152, 2010},  quantile{51200, 2226},  quantile{53248, 2486},  quantile{55296, 2811},
    quantile{57344, 3235},  quantile{59392, 3826},  quantile{61440, 4749},  quantile{63488, 6596},
    quantile{64512, 8825},  quantile{65024, 11488}, quantile{65280, 14640}, quantile{65408, 18345},
    quantile{65472, 22669}, quantile{65504, 27686}, quantile{65520, 33476}, quantile{65528, 40127},
    quantile{65532, 47734}, quantile{65534, 56401}, quantile{65535, 66240}, quantile{65536, 92178}};

/// The first element whose share covers `ticket`, a number below 1000.
template <class Range>
auto const& drawn(Range const& choices, std::uint64_t ticket) {
  auto choice = choices.begin();
  while (ticket >= choice->per_mille) {
    ticket -= choice->per_mille;
    ++choice;
  }
  return *choice;
}

/// Log-normal with sigma 1, by linear interpolation in the table.
std::int64_t text_tokens(engine& random, std::int64_t median) {
  constexpr std::uint64_t steps = 1024;
  constexpr std::uint64_t one = std::uint64_t{65536} * steps;
  std::uint64_t const u = below(random, one);
  auto const right = std::ranges::upper_bound(
      log_normal, u, {}, [](quantile const& point) { return point.probability * steps; });
  auto const left = right - 1;
  std::uint64_t const width = (right->probability - left->probability) * steps;
  std::uint64_t const rise = right->factor - left->factor;
  std::uint64_t const factor =
      left->factor * steps + rise * steps * (u - left->probability * steps) / width;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(median) * factor / (1024 * steps));
}

}  // namespace

dataset synthetic_lengths(std::size_t count, std::uint64_t seed) {
  dataset data;
  data.kind = sample_kind::images_and_text;
  data.samples.reserve(count);
  engine random(seed);
  for (std::size_t i = 0; i != count; ++i) {
    component const& kind = drawn(mixture, below(random, 1000));
    std::int64_t const images = drawn(kind.images, below(random, 1000)).value;
    std::int64_t const text = text_tokens(random, kind.median_text_tokens);
    data.samples.push_back({images, tokens_per_image * images + template_tokens + text});
  }
  data.sources.push_back({"synthetic (seed " + std::to_string(seed) + ")", count});
  return data;
}

}  // namespace examples
