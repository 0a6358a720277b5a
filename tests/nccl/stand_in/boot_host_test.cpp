// How ranks meet at a port, with real sockets; only the ids come from the stand-in.

#include "boot_bodies.hpp"
#include "catch.hpp"
#include "meetings.hpp"
#include "rank_checks.hpp"
#include "stand_in.hpp"

#include <omnibal/cuda/nccl/detail/boot_message.hpp>
#include <omnibal/cuda/nccl/detail/boot_socket.hpp>
#include <omnibal/cuda/nccl/detail/deadline.hpp>
#include <omnibal/cuda/nccl/share_id_by_host.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

#include <nccl.h>

namespace {

namespace nccl = omnibal::nccl;
using stand_in::equal;
using stand_in::on_threads;
using std::chrono::milliseconds;
using test::contains;
using test::text_of;

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
      auto const turned_away = test::error_of<nccl::timeout, nccl::mismatch>(
          [&] { static_cast<void>(nccl::share_id_by_host({.rank = 1, .size = 2}, other)); });
      test::require(turned_away == test::seen::own, "another run is turned away");
      return {};
    }
    if (rank == 1) std::this_thread::sleep_for(milliseconds(600));
    return nccl::share_id_by_host({.rank = rank, .size = 2}, meeting);
  });
  CHECK(found.texts[0].empty());
  CHECK(found.texts[1].empty());
  CHECK(found.texts[3].empty());
  CHECK(equal(found.ids[0], found.ids[1]));
}

TEST_CASE("who connects and goes away is missed, not waited for beyond the time", "[nccl][boot]") {
  nccl::host_meeting const meeting{"localhost", test::free_port(), "", milliseconds(400)};
  auto const start = std::chrono::steady_clock::now();
  auto const found = on_threads<nccl::timeout>(2, [&](std::size_t rank) -> ncclUniqueId {
    if (rank == 0) return nccl::share_id_by_host({.rank = 0, .size = 2}, meeting);
    std::this_thread::sleep_for(milliseconds(100));
    nccl::detail::deadline const limit(milliseconds(200));
    static_cast<void>(nccl::detail::connect_once({"localhost", meeting.port}, limit));
    return {};
  });
  CHECK(contains(found.texts[0], "1 of 2 ranks have not come: 1"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

}  // namespace
