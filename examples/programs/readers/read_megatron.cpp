// SPDX-License-Identifier: Apache-2.0
// The index of a Megatron corpus, corpus.idx: how many tokens each sequence in corpus.bin has.
#include "byte_view.hpp"
#include "input_error.hpp"
#include "readers.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

namespace {

/// The integers of an index, low bytes first: magic (9), version (8), type of the tokens (1),
/// numbers of sequences and of ends of documents (8 each); then for each sequence its length (4
/// each), its place in corpus.bin (8 each); the first sequence of each document and the end (8
/// each); and where sequences have modes, those (1 each).
struct megatron_index {
  explicit megatron_index(file_text const& text) : bytes(text, "an index of Megatron") {
    constexpr std::size_t header_bytes = 34;
    if (bytes.part(0, 9) != std::string_view("MMIDIDX\0\0", 9))
      bytes.refuse("without its beginning");
    auto const version = bytes.integer<std::uint64_t>(9);
    if (version != 1) bytes.refuse("of version " + std::to_string(version) + ", must be 1");
    auto const code = bytes.integer<std::uint8_t>(17);
    // Codes 6 and 7 are floating-point numbers, which the first version of the format had, too.
    constexpr std::uint8_t sizes[]{0, 1, 1, 2, 4, 8, 8, 4, 2};
    if (code == 0 || code >= sizeof(sizes)) {
      bytes.refuse("whose tokens have the type " + std::to_string(code) + ", must be from 1 to 8");
    }
    token_bytes = sizes[code];
    auto const counted = bytes.integer<std::uint64_t>(18);
    auto const ends = bytes.integer<std::uint64_t>(26);
    std::size_t const rest = bytes.size() - header_bytes;
    bool const fits = counted <= rest / 12 && ends <= (rest - 12 * counted) / 8;
    std::size_t const modes_bytes = fits ? rest - 12 * counted - 8 * ends : 1;
    if (!fits || (modes_bytes != 0 && modes_bytes != counted)) {
      bytes.refuse("of " + std::to_string(counted) + " sequences and " + std::to_string(ends) +
                   " ends of documents, to which its " + std::to_string(bytes.size()) +
                   " bytes do not fit; it may be truncated");
    }
    sequences = counted;
    document_ends = ends;
    has_modes = modes_bytes != 0;
    places = header_bytes + 4 * sequences;
    documents = places + 8 * sequences;
    modes = documents + 8 * document_ends;
  }

  [[nodiscard]] std::int64_t length(std::size_t sequence) const {
    return bytes.integer<std::int32_t>(places - 4 * (sequences - sequence));
  }
  [[nodiscard]] std::int64_t place(std::size_t sequence) const {
    return bytes.integer<std::int64_t>(places + 8 * sequence);
  }
  [[nodiscard]] std::int64_t document_end(std::size_t document) const {
    return bytes.integer<std::int64_t>(documents + 8 * document);
  }

  /// Checks a sequence, which begins where those before it end. Errors: `input_error`.
  void check(std::size_t sequence, std::int64_t expected_place) const {
    std::string const name = "whose sequence " + std::to_string(sequence) + " has ";
    if (length(sequence) < 0) bytes.refuse(name + std::to_string(length(sequence)) + " tokens");
    if (place(sequence) != expected_place) {
      bytes.refuse(name + "the place " + std::to_string(place(sequence)) + ", must have " +
                   std::to_string(expected_place) + ", where the sequence before it ends");
    }
    if (has_modes && bytes.integer<std::int8_t>(modes + sequence) != 0) {
      bytes.refuse(name + "a mode of its own, so its elements may be no tokens; only text is read");
    }
  }

  byte_view bytes;
  std::size_t sequences = 0;
  std::size_t document_ends = 0;
  std::int64_t token_bytes = 0;
  bool has_modes = false;
  std::size_t places = 0;
  std::size_t documents = 0;
  std::size_t modes = 0;
};

}  // namespace

void read_megatron(file_text const& text, record_fields const& fields, dataset& data) {
  fields.check_nameless({text.name()}, "an index of Megatron");
  megatron_index const index(text);
  std::int64_t place = 0;
  std::vector<std::int64_t> lengths(index.sequences);
  for (std::size_t s = 0; s != index.sequences; ++s) {
    index.check(s, place);
    lengths[s] = index.length(s);
    // 2^32 sequences of 2^31 tokens would take more bytes than a file can have.
    if (__builtin_add_overflow(place, lengths[s] * index.token_bytes, &place)) {
      index.bytes.refuse("of more than 9223372036854775807 bytes of tokens");
    }
  }
  if (index.document_ends == 0 || index.document_end(0) != 0 ||
      index.document_end(index.document_ends - 1) != static_cast<std::int64_t>(index.sequences)) {
    index.bytes.refuse("whose documents do not begin with sequence 0 and end with sequence " +
                       std::to_string(index.sequences));
  }
  std::vector<std::int64_t> of_documents;
  for (std::size_t d = 1; d != index.document_ends; ++d) {
    std::int64_t const begin = index.document_end(d - 1);
    std::int64_t const end = index.document_end(d);
    if (end < begin || end > static_cast<std::int64_t>(index.sequences)) {
      index.bytes.refuse("whose document " + std::to_string(d - 1) + " has the sequences from " +
                         std::to_string(begin) + " to " + std::to_string(end));
    }
    std::int64_t tokens = 0;
    for (std::int64_t s = begin; s != end; ++s) tokens += lengths[static_cast<std::size_t>(s)];
    of_documents.push_back(tokens);
  }
  position where{text.name()};
  for (std::int64_t const tokens : fields.are_documents() ? of_documents : lengths) {
    ++where.record;
    data.samples.push_back({0, fields.tokens(where, std::to_string(tokens))});
  }
}

}  // namespace examples
