// SPDX-License-Identifier: Apache-2.0
#include "toy_model.hpp"

#include <omnibal/rng/engine.hpp>

namespace examples {

namespace {

/// Marks of pieces are above all words of text.
constexpr std::uint64_t first_mark = std::uint64_t{1} << 63;

std::uint64_t mark_of(modality kind) { return first_mark + static_cast<std::uint64_t>(kind); }

}  // namespace

toy_gradients& toy_gradients::operator+=(toy_gradients const& other) {
  embedding += other.embedding;
  recurrence += other.recurrence;
  for (std::size_t m = 0; m != modality_count; ++m) {
    for (std::size_t k = 0; k != encoder_weights; ++k) encoders[m][k] += other.encoders[m][k];
  }
  return *this;
}

std::vector<std::uint64_t> script_of(multimodal_sample const& sample) {
  omnibal::rng::engine words(sample.number, static_cast<std::uint64_t>(sample.text_tokens));
  std::vector<std::uint64_t> script{words() % first_mark};
  for (media_piece const& piece : sample.pieces) {
    script.push_back(mark_of(piece.kind));
    script.push_back(words() % first_mark);
  }
  return script;
}

std::vector<std::uint64_t> content_of(multimodal_sample const& sample, std::size_t piece) {
  omnibal::rng::engine words(sample.number, ~piece);
  media_piece const& one = sample.pieces[piece];
  std::int64_t const parts = one.kind == modality::image ? one.size : 1 + one.size / 50;
  std::vector<std::uint64_t> content(static_cast<std::size_t>(3 * parts));
  for (std::uint64_t& word : content) word = words();
  return content;
}

std::uint64_t toy_model::encode(modality kind, std::span<std::uint64_t const> content) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i != content.size(); ++i) {
    sum += encoder_weight(kind, i % toy_gradients::encoder_weights) * content[i];
  }
  return sum;
}

void toy_model::train(std::span<std::uint64_t const> script,
                      std::array<std::span<std::uint64_t const>, modality_count> const& outputs,
                      std::array<std::span<std::uint64_t>, modality_count> const& output_gradients,
                      toy_gradients& sum) const {
  std::vector<std::uint64_t> states{1};
  std::array<std::size_t, modality_count> next{};
  for (std::uint64_t const word : script) {
    bool const is_piece = word >= first_mark;
    std::size_t const m = is_piece ? word - first_mark : 0;
    std::uint64_t const value = is_piece ? outputs[m][next[m]++] : embedding * word;
    states.push_back(recurrence * states.back() + value);
  }
  std::uint64_t gradient = 1;
  for (std::size_t i = script.size(); i-- != 0;) {
    sum.recurrence += gradient * states[i];
    if (script[i] >= first_mark) {
      std::size_t const m = script[i] - first_mark;
      output_gradients[m][--next[m]] = gradient;
    } else {
      sum.embedding += gradient * script[i];
    }
    gradient *= recurrence;
  }
}

void toy_model::train_encoder(modality kind, std::span<std::uint64_t const> content,
                              std::uint64_t output_gradient, toy_gradients& sum) {
  auto& weights = sum.encoders[static_cast<std::size_t>(kind)];
  for (std::size_t i = 0; i != content.size(); ++i) {
    weights[i % toy_gradients::encoder_weights] += output_gradient * content[i];
  }
}

toy_gradients train_at_home(toy_model const& model, std::vector<multimodal_sample> const& samples) {
  toy_gradients sum;
  for (multimodal_sample const& sample : samples) {
    std::array<std::vector<std::uint64_t>, modality_count> outputs;
    for (std::size_t p = 0; p != sample.pieces.size(); ++p) {
      modality const kind = sample.pieces[p].kind;
      outputs[static_cast<std::size_t>(kind)].push_back(model.encode(kind, content_of(sample, p)));
    }
    auto gradients = outputs;
    model.train(script_of(sample), {outputs[0], outputs[1]}, {gradients[0], gradients[1]}, sum);
    std::array<std::size_t, modality_count> next{};
    for (std::size_t p = 0; p != sample.pieces.size(); ++p) {
      modality const kind = sample.pieces[p].kind;
      auto const m = static_cast<std::size_t>(kind);
      toy_model::train_encoder(kind, content_of(sample, p), gradients[m][next[m]++], sum);
    }
  }
  return sum;
}

}  // namespace examples
