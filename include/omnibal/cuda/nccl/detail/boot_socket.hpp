#pragma once

/// \file
/// Connections by which ranks meet.

#include <omnibal/check.hpp>
#include <omnibal/cuda/nccl/detail/boot_file.hpp>
#include <omnibal/cuda/nccl/detail/deadline.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace omnibal::inline v0::nccl::detail {

/// A host by name or number, and a port.
struct endpoint {
  std::string host;
  std::uint16_t port = 0;

  [[nodiscard]] std::string text() const {
    bool const is_number_6 = host.find(':') != std::string::npos;
    return (is_number_6 ? "[" + host + "]" : host) + ":" + omnibal::detail::to_text(port);
  }
};

/// Waits until the descriptor has one of the `events`, or the time is over; false then.
[[nodiscard]] inline bool wait_for(descriptor const& socket, short events,
                                   std::chrono::milliseconds longest) {
  pollfd what{socket.get(), events, 0};
  int const limit = static_cast<int>(std::min<std::int64_t>(longest.count(), INT_MAX));
  return ::poll(&what, 1, limit) > 0;
}

/// Sends or receives what the socket takes or has at once: how much of `bytes` is done by then, or
/// -1 where the other side is gone.
template <class Transfer>
[[nodiscard]] ssize_t transfer_some(Transfer const& transfer, std::size_t done, std::size_t bytes) {
  while (done != bytes) {
    ssize_t const count = transfer(done, bytes - done);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else {
      return -1;
    }
  }
  return static_cast<ssize_t>(done);
}

template <class T>
[[nodiscard]] ssize_t send_some(descriptor const& socket, T const& value, std::size_t done) {
  auto const* const from = reinterpret_cast<char const*>(&value);
  return transfer_some(
      [&](std::size_t first, std::size_t count) {
        return ::send(socket.get(), from + first, count, MSG_NOSIGNAL);
      },
      done, sizeof(T));
}

template <class T>
[[nodiscard]] ssize_t receive_some(descriptor const& socket, T& value, std::size_t done) {
  auto* const to = reinterpret_cast<char*>(&value);
  return transfer_some(
      [&](std::size_t first, std::size_t count) {
        return ::recv(socket.get(), to + first, count, 0);
      },
      done, sizeof(T));
}

/// Sends the whole value in time; false where that fails.
template <class T>
[[nodiscard]] bool send_all(descriptor const& socket, T const& value, deadline const& limit) {
  ssize_t done = 0;
  while (done >= 0 && done != static_cast<ssize_t>(sizeof(T))) {
    if (!wait_for(socket, POLLOUT, limit.left())) return false;
    done = send_some(socket, value, static_cast<std::size_t>(done));
  }
  return done >= 0;
}

template <class T>
[[nodiscard]] bool receive_all(descriptor const& socket, T& value, deadline const& limit) {
  ssize_t done = 0;
  while (done >= 0 && done != static_cast<ssize_t>(sizeof(T))) {
    if (!wait_for(socket, POLLIN, limit.left())) return false;
    done = receive_some(socket, value, static_cast<std::size_t>(done));
  }
  return done >= 0;
}

inline void send_at_once(descriptor const& socket) {
  int const on = 1;
  static_cast<void>(::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
}

/// Listens on all addresses of this host.
[[nodiscard]] inline descriptor listen_on(std::string_view function, std::uint16_t port) {
  constexpr int kind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  int const on = 1;
  int const off = 0;
  // One socket for both versions of the protocol, where the host has the newer one.
  descriptor socket(::socket(AF_INET6, kind, 0));
  int bound = -1;
  if (socket.is_open()) {
    static_cast<void>(::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)));
    static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    address.sin6_port = htons(port);
    bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  if (bound != 0 && errno != EADDRINUSE && errno != EACCES) {
    socket = descriptor(::socket(AF_INET, kind, 0));
    if (!socket.is_open()) throw_system(function, "cannot open a socket", errno);
    static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(port);
    bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  if (bound != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    throw_system(function, "cannot listen on port " + omnibal::detail::to_text(port), errno);
  }
  return socket;
}

/// What came of an attempt to connect.
struct attempt {
  descriptor socket;
  std::string reason;
};

/// Tries each address of the host once.
[[nodiscard]] inline attempt connect_once(endpoint const& to, deadline const& limit) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int const code =
      ::getaddrinfo(to.host.c_str(), omnibal::detail::to_text(to.port).c_str(), &hints, &found);
  if (code != 0) return {descriptor(), ::gai_strerror(code)};
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> const addresses(found, &::freeaddrinfo);
  attempt result{descriptor(), "no address"};
  for (addrinfo const* a = found; a != nullptr; a = a->ai_next) {
    descriptor socket(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) {
      result.reason = std::generic_category().message(errno);
      continue;
    }
    int error = ::connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      // A host that does not answer must not use up the time of the next address.
      auto const share = std::min<std::chrono::milliseconds>(limit.left(), std::chrono::seconds(5));
      socklen_t size = sizeof(error);
      if (!wait_for(socket, POLLOUT, share)) {
        error = ETIMEDOUT;
      } else if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
      }
    }
    if (error == 0) {
      send_at_once(socket);
      return {std::move(socket), ""};
    }
    result.reason = std::generic_category().message(error);
  }
  return result;
}

}  // namespace omnibal::inline v0::nccl::detail
