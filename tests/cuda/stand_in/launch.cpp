// The threads of a kernel as fibers.

#include "launch.hpp"

#include "runtime.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <ucontext.h>

#if defined(__has_feature)
#define STAND_IN_HAS(sanitizer) __has_feature(sanitizer)
#else
#define STAND_IN_HAS(sanitizer) 0
#endif
#if defined(__SANITIZE_THREAD__) || STAND_IN_HAS(thread_sanitizer)
#define STAND_IN_TSAN
#endif
#if defined(STAND_IN_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace stand_in {
namespace {

// What the thread sanitizer is told: each stack is a thread of its own, and only barriers, begin
// and end of a block put what two of them do in order, not the turns that they take on the one
// thread of the host. Threads of a block that wait for each other have a stack each.
#if defined(STAND_IN_TSAN)
#if defined(__clang__)
// The other attribute leaves what clang adds to begin and end of a function.
#define STAND_IN_UNSEEN __attribute__((disable_sanitizer_instrumentation, noinline))
#else
#define STAND_IN_UNSEEN __attribute__((no_sanitize("thread"), noinline))
#endif
class observed_thread {
 public:
  observed_thread() : fiber_(__tsan_create_fiber(0)) {}
  observed_thread(observed_thread const&) = delete;
  observed_thread& operator=(observed_thread const&) = delete;
  ~observed_thread() { __tsan_destroy_fiber(fiber_); }
  void* fiber() const { return fiber_; }

 private:
  void* fiber_;
};
void* observed_now() { return __tsan_get_current_fiber(); }
STAND_IN_UNSEEN void observe(void* fiber) {
  __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
}
void acquire(void* what) { __tsan_acquire(what); }
void release(void* what) { __tsan_release(what); }
#else
#define STAND_IN_UNSEEN __attribute__((noinline))
struct observed_thread {
  void* fiber() const { return nullptr; }
};
void* observed_now() { return nullptr; }
void observe(void*) {}
void acquire(void*) {}
void release(void*) {}
#endif

/// Where a fiber, or the thread of the host, goes on.
struct context {
  ucontext_t begin;
  void* place[5];
  bool has_begun = true;
};

/// Never returns.
STAND_IN_UNSEEN __attribute__((no_sanitize("address"))) void leave_for(context& to) {
  if (to.has_begun) __builtin_longjmp(to.place, 1);
  to.has_begun = true;
  setcontext(&to.begin);
}
/// As swapcontext, but without its two calls of the system.
STAND_IN_UNSEEN void change(context& from, context& to) {
  if (__builtin_setjmp(from.place) == 0) leave_for(to);
}

/// A stack on which threads run, one after the other.
struct fiber {
  static constexpr std::size_t stack_bytes = 256 * 1024;
  context here;
  std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]};
  observed_thread observed;
};

/// Where threads wait for all others.
struct barrier {
  std::vector<std::size_t> waiting;
};

struct warp {
  barrier together;
  /// Values that the lanes show each other, and those of the next time, which a fast lane may begin
  /// before a slow one has read.
  std::array<std::array<unsigned, lanes>, 2> values{};
};

struct block {
  std::unique_ptr<unsigned char[]> shared;
  barrier together;
  std::vector<warp> warps;
};

struct thread {
  thread_position position{};
  block* home = nullptr;
  unsigned exchanges = 0;
  /// Where it waits; none before it has begun.
  fiber* suspended = nullptr;
};

/// Runs the threads of blocks until all have ended. One for each thread of the host.
class scheduler {
 public:
  /// Blocks [first, last) of a kernel at once.
  void run(launch_shape const& shape, unsigned first, unsigned last, thread_order order,
           std::function<void()> const& body) {
    order_ = order;
    body_ = &body;
    blocks_.clear();
    blocks_.resize(last - first);
    threads_of_block_ = shape.threads;
    threads_ = std::vector<thread>(std::size_t{last - first} * shape.threads);
    ready_.resize(threads_.size());
    for (std::size_t k = 0; k != threads_.size(); ++k) {
      auto const b = static_cast<unsigned>(k / shape.threads);
      threads_[k].position = {static_cast<unsigned>(k % shape.threads), first + b, shape.blocks};
      threads_[k].home = &blocks_[b];
      ready_[k] = k;
    }
    for (block& each : blocks_) {
      // No more than was asked for, so that a sanitizer finds what lies behind.
      each.shared.reset(new unsigned char[shape.shared_bytes]);
      std::memset(each.shared.get(), 0xcd, shape.shared_bytes);
      each.warps.resize((shape.threads + lanes - 1) / lanes);
    }
    arrange(ready_);
    unfinished_ = threads_.size();
    host_ = observed_now();
    release(&begin_);
    go_on(&host_context_);
    acquire(&end_);
    if (unfinished_ != 0) {
      fail("threads wait at a barrier, and others have ended or wait at another one");
    }
  }

  [[nodiscard]] thread& current() { return threads_[current_]; }
  [[nodiscard]] warp& own_warp() {
    return current().home->warps[current().position.thread / lanes];
  }
  [[nodiscard]] std::size_t threads_of_block() const { return threads_of_block_; }
  [[nodiscard]] std::size_t all_threads() const { return threads_.size(); }
  [[nodiscard]] barrier& of_grid() { return of_grid_; }
  [[nodiscard]] std::mt19937_64& random() { return random_; }

  /// Waits until `all` threads have come to the barrier.
  STAND_IN_UNSEEN void wait(barrier& at, std::size_t all) {
    release(&at);
    observe(host_);
    std::size_t const self = current_;
    at.waiting.push_back(current_);
    if (at.waiting.size() == all) {
      // The last one waits like the others, so that any of them may go on first.
      arrange(at.waiting);
      // No iterators: they would lie on the stack of a thread that the sanitizer takes for another
      // one.
      for (std::size_t k = 0; k != at.waiting.size(); ++k) ready_.push_back(at.waiting[k]);
      at.waiting.clear();
    }
    fiber* const own = running_;
    threads_[self].suspended = own;
    go_on(&own->here);
    running_ = own;
    current_ = self;
    observe(own->observed.fiber());
    acquire(&at);
  }

 private:
  /// The first to run last.
  void arrange(std::vector<std::size_t>& threads) {
    if (order_ == thread_order::random) {
      std::shuffle(threads.begin(), threads.end(), random_);
      return;
    }
    std::sort(threads.begin(), threads.end());
    if (order_ == thread_order::ascending) std::reverse(threads.begin(), threads.end());
  }

  /// Leaves `from` for the next thread, or for the host where none can go on. Returns when it is
  /// the turn of `from`.
  STAND_IN_UNSEEN void go_on(context* from) {
    context* to = &host_context_;
    if (!ready_.empty()) {
      thread& next = threads_[ready_.back()];
      if (next.suspended == nullptr) {
        to = &free_fiber().here;
      } else {
        to = &next.suspended->here;
        next.suspended = nullptr;
        ready_.pop_back();
      }
    }
    if (to != from) change(*from, *to);
  }

  /// One that is in `run_threads`, or about to begin with it.
  fiber& free_fiber() {
    if (!free_.empty()) {
      running_ = free_.back();
      free_.pop_back();
      return *running_;
    }
    all_.push_back(std::make_unique<fiber>());
    release(&begin_);
    running_ = all_.back().get();
    running_->here.has_begun = false;
    ucontext_t& begin_here = running_->here.begin;
    getcontext(&begin_here);
    begin_here.uc_stack.ss_sp = running_->stack.get();
    begin_here.uc_stack.ss_size = fiber::stack_bytes;
    begin_here.uc_link = nullptr;
    auto const self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&begin_here, reinterpret_cast<void (*)()>(&scheduler::begin), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
    return *running_;
  }

  STAND_IN_UNSEEN static void begin(unsigned high, unsigned low) {
    auto const self = (static_cast<std::uintptr_t>(high) << 32) | low;
    for (;;) reinterpret_cast<scheduler*>(self)->run_threads();
  }

  /// Runs threads that have not begun, one after the other, until it is the turn of one that waits.
  /// Returns when there are others again.
  STAND_IN_UNSEEN void run_threads() {
    fiber* const own = running_;
    while (!ready_.empty() && threads_[ready_.back()].suspended == nullptr) {
      std::size_t const self = ready_.back();
      ready_.pop_back();
      running_ = own;
      current_ = self;
      observe(own->observed.fiber());
      acquire(&begin_);
      (*body_)();
      release(&end_);
      observe(host_);
      --unfinished_;
    }
    free_.push_back(own);
    go_on(&own->here);
  }

  [[noreturn]] static void fail(char const* what) {
    std::fprintf(stderr, "stand-in: %s\n", what);
    std::abort();
  }

  thread_order order_ = thread_order::ascending;
  std::mt19937_64 random_;
  std::function<void()> const* body_ = nullptr;
  std::vector<block> blocks_;
  std::vector<thread> threads_;
  std::size_t threads_of_block_ = 0;
  barrier of_grid_;
  /// The threads that can go on, the next one last.
  std::vector<std::size_t> ready_;
  std::size_t unfinished_ = 0;
  /// The thread that runs, and its stack.
  std::size_t current_ = 0;
  fiber* running_ = nullptr;
  context host_context_;
  void* host_ = nullptr;
  char begin_ = 0;
  char end_ = 0;
  std::vector<std::unique_ptr<fiber>> all_;
  std::vector<fiber*> free_;
};

scheduler& own_scheduler() {
  static thread_local scheduler own;
  return own;
}

thread_order order_of_environment() {
  char const* const name = std::getenv("OMNIBAL_THREAD_ORDER");
  std::string_view const order = name == nullptr ? "ascending" : name;
  return order == "random"       ? thread_order::random
         : order == "descending" ? thread_order::descending
                                 : thread_order::ascending;
}

std::atomic<thread_order> chosen_order = order_of_environment();

void run_kernel(launch_shape const& shape, thread_order order, std::function<void()> const& body) {
  scheduler& here = own_scheduler();
  if (shape.is_cooperative) {
    here.run(shape, 0, shape.blocks, order, body);
    return;
  }
  std::vector<unsigned> blocks(shape.blocks);
  std::iota(blocks.begin(), blocks.end(), 0u);
  if (order == thread_order::descending) std::reverse(blocks.begin(), blocks.end());
  if (order == thread_order::random) std::shuffle(blocks.begin(), blocks.end(), here.random());
  for (unsigned const b : blocks) here.run(shape, b, b + 1, order, body);
}

/// The kernels that may take more shared memory than all may.
struct large_kernels {
  std::mutex mutex;
  std::set<void const*> allowed;
};
large_kernels& large() {
  static large_kernels all;
  return all;
}

}  // namespace

void set_thread_order(thread_order order) { chosen_order = order; }

cudaError_t allow_shared_bytes(void const* kernel, std::size_t bytes) {
  if (bytes > most_shared_bytes) return cudaErrorInvalidValue;
  std::lock_guard const lock(large().mutex);
  large().allowed.insert(kernel);
  return cudaSuccess;
}

cudaError_t launch(cudaStream_t stream, launch_shape const& shape, void const* kernel,
                   std::function<void()> body) {
  bool is_allowed = shape.shared_bytes <= usual_shared_bytes;
  if (!is_allowed && shape.shared_bytes <= most_shared_bytes) {
    std::lock_guard const lock(large().mutex);
    is_allowed = large().allowed.contains(kernel);
  }
  if (!is_allowed || shape.blocks == 0 || shape.threads == 0 || shape.threads > 1024) {
    return cudaErrorInvalidValue;
  }
  if (shape.is_cooperative && shape.blocks > multiprocessors * blocks_on_each) {
    return cudaErrorCooperativeLaunchTooLarge;
  }
  enqueue(stream, [shape, order = chosen_order.load(), body = std::move(body)] {
    run_kernel(shape, order, body);
  });
  return cudaSuccess;
}

thread_position position() { return own_scheduler().current().position; }

unsigned char* dynamic_shared_memory() { return own_scheduler().current().home->shared.get(); }

void wait_for_warp() {
  scheduler& here = own_scheduler();
  here.wait(here.own_warp().together, lanes);
}

void wait_for_block() {
  scheduler& here = own_scheduler();
  here.wait(here.current().home->together, here.threads_of_block());
}

void wait_for_grid() {
  scheduler& here = own_scheduler();
  here.wait(here.of_grid(), here.all_threads());
}

void order_memory() {
  static char all = 0;
  acquire(&all);
  release(&all);
}

std::array<unsigned, lanes> const& values_of_warp(unsigned value) {
  scheduler& here = own_scheduler();
  warp& own = here.own_warp();
  auto& values = own.values[here.current().exchanges++ % 2];
  values[here.current().position.thread % lanes] = value;
  here.wait(own.together, lanes);
  return values;
}

}  // namespace stand_in
