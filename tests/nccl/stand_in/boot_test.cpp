// SPDX-License-Identifier: Apache-2.0
// How ranks meet by files, communicators and launchers, with real files; only the ids come from the
// stand-in.

#include "boot_bodies.hpp"
#include "catch.hpp"
#include "meetings.hpp"
#include "rank_checks.hpp"
#include "stand_in.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/cuda/nccl/connect.hpp>

#include <chrono>
#include <cstddef>
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
using stand_in::equal;
using stand_in::on_threads;
using std::chrono::milliseconds;
using test::contains;
using test::text_of;

TEST_CASE("a wrong argument of a meeting is refused at once", "[nccl][boot]") {
  using invalid = std::invalid_argument;
  auto const from = [&](nccl::world const& place, milliseconds timeout) {
    return text_of<invalid>([&] {
      static_cast<void>(nccl::share_id_by_file(place, {"/tmp/a", "run", timeout}));
    });
  };
  CHECK(contains(from({.rank = 2, .size = 2}, milliseconds(9)), "the rank is 2"));
  CHECK(contains(from({.rank = 0, .size = 0}, milliseconds(9)), "the size of the world is 0"));
  CHECK(contains(from({.rank = 0, .size = 2}, milliseconds(0)), "timeout is 0"));
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

TEST_CASE("an id that nccl cannot make is an error on all ranks", "[nccl][boot]") {
  omnibal::thread_communicator::run(2, [&](auto& comm) {
    stand_in::set_giving_ids(comm.rank() != 0);
    auto const caught = test::error_of<nccl::error, omnibal::communication_error>(
        [&] { static_cast<void>(nccl::share_id_by_comm(comm)); });
    test::require(caught == (comm.rank() == 0 ? test::seen::own : test::seen::remote), "no id");
    stand_in::set_giving_ids(true);
  });
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
  // What cannot be read is not waited for.
  CHECK(contains(text_of<std::system_error>([&] {
                   static_cast<void>(nccl::share_id_by_file(
                       {.rank = 1, .size = 2}, {folder.file("."), "run", milliseconds(60'000)}));
                 }),
                 "cannot read"));
}

TEST_CASE("a symbolic link in the place of the file is not followed", "[nccl][boot]") {
  test::folder const folder;
  std::ofstream(folder.file("victim")) << "kept";
  nccl::file_meeting const meeting{folder.file("id"), "run", milliseconds(60)};
  std::filesystem::create_symlink(folder.file("victim"), meeting.path);
  CHECK(contains(text_of<std::system_error>([&] {
                   static_cast<void>(nccl::share_id_by_file({.rank = 1, .size = 2}, meeting));
                 }),
                 "cannot read"));
  static_cast<void>(nccl::share_id_by_file({.rank = 0, .size = 2}, meeting));
  CHECK(!std::filesystem::is_symlink(meeting.path));
  CHECK(std::filesystem::file_size(folder.file("victim")) == 4);
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

TEST_CASE("communicators come from files and communicators", "[nccl][boot]") {
  test::watchdog const limit;
  test::folder const folder;
  nccl::communicator_options options;
  options.timeout = milliseconds(20'000);
  stand_in::run_ranks(3, [&](std::size_t rank) {
    nccl::world const place{.rank = rank, .size = 3};
    nccl::communicator by_file =
        nccl::connect_by_file(place, {folder.file("id"), "run", options.timeout}, options);
    nccl::communicator by_comm = nccl::connect_by_comm(by_file, options);
    for (nccl::communicator* const comm : {&by_file, &by_comm}) {
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
      {"LOCAL_RANK", nullptr},    {"NCCL_COMM_ID", nullptr},
      {"SLURM_PROCID", nullptr},  {"OMPI_COMM_WORLD_RANK", nullptr},
      {"SLURM_NTASKS", nullptr},  {"OMPI_COMM_WORLD_SIZE", nullptr},
      {"SLURM_LOCALID", nullptr}, {"OMPI_COMM_WORLD_LOCAL_RANK", nullptr}};
  test::variables const clean(none);
  auto const text = [&] {
    return text_of<std::invalid_argument>([&] { static_cast<void>(nccl::read_environment()); });
  };
  CHECK(contains(text(), "the variable RANK is not set"));
  test::variables const torchrun({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}});
  auto const found = nccl::read_environment();
  CHECK(found.place.rank == 3);
  CHECK(found.place.size == 4);
  CHECK(found.local_rank == 1);
  for (char const* const bad : {"", "-1", "4x", "99999999999999999999"}) {
    test::variables const wrong({{"WORLD_SIZE", bad}});
    CHECK(contains(text(), std::string("the variable WORLD_SIZE is '") + bad + "'"));
  }
  {
    test::variables const outside({{"RANK", "4"}});
    CHECK(contains(text(), "the rank is 4, must be below"));
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
  test::variables const alone({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  nccl::communicator comm = nccl::connect_by_environment();
  CHECK(comm.size() == 1);
  CHECK(comm.device() == 1);
  test::variables const two({{"WORLD_SIZE", "2"}});
  CHECK(contains(
      text_of<std::invalid_argument>([] { static_cast<void>(nccl::connect_by_environment()); }),
      "the variable NCCL_COMM_ID is not set, must be host:port of rank 0"));
  test::variables const with_id({{"RANK", "1"}, {"NCCL_COMM_ID", "127.0.0.1:29500"}});
  nccl::communicator_options options;
  options.timeout = milliseconds(100);
  CHECK(contains(
      text_of<nccl::timeout>([&] { static_cast<void>(nccl::connect_by_environment(options)); }),
      "not all ranks have come within 100 ms"));
}

}  // namespace
