// SPDX-License-Identifier: Apache-2.0
#pragma once

// One layer of causal attention over tokens with any mask, with its loss and gradients, in double
// precision: the reference of tests that compare layouts.

#include <omnibal/prefix/prefix_forest.hpp>
#include <omnibal/prefix/prefix_layout.hpp>
#include <omnibal/rng/engine.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace test {

/// Tokens, their positions, the end of the tokens that attend to each one, and predictions.
struct attention_batch {
  struct prediction {
    std::uint32_t from;
    std::uint32_t target;
    double weight;
  };
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint32_t> positions;
  std::vector<std::uint32_t> ends;
  std::vector<prediction> predictions;
};

inline attention_batch one_sequence(std::span<std::uint32_t const> tokens, double weight,
                                    std::uint32_t begin) {
  attention_batch batch;
  auto const count = static_cast<std::uint32_t>(tokens.size());
  for (std::uint32_t k = 0; k != count; ++k) {
    batch.tokens.push_back(tokens[k]);
    batch.positions.push_back(k);
    batch.ends.push_back(count);
    if (k != 0 && k >= begin) batch.predictions.push_back({k - 1, tokens[k], weight});
  }
  return batch;
}

inline attention_batch shared_batch(omnibal::prefix_forest const& forest,
                                    omnibal::prefix_layout const& layout,
                                    std::vector<std::vector<std::uint32_t>> const& sequences,
                                    std::span<double const> weights,
                                    std::span<std::uint32_t const> begins) {
  attention_batch batch;
  for (std::size_t s = 0; s != layout.nodes.size(); ++s) {
    auto const& sequence = sequences[forest.first_sequences()[layout.nodes[s]]];
    for (std::uint32_t k = layout.cu_seqlens[s]; k != layout.cu_seqlens[s + 1]; ++k) {
      batch.tokens.push_back(sequence[layout.positions[k]]);
    }
  }
  batch.positions = layout.positions;
  batch.ends = layout.token_ends;
  auto const loss = omnibal::prefix_loss_weights(layout, weights, begins);
  for (std::uint32_t k = 0; k != loss.size(); ++k) {
    if (layout.predictors[k] == omnibal::prefix_layout::none) continue;
    batch.predictions.push_back({layout.predictors[k], batch.tokens[k], loss[k]});
  }
  return batch;
}

struct loss_and_gradients {
  double loss = 0.0;
  std::vector<double> gradients;

  void add(loss_and_gradients const& other) {
    loss += other.loss;
    gradients.resize(other.gradients.size(), 0.0);
    for (std::size_t p = 0; p != gradients.size(); ++p) gradients[p] += other.gradients[p];
  }
};

/// Embeddings of tokens and positions, one head of attention with a residual, and logits.
class tree_attention {
 public:
  tree_attention(std::size_t words, std::size_t positions, std::size_t width, std::uint64_t seed)
      : words_(words), positions_(positions), width_(width) {
    omnibal::rng::engine random(seed);
    parameters_.resize((words + positions) * width + 3 * width * width + words * width);
    for (double& value : parameters_) {
      value = static_cast<double>(random() >> 11) / 9007199254740992.0 - 0.5;
    }
  }

  double& parameter(std::size_t p) { return parameters_[p]; }

  [[nodiscard]] loss_and_gradients run(attention_batch const& batch) const {
    std::size_t const n = batch.tokens.size();
    std::size_t const d = width_;
    double const* const word = parameters_.data();
    double const* const place = word + words_ * d;
    double const* const query = place + positions_ * d;
    double const* const key = query + d * d;
    double const* const value = key + d * d;
    double const* const output = value + d * d;
    loss_and_gradients result{0.0, std::vector<double>(parameters_.size(), 0.0)};
    double* const gradient = result.gradients.data();
    auto const of = [&](double const* part) { return gradient + (part - parameters_.data()); };

    rows x(n * d);
    for (std::size_t k = 0; k != n; ++k) {
      for (std::size_t c = 0; c != d; ++c) {
        // A position beyond the table wraps, in both forms equally.
        x[k * d + c] =
            word[batch.tokens[k] * d + c] + place[batch.positions[k] % positions_ * d + c];
      }
    }
    rows const q = product(x, query, n);
    rows const k = product(x, key, n);
    rows const v = product(x, value, n);
    rows shares(n * n, 0.0);
    rows h = x;
    double const scale = 1.0 / std::sqrt(static_cast<double>(d));
    for (std::size_t i = 0; i != n; ++i) {
      double sum = 0.0;
      for (std::size_t j = 0; j <= i; ++j) {
        if (i >= batch.ends[j]) continue;
        double score = 0.0;
        for (std::size_t c = 0; c != d; ++c) score += q[i * d + c] * k[j * d + c];
        shares[i * n + j] = std::exp(score * scale);
        sum += shares[i * n + j];
      }
      for (std::size_t j = 0; j <= i; ++j) {
        shares[i * n + j] /= sum;
        for (std::size_t c = 0; c != d; ++c) h[i * d + c] += shares[i * n + j] * v[j * d + c];
      }
    }
    rows dh(n * d, 0.0);
    for (auto const& one : batch.predictions) predict(one, h, output, of(output), dh, result.loss);

    rows dx = dh;
    rows dq(n * d, 0.0);
    rows dk(n * d, 0.0);
    rows dv(n * d, 0.0);
    for (std::size_t i = 0; i != n; ++i) {
      double mean = 0.0;
      std::vector<double> slope(i + 1, 0.0);
      for (std::size_t j = 0; j <= i; ++j) {
        double const share = shares[i * n + j];
        for (std::size_t c = 0; c != d; ++c) {
          slope[j] += dh[i * d + c] * v[j * d + c];
          dv[j * d + c] += share * dh[i * d + c];
        }
        mean += share * slope[j];
      }
      for (std::size_t j = 0; j <= i; ++j) {
        double const score = shares[i * n + j] * (slope[j] - mean) * scale;
        for (std::size_t c = 0; c != d; ++c) {
          dq[i * d + c] += score * k[j * d + c];
          dk[j * d + c] += score * q[i * d + c];
        }
      }
    }
    back(x, dq, query, of(query), dx);
    back(x, dk, key, of(key), dx);
    back(x, dv, value, of(value), dx);
    for (std::size_t i = 0; i != n; ++i) {
      for (std::size_t c = 0; c != d; ++c) {
        of(word)[batch.tokens[i] * d + c] += dx[i * d + c];
        of(place)[batch.positions[i] % positions_ * d + c] += dx[i * d + c];
      }
    }
    return result;
  }

 private:
  using rows = std::vector<double>;

  [[nodiscard]] rows product(rows const& x, double const* matrix, std::size_t n) const {
    rows result(n * width_, 0.0);
    for (std::size_t i = 0; i != n; ++i) {
      for (std::size_t a = 0; a != width_; ++a) {
        for (std::size_t c = 0; c != width_; ++c) {
          result[i * width_ + c] += x[i * width_ + a] * matrix[a * width_ + c];
        }
      }
    }
    return result;
  }

  void back(rows const& x, rows const& dy, double const* matrix, double* gradient, rows& dx) const {
    for (std::size_t i = 0; i != x.size() / width_; ++i) {
      for (std::size_t a = 0; a != width_; ++a) {
        for (std::size_t c = 0; c != width_; ++c) {
          gradient[a * width_ + c] += x[i * width_ + a] * dy[i * width_ + c];
          dx[i * width_ + a] += matrix[a * width_ + c] * dy[i * width_ + c];
        }
      }
    }
  }

  /// Adds the cross entropy of a prediction and its gradients.
  void predict(attention_batch::prediction const& one, rows const& h, double const* output,
               double* gradient, rows& dh, double& loss) const {
    std::vector<double> logits(words_, 0.0);
    double sum = 0.0;
    for (std::size_t w = 0; w != words_; ++w) {
      for (std::size_t c = 0; c != width_; ++c) {
        logits[w] += h[one.from * width_ + c] * output[w * width_ + c];
      }
      sum += std::exp(logits[w]);
    }
    loss += one.weight * (std::log(sum) - logits[one.target]);
    for (std::size_t w = 0; w != words_; ++w) {
      double const slope = one.weight * (std::exp(logits[w]) / sum - (w == one.target ? 1.0 : 0.0));
      for (std::size_t c = 0; c != width_; ++c) {
        gradient[w * width_ + c] += slope * h[one.from * width_ + c];
        dh[one.from * width_ + c] += slope * output[w * width_ + c];
      }
    }
  }

  std::size_t words_;
  std::size_t positions_;
  std::size_t width_;
  std::vector<double> parameters_;
};

}  // namespace test
