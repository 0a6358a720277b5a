// How ranks meet, with real files and sockets; only the ids come from the stand-in.

#include "boot_bodies.hpp"
#include "catch.hpp"
#include "rank_checks.hpp"
#include "stand_in.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/all_gather.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/cuda/nccl/connect.hpp>
#include <omnibal/cuda/nccl/detail/boot_file.hpp>
#include <omnibal/cuda/nccl/detail/boot_message.hpp>
#include <omnibal/cuda/nccl/detail/boot_socket.hpp>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <nccl.h>

namespace {

namespace nccl = omnibal::nccl;
using std::chrono::milliseconds;
using test::contains;
using test::text_of;

bool equal(ncclUniqueId const& left, ncclUniqueId const& right) {
  return std::memcmp(&left, &right, sizeof(left)) == 0;
}

/// The ids that ranks got, or the texts of what they threw.
struct outcomes {
  std::vector<ncclUniqueId> ids;
  std::vector<std::string> texts;
};

/// Each rank calls `call(rank)`; exceptions of type `Error` are gathered.
template <class Error, class Call>
outcomes on_threads(std::size_t ranks, Call const& call) {
  test::watchdog const limit(std::chrono::seconds(60));
  outcomes result{std::vector<ncclUniqueId>(ranks), std::vector<std::string>(ranks)};
  stand_in::run_ranks(ranks, [&](std::size_t rank) {
    result.texts[rank] = text_of<Error>([&] { result.ids[rank] = call(rank); });
  });
  return result;
}

TEST_CASE("ranks meet at a port", "[nccl][boot]") {
  auto const ranks = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{9});
  auto const host = GENERATE("localhost", "127.0.0.1");
  nccl::host_meeting const meeting{host, test::free_port(), "run", milliseconds(20'000)};
  auto const found = on_threads<std::exception>(ranks, [&](std::size_t rank) {
    // The others come first, and wait.
    if (rank == 0) std::this_thread::sleep_for(milliseconds(30));
    return nccl::share_id_by_host({.rank = rank, .size = ranks}, meeting);
  });
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    CHECK(found.texts[rank].empty());
    CHECK(equal(found.ids[rank], found.ids[0]));
  }
}

TEST_CASE("a wrong argument of a meeting is refused at once", "[nccl][boot]") {
  using invalid = std::invalid_argument;
  nccl::host_meeting const meeting{"localhost", 9, "", milliseconds(1000)};
  auto const by_host = [&](nccl::world const& place, nccl::host_meeting const& where) {
    return text_of<invalid>([&] { static_cast<void>(nccl::share_id_by_host(place, where)); });
  };
  CHECK(contains(by_host({.rank = 2, .size = 2}, meeting), "the rank is 2"));
  CHECK(contains(by_host({.rank = 0, .size = 0}, meeting), "the size of the world is 0"));
  CHECK(contains(by_host({.rank = 0, .size = 2}, {"", 9, "", milliseconds(9)}), "host is empty"));
  CHECK(contains(by_host({.rank = 0, .size = 2}, {"a", 0, "", milliseconds(9)}), "port is 0"));
  CHECK(contains(by_host({.rank = 0, .size = 2}, {"a", 1, "", milliseconds(0)}), "timeout is 0"));
  auto const by_file = [&](nccl::file_meeting const& where) {
    return text_of<invalid>(
        [&] { static_cast<void>(nccl::share_id_by_file({.rank = 1, .size = 2}, where)); });
  };
  CHECK(contains(by_file({"", "run", milliseconds(9)}), "the path is empty"));
  CHECK(contains(by_file({"/tmp/a", "", milliseconds(9)}), "name of the run is empty"));
  ncclUniqueId id{};
  CHECK(contains(text_of<invalid>([&] { nccl::communicator({.rank = 5, .size = 4}, id); }),
                 "omnibal::nccl::communicator: the rank is 5"));
  CHECK(contains(text_of<invalid>([&] { nccl::communicator_ref(nullptr); }), "is null"));
}

TEST_CASE("a rank that cannot be reached is a timeout with the reason", "[nccl][boot]") {
  auto const start = std::chrono::steady_clock::now();
  auto const text = text_of<nccl::timeout>([&] {
    static_cast<void>(nccl::share_id_by_host(
        {.rank = 1, .size = 2}, {"127.0.0.1", test::free_port(), "", milliseconds(200)}));
  });
  CHECK(contains(text, "rank 1 has tried 200 ms to reach rank 0 at 127.0.0.1:"));
  CHECK(contains(text, "refused"));
  auto const unknown = text_of<nccl::timeout>([&] {
    static_cast<void>(nccl::share_id_by_host({.rank = 1, .size = 2},
                                             {"no-such-host.invalid", 9, "", milliseconds(200)}));
  });
  CHECK(contains(unknown, "no-such-host.invalid:9"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("rank 0 names the ranks that have not come", "[nccl][boot]") {
  nccl::host_meeting const meeting{"localhost", test::free_port(), "", milliseconds(300)};
  auto const found = on_threads<nccl::timeout>(3, [&](std::size_t rank) {
    if (rank == 2) return ncclUniqueId{};
    return nccl::share_id_by_host({.rank = rank, .size = 3}, meeting);
  });
  CHECK(contains(found.texts[0], "1 of 3 ranks have not come: 2"));
  CHECK(!found.texts[1].empty());
}

TEST_CASE("a port that is taken is an error of rank 0", "[nccl][boot]") {
  std::uint16_t const port = test::free_port();
  auto const taken = nccl::detail::listen_on("test", port);
  auto const text = text_of<std::system_error>([&] {
    static_cast<void>(
        nccl::share_id_by_host({.rank = 0, .size = 2}, {"localhost", port, "", milliseconds(500)}));
  });
  CHECK(contains(text, "cannot listen on port " + std::to_string(port)));
}

TEST_CASE("what does not fit is told to all ranks that are there", "[nccl][boot]") {
  nccl::host_meeting const meeting{"localhost", test::free_port(), "", milliseconds(5000)};
  SECTION("another version") {
    auto const found = on_threads<nccl::mismatch>(2, [&](std::size_t rank) {
      if (rank == 1) stand_in::set_version(22'703);
      return nccl::share_id_by_host({.rank = rank, .size = 2}, meeting);
    });
    for (auto const& text : found.texts) {
      CHECK(contains(text, "rank 1 has NCCL 2.27.3, rank 0 has NCCL 2."));
    }
  }
  SECTION("another size") {
    auto const found = on_threads<nccl::mismatch>(2, [&](std::size_t rank) {
      return nccl::share_id_by_host({.rank = rank, .size = 2 + rank}, meeting);
    });
    for (auto const& text : found.texts) CHECK(contains(text, "in a world of 3 ranks, rank 0 in"));
  }
  SECTION("a rank twice") {
    auto const found = on_threads<nccl::mismatch>(3, [&](std::size_t rank) {
      return nccl::share_id_by_host({.rank = rank == 0 ? std::size_t{0} : 1, .size = 3}, meeting);
    });
    for (auto const& text : found.texts)
      CHECK(contains(text, "two processes call themselves rank 1"));
  }
}

TEST_CASE("strangers and other runs at the port are ignored", "[nccl][boot]") {
  nccl::host_meeting const meeting{"localhost", test::free_port(), "this run", milliseconds(5000)};
  auto const found = on_threads<std::exception>(4, [&](std::size_t rank) -> ncclUniqueId {
    nccl::detail::deadline const limit(milliseconds(2000));
    if (rank == 2) {
      // Says something else, and stays.
      std::this_thread::sleep_for(milliseconds(100));
      auto const connection = nccl::detail::connect_once({"localhost", meeting.port}, limit);
      std::string const words(sizeof(nccl::detail::boot_hello), 'x');
      char text[sizeof(nccl::detail::boot_hello)];
      std::memcpy(text, words.data(), sizeof(text));
      if (connection.socket.is_open()) {
        static_cast<void>(nccl::detail::send_all(connection.socket, text, limit));
      }
      return {};
    }
    if (rank == 3) {
      nccl::host_meeting other = meeting;
      other.run = "another run";
      other.timeout = milliseconds(400);
      CHECK_THROWS_AS(nccl::share_id_by_host({.rank = 1, .size = 2}, other), nccl::timeout);
      return {};
    }
    if (rank == 1) std::this_thread::sleep_for(milliseconds(600));
    return nccl::share_id_by_host({.rank = rank, .size = 2}, meeting);
  });
  CHECK(found.texts[0].empty());
  CHECK(found.texts[1].empty());
  CHECK(equal(found.ids[0], found.ids[1]));
}

TEST_CASE("ranks meet by a file", "[nccl][boot]") {
  test::folder const folder;
  nccl::file_meeting const meeting{folder.file("id"), "run", milliseconds(20'000)};
  // What an earlier run has left does not count.
  static_cast<void>(
      nccl::share_id_by_file({.rank = 0, .size = 3}, {meeting.path, "old", milliseconds(9)}));
  auto const found = on_threads<std::exception>(3, [&](std::size_t rank) {
    if (rank == 0) std::this_thread::sleep_for(milliseconds(50));
    return nccl::share_id_by_file({.rank = rank, .size = 3}, meeting);
  });
  for (std::size_t rank = 0; rank != 3; ++rank) {
    CHECK(found.texts[rank].empty());
    CHECK(equal(found.ids[rank], found.ids[0]));
  }
  // No draft is left.
  std::size_t files = 0;
  for ([[maybe_unused]] auto const& file : std::filesystem::directory_iterator(folder.file("."))) {
    ++files;
  }
  CHECK(files == 1);
}

TEST_CASE("a file that does not come is a timeout with what was found", "[nccl][boot]") {
  test::folder const folder;
  nccl::file_meeting const meeting{folder.file("id"), "run", milliseconds(60)};
  auto const text = [&](nccl::file_meeting const& where) {
    return text_of<nccl::timeout>(
        [&] { static_cast<void>(nccl::share_id_by_file({.rank = 1, .size = 2}, where)); });
  };
  CHECK(contains(text(meeting), "rank 1 has waited 60 ms for rank 0, and the file '" +
                                    meeting.path + "' does not exist"));
  CHECK(contains(text({folder.file("no/folder/id"), "run", milliseconds(60)}), "does not exist"));
  std::ofstream(meeting.path) << "something else";
  CHECK(contains(text(meeting), "is not one of omnibal"));
  static_cast<void>(nccl::share_id_by_file({.rank = 0, .size = 2},
                                           {meeting.path, "an old run", milliseconds(60)}));
  CHECK(contains(text(meeting), "was left by another run"));
  CHECK(contains(text_of<std::system_error>([&] {
                   static_cast<void>(nccl::share_id_by_file(
                       {.rank = 0, .size = 2}, {folder.file("no/id"), "run", milliseconds(60)}));
                 }),
                 "cannot write"));
}

TEST_CASE("a file of rank 0 with another version or world is refused", "[nccl][boot]") {
  test::folder const folder;
  nccl::file_meeting const meeting{folder.file("id"), "run", milliseconds(1000)};
  static_cast<void>(nccl::share_id_by_file({.rank = 0, .size = 2}, meeting));
  auto const text = [&](nccl::world const& place) {
    return text_of<nccl::mismatch>(
        [&] { static_cast<void>(nccl::share_id_by_file(place, meeting)); });
  };
  CHECK(contains(text({.rank = 1, .size = 3}),
                 "rank 1 is in a world of 3 ranks, rank 0 in one of 2"));
  stand_in::set_version(22'907);
  CHECK(contains(text({.rank = 1, .size = 2}), "rank 1 has NCCL 2.29.7"));
  stand_in::set_version(NCCL_VERSION_CODE);
  CHECK(text({.rank = 1, .size = 2}).empty());
}

TEST_CASE("ranks meet by another communicator", "[nccl][boot]") {
  static_cast<void>(nccl::share_id_by_comm(omnibal::self_communicator()));
  std::mutex mutex;
  std::vector<ncclUniqueId> ids;
  omnibal::thread_communicator::run(3, [&](auto& comm) {
    auto const id = nccl::share_id_by_comm(comm);
    std::lock_guard const lock(mutex);
    ids.push_back(id);
  });
  CHECK((equal(ids[0], ids[1]) && equal(ids[0], ids[2])));
  omnibal::thread_communicator::run(2, [&](auto& comm) {
    stand_in::set_version(comm.rank() == 0 ? NCCL_VERSION_CODE : 22'703);
    test::require(
        contains(text_of<nccl::mismatch>([&] { static_cast<void>(nccl::share_id_by_comm(comm)); }),
                 "rank 1 has NCCL 2.27.3"),
        "another version");
    stand_in::set_version(NCCL_VERSION_CODE);
  });
}

TEST_CASE("communicators come from files, hosts and communicators", "[nccl][boot]") {
  test::watchdog const limit;
  test::folder const folder;
  std::uint16_t const port = test::free_port();
  nccl::communicator_options options;
  options.timeout = milliseconds(20'000);
  stand_in::run_ranks(3, [&](std::size_t rank) {
    nccl::world const place{.rank = rank, .size = 3};
    nccl::communicator by_host =
        nccl::connect_by_host(place, {"localhost", port, "", options.timeout}, options);
    nccl::communicator by_file =
        nccl::connect_by_file(place, {folder.file("id"), "run", options.timeout}, options);
    nccl::communicator by_comm = nccl::connect_by_comm(by_host, options);
    for (nccl::communicator* const comm : {&by_host, &by_file, &by_comm}) {
      test::require(comm->rank() == rank && comm->size() == 3, "the place of a rank");
      test::require(omnibal::all_gather(*comm, rank).at(2) == 2, "ranks gather");
    }
  });
  // Rank 0 removes the file when all have come.
  CHECK(!std::filesystem::exists(folder.file("id")));
}

TEST_CASE("launchers name ranks by variables", "[nccl][boot]") {
  using setting = test::variables::setting;
  std::initializer_list<setting> const none{
      {"RANK", nullptr},          {"WORLD_SIZE", nullptr},
      {"LOCAL_RANK", nullptr},    {"MASTER_ADDR", nullptr},
      {"MASTER_PORT", nullptr},   {"OMPI_COMM_WORLD_RANK", nullptr},
      {"SLURM_PROCID", nullptr},  {"OMPI_COMM_WORLD_SIZE", nullptr},
      {"SLURM_NTASKS", nullptr},  {"OMPI_COMM_WORLD_LOCAL_RANK", nullptr},
      {"SLURM_LOCALID", nullptr}, {"TORCHELASTIC_RUN_ID", nullptr},
      {"SLURM_JOB_ID", nullptr},  {"TORCHELASTIC_RESTART_COUNT", nullptr},
      {"SLURM_STEP_ID", nullptr}};
  test::variables const clean(none);
  auto const text = [&] {
    return text_of<std::invalid_argument>([&] { static_cast<void>(nccl::read_environment()); });
  };
  CHECK(contains(text(), "the variable RANK is not set"));
  test::variables const torchrun({{"RANK", "3"},
                                  {"WORLD_SIZE", "4"},
                                  {"LOCAL_RANK", "1"},
                                  {"MASTER_ADDR", "node7"},
                                  {"MASTER_PORT", "29500"},
                                  {"TORCHELASTIC_RUN_ID", "job"},
                                  {"TORCHELASTIC_RESTART_COUNT", "2"}});
  auto const found = nccl::read_environment();
  CHECK(found.place.rank == 3);
  CHECK(found.place.size == 4);
  CHECK(found.local_rank == 1);
  CHECK(found.host == "node7");
  CHECK(found.port == 29500);
  CHECK(found.run == "job.2");
  for (char const* const bad : {"", "-1", "4x", "99999999999999999999"}) {
    test::variables const wrong({{"WORLD_SIZE", bad}});
    CHECK(contains(text(), std::string("the variable WORLD_SIZE is '") + bad + "'"));
  }
  {
    test::variables const outside({{"RANK", "4"}});
    CHECK(contains(text(), "the rank is 4, must be below"));
  }
  {
    test::variables const too_large({{"MASTER_PORT", "65536"}});
    CHECK(contains(text(), "MASTER_PORT"));
  }
  {
    test::variables const mpirun({{"RANK", nullptr},
                                  {"WORLD_SIZE", nullptr},
                                  {"LOCAL_RANK", nullptr},
                                  {"OMPI_COMM_WORLD_RANK", "5"},
                                  {"OMPI_COMM_WORLD_SIZE", "6"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "5"}});
    CHECK(nccl::read_environment().place.rank == 5);
  }
  test::variables const alone({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", nullptr}});
  nccl::communicator comm = nccl::connect_by_environment();
  CHECK(comm.size() == 1);
  CHECK(comm.device() == 1);
  test::variables const no_host({{"WORLD_SIZE", "2"}});
  CHECK(contains(
      text_of<std::invalid_argument>([] { static_cast<void>(nccl::connect_by_environment()); }),
      "MASTER_ADDR is not set"));
}

}  // namespace
