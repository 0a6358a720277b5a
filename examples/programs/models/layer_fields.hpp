// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Members of layers by their names in model files: reading, writing and listing. For the sources
/// that read model files.

#include "json_fields.hpp"
#include "tower_connector.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

inline constexpr std::array<std::string_view, 2> mlp_names{"gated", "plain"};
inline constexpr std::array<std::string_view, 3> norm_names{"rms", "layer", "unweighted"};
inline constexpr std::array<std::string_view, 3> head_norm_names{"none", "each_head",
                                                                 "whole_width"};
inline constexpr std::array<std::string_view, 4> norm_placement_names{"before", "after", "both",
                                                                      "parallel"};
inline constexpr std::array<std::string_view, 2> kernel_names{"flash", "unfused"};
inline constexpr std::array<std::string_view, 3> training_names{"all", "input_gradients",
                                                                "forward_only"};

/// The numbers of each part by the names that they have in a model file: `io(name, member, least)`
/// reads or writes one. A member that may be left out keeps its default.
template <class Io, class Layer>
void visit_layer(Io const& io, Layer& layer) {
  io("hidden", layer.hidden, 1);
  io("heads", layer.heads, 1);
  io("head_size", layer.head_size, 0);
  io("mlp", layer.mlp, 0);
  io("mlp_kind", layer.feed_forward, mlp_names);
  io("norm", layer.norm, norm_names);
  io("head_norm", layer.head_norm, head_norm_names);
  io("qkv_bias", layer.qkv_bias);
  io("output_bias", layer.output_bias);
  io("mlp_bias", layer.mlp_bias);
  io("training", layer.training, training_names);
}

/// Reads the members of a part.
struct field_reader {
  json_fields const& given;

  /// Zero by default, but for those that have another default.
  void operator()(char const* name, std::int64_t& member, std::int64_t least) const {
    bool const may_lack = least == 0 || member != 0;
    if (given.has(name) || !may_lack) member = given.integer(name, least, max_of(name));
  }
  /// The largest value of a field: sums of parameters may exceed the largest width.
  static std::int64_t max_of(std::string_view name) {
    return name.ends_with("_parameters") ? std::int64_t{1} << 40 : max_of_model;
  }
  void operator()(char const* name, bool& member) const { member = given.flag_or(name, member); }
  template <class Choice, std::size_t N>
  void operator()(char const* name, Choice& member,
                  std::array<std::string_view, N> const& names) const {
    if (given.has(name)) member = static_cast<Choice>(given.choice(name, names));
  }
};

struct field_writer {
  nlohmann::ordered_json& result;

  void operator()(char const* name, std::int64_t member, std::int64_t) const {
    result[name] = member;
  }
  void operator()(char const* name, bool member) const { result[name] = member; }
  template <class Choice, std::size_t N>
  void operator()(char const* name, Choice member,
                  std::array<std::string_view, N> const& names) const {
    result[name] = names.at(static_cast<std::size_t>(member));
  }
};

/// Collects the names that a part may have.
struct field_namer {
  std::vector<std::string>& names;

  template <class... Ignored>
  void operator()(char const* name, Ignored const&...) const {
    names.emplace_back(name);
  }
};

template <class Visit>
void allow_fields(json_fields const& given, Visit const& visit,
                  std::vector<std::string> also = {}) {
  visit(field_namer{also});
  given.allow(also);
}

}  // namespace examples
