#include "file_text.hpp"

#include "input_error.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

namespace examples {

namespace {

constexpr std::size_t padding_bytes = 64;
constexpr std::size_t chunk_bytes = std::size_t{1} << 22;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

struct close_file {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// The size where it is known beforehand; a pipe has none.
std::size_t expected_bytes(std::filesystem::path const& path) {
  std::error_code error;
  auto const size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<std::size_t>(size);
}

}  // namespace

file_text::file_text(std::filesystem::path const& path, progress& shown) : name_(path.string()) {
  std::unique_ptr<std::FILE, close_file> const file(std::fopen(path.c_str(), "rb"));
  if (!file) fail({name_}, std::string("cannot open: ") + std::strerror(errno));

  std::size_t const expected = expected_bytes(path);
  bytes_.resize(expected + chunk_bytes);
  while (true) {
    if (bytes_.size() - size_ < chunk_bytes) bytes_.resize(2 * bytes_.size());
    std::size_t const got = std::fread(bytes_.data() + size_, 1, chunk_bytes, file.get());
    if (got == 0) break;
    size_ += got;
    shown.update(size_, expected);
  }
  if (std::ferror(file.get()) != 0)
    fail({name_}, std::string("cannot read: ") + std::strerror(errno));

  bytes_.resize(size_);
  bytes_.append(padding_bytes, ' ');
  if (view().starts_with(byte_order_mark)) {
    begin_ = byte_order_mark.size();
    size_ -= begin_;
  }
}

}  // namespace examples
