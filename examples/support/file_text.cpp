#include "file_text.hpp"

#include "input_error.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <unistd.h>
#include <zlib.h>

namespace examples {

namespace {

constexpr std::size_t padding_bytes = 64;
constexpr std::size_t chunk_bytes = std::size_t{1} << 22;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

struct close_file {
  void operator()(gzFile file) const { gzclose(file); }
};
using open_file = std::unique_ptr<std::remove_pointer_t<gzFile>, close_file>;

/// zlib reads files that are not compressed as they are.
gzFile open(std::filesystem::path const& path) {
  if (path != "-") return gzopen(path.c_str(), "rb");
  int const copy = dup(STDIN_FILENO);
  return copy < 0 ? nullptr : gzdopen(copy, "rb");
}

/// The size where it is known beforehand; neither a pipe nor a compressed file has one.
std::size_t expected_bytes(std::filesystem::path const& path, gzFile file) {
  std::error_code error;
  auto const size = std::filesystem::file_size(path, error);
  return error || gzdirect(file) == 0 ? 0 : static_cast<std::size_t>(size);
}

std::string error_text(gzFile file) {
  int code = Z_OK;
  char const* const text = gzerror(file, &code);
  return code == Z_ERRNO ? std::strerror(errno) : text;
}

}  // namespace

file_text::file_text(std::filesystem::path const& path, progress& shown)
    : name_(path == "-" ? "standard input" : path.string()) {
  errno = 0;
  open_file const file(open(path));
  if (!file) fail({name_}, std::string("cannot open: ") + std::strerror(errno));

  std::size_t const expected = expected_bytes(path, file.get());
  bytes_.resize(expected + chunk_bytes);
  while (true) {
    if (bytes_.size() - size_ < chunk_bytes) bytes_.resize(2 * bytes_.size());
    int const got = gzread(file.get(), bytes_.data() + size_, static_cast<unsigned>(chunk_bytes));
    int code = Z_OK;
    gzerror(file.get(), &code);
    if (got < 0 || code != Z_OK) fail({name_}, "cannot read: " + error_text(file.get()));
    if (got == 0) break;
    size_ += static_cast<std::size_t>(got);
    shown.update(size_, expected);
  }

  bytes_.resize(size_);
  bytes_.append(padding_bytes, ' ');
  if (view().starts_with(byte_order_mark)) {
    begin_ = byte_order_mark.size();
    size_ -= begin_;
  }
}

}  // namespace examples
