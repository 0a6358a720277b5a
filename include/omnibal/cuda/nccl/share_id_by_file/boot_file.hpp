#pragma once

/// \file
/// A file that is there as a whole or not at all.

#include <omnibal/check.hpp>
#include <omnibal/cuda/nccl/detail/boot_message.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace omnibal::inline v0::nccl::detail {

/// Owns a file descriptor.
class descriptor {
 public:
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor const&) = delete;
  descriptor& operator=(descriptor const&) = delete;
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

[[noreturn]] inline void throw_system(std::string_view function, std::string_view text, int code) {
  throw std::system_error(code, std::generic_category(), omnibal::detail::message(function, text));
}

enum class file_state { missing, other, whole };

/// Writes the file under another name and renames it.
inline void write_whole(std::string_view function, std::string const& path,
                        boot_answer const& answer) {
  // A name that nobody can know, for a file that is new.
  std::string draft = path + ".XXXXXX";
  descriptor const file(::mkostemp(draft.data(), O_CLOEXEC));
  if (!file.is_open()) throw_system(function, "cannot write '" + draft + "'", errno);
  bool const is_written = ::write(file.get(), &answer, sizeof(answer)) == sizeof(answer) &&
                          ::fsync(file.get()) == 0 && ::rename(draft.c_str(), path.c_str()) == 0;
  if (is_written) return;
  int const code = errno;
  ::unlink(draft.c_str());
  throw_system(function, "cannot write '" + path + "'", code);
}

/// Reads the file where it exists.
[[nodiscard]] inline file_state read_whole(std::string_view function, std::string const& path,
                                           boot_answer& answer) {
  // Network file systems remember what they did not find until its folder is opened again.
  std::size_t const slash = path.rfind('/');
  std::string const folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  descriptor const opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) {
    // Handles of files that were replaced are stale on network file systems.
    if (errno == ENOENT || errno == ESTALE) return file_state::missing;
    throw_system(function, "cannot read '" + path + "'", errno);
  }
  ssize_t const bytes = ::read(file.get(), &answer, sizeof(answer));
  if (bytes < 0 && errno == ESTALE) return file_state::missing;
  if (bytes < 0) throw_system(function, "cannot read '" + path + "'", errno);
  return bytes == static_cast<ssize_t>(sizeof(answer)) ? file_state::whole : file_state::other;
}

}  // namespace omnibal::inline v0::nccl::detail
