// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace train_vlm {

namespace {

volatile std::sig_atomic_t asked = 0;
volatile std::sig_atomic_t is_late = 0;

void note_signal(int signal) { (signal == SIGALRM ? is_late : asked) = 1; }

/// With SA_RESTART calls that wait are not cut short.
void note_signals(int flags) {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = flags;
  for (int const signal : {SIGTERM, SIGINT, SIGALRM}) ::sigaction(signal, &action, nullptr);
  // A write to a rank that has died becomes an error, which says what failed.
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

void copy_input(std::string const& path) {
  std::ofstream copy(path, std::ios::binary);
  std::vector<char> bytes(std::size_t{1} << 16);
  while (std::cin.read(bytes.data(), static_cast<std::streamsize>(bytes.size())),
         std::cin.gcount() != 0) {
    copy.write(bytes.data(), std::cin.gcount());
  }
  copy.close();
  if (!copy) throw std::runtime_error("cannot copy the standard input to " + path);
}

[[noreturn]] void end_rank(char const* problem) {
  std::perror(problem);
  std::_Exit(1);
}

/// `path` becomes the standard input of this process.
void take_input(std::string const& path) {
  int const file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || ::dup2(file, STDIN_FILENO) < 0) end_rank("train_vlm: cannot read lengths");
}

[[noreturn]] void become_rank(std::size_t rank, std::size_t ranks, std::string const& meeting,
                              char** words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setenv("TRAIN_VLM_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("TRAIN_VLM_RANKS", std::to_string(ranks).c_str(), 1);
  ::setenv("TRAIN_VLM_MEETING", meeting.c_str(), 1);
  for (char const* const threads : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) {
    ::setenv(threads, "1", 1);
  }
  // Memory that glibc gives back after a batch costs page faults in the next one.
  for (char const* const most : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"}) {
    ::setenv(most, "4294967296", 0);
  }
  ::execv("/proc/self/exe", words);
  end_rank("train_vlm: cannot start a rank");
}

bool report_end(std::size_t rank, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (WIFSIGNALED(status)) {
    std::fprintf(stderr, "train_vlm: rank %zu was ended by signal %d\n", rank, WTERMSIG(status));
  }
  return false;
}

}  // namespace

std::optional<place_in_world> own_place() {
  char const* const rank = std::getenv("TRAIN_VLM_RANK");
  char const* const ranks = std::getenv("TRAIN_VLM_RANKS");
  char const* const meeting = std::getenv("TRAIN_VLM_MEETING");
  if (rank == nullptr || ranks == nullptr || meeting == nullptr) return std::nullopt;
  return place_in_world{std::stoul(rank), std::stoul(ranks), meeting};
}

int launch(train_options const& options, char** words) {
  namespace fs = std::filesystem;
  std::string folder = fs::temp_directory_path() / "train_vlm_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);
  auto const& files = options.lengths.files;
  std::string const meeting = folder + "/meeting";
  std::string const input =
      std::ranges::find(files, "-") != files.end() ? folder + "/input" : std::string();
  if (!input.empty()) copy_input(input);
  note_signals(0);
  std::vector<pid_t> processes;
  for (std::size_t rank = 0; rank != options.ranks; ++rank) {
    pid_t const process = ::fork();
    if (process == 0 && !input.empty()) take_input(input);
    if (process == 0) become_rank(rank, options.ranks, meeting, words);
    processes.push_back(process);
  }
  auto const tell = [&](int signal) {
    for (pid_t const process : processes) {
      if (process != 0) ::kill(process, signal);
    }
  };
  std::int64_t const timeout = options.timeout_seconds;
  bool all_well = true;
  bool has_told = false;
  for (std::size_t left = options.ranks; left != 0;) {
    int status = 0;
    pid_t const ended = ::waitpid(-1, &status, 0);
    if (ended == -1 && errno != EINTR) throw std::runtime_error("a rank could not be started");
    auto const found = std::ranges::find(processes, ended);
    if (found != processes.end()) {
      --left;
      *found = 0;
      bool const is_well = report_end(static_cast<std::size_t>(found - processes.begin()), status);
      // The others have their errors by then, unless they hang: they wait for a dead rank as long
      // as that, and may have begun to wait later than it died.
      auto const patience = static_cast<unsigned>(timeout + timeout / 2 + 5);
      if (!is_well && all_well) ::alarm(patience);
      all_well = all_well && is_well;
    }
    if (asked != 0 && !has_told) tell(SIGTERM);
    has_told = asked != 0;
    if (is_late != 0) tell(SIGKILL);
  }
  // One by one: the libtorch of PyTorch's wheels exports a `remove_all` of its own, which crashes.
  for (std::string const& path : {input, meeting, folder}) fs::remove(path);
  return all_well ? 0 : 1;
}

bool is_asked_to_stop() { return asked != 0; }

void stop_when_asked() { note_signals(SA_RESTART); }

}  // namespace train_vlm
