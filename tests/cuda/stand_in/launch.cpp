// SPDX-License-Identifier: Apache-2.0
// The threads of a kernel as fibers.

#include "launch.hpp"

#include "runtime.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ucontext.h>

// What a program that is compiled with the thread sanitizer has.
extern "C" {
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void* what);
[[gnu::weak]] void __tsan_release(void* what);
}

namespace stand_in {
namespace {

// What the thread sanitizer is told: each stack is a thread of its own, and only barriers, fences
// with atomic operations between them, begin and end of a launch put what two of them do in order,
// not the turns that they take on the one thread of the host, nor that one block runs after
// another. This file itself is compiled without the sanitizer, which would take its own data for
// that of the kernels.
bool is_observed() { return __tsan_create_fiber != nullptr; }
void* observed_now() { return is_observed() ? __tsan_get_current_fiber() : nullptr; }
void observe(void* fiber) {
  constexpr unsigned without_order = 1;
  if (is_observed()) __tsan_switch_to_fiber(fiber, without_order);
}
void acquire(void* what) {
  if (is_observed()) __tsan_acquire(what);
}
void release(void* what) {
  if (is_observed()) __tsan_release(what);
}
class observed_thread {
 public:
  observed_thread() : fiber_(is_observed() ? __tsan_create_fiber(0) : nullptr) {}
  observed_thread(observed_thread const&) = delete;
  observed_thread& operator=(observed_thread const&) = delete;
  ~observed_thread() {
    if (fiber_ != nullptr) __tsan_destroy_fiber(fiber_);
  }
  [[nodiscard]] void* fiber() const { return fiber_; }

 private:
  void* fiber_;
};

/// What a thread's fences and atomic operations put in order. A fence orders nothing alone: what
/// came before it is seen by who then finds, with an atomic operation, what this thread has changed
/// with one after it, and that behind a fence of its own. So two more threads, for the sanitizer,
/// remember: one what came before the last fence, the other what was found since.
class memory_order {
 public:
  /// A thread begins; `self` is what the sanitizer takes it for, `host` the thread of the host,
  /// whose all memory of the stand-in is.
  void begin(void* self, void* host) {
    self_ = self;
    host_ = host;
    has_fence_ = false;
    has_found_ = false;
  }
  void fence() {
    if (!is_observed()) return;
    if (has_found_) {
      observe(found_->fiber());
      release(&found_mark_);
      observe(self_);
      acquire(&found_mark_);
    }
    release(&fence_mark_);
    observe(host_);
    if (released_ == nullptr) released_ = std::make_unique<observed_thread>();
    observe(released_->fiber());
    acquire(&fence_mark_);
    observe(self_);
    has_fence_ = true;
  }
  /// Of all words that were changed behind a fence; empty between launches.
  using words = std::map<void const*, char>;
  /// An atomic operation that reads and changes a word.
  void change(words& all, void const* word) {
    if (!is_observed()) return;
    observe(host_);
    auto const known = all.find(word);
    if (known != all.end()) {
      if (found_ == nullptr) found_ = std::make_unique<observed_thread>();
      observe(found_->fiber());
      acquire(&known->second);
      observe(host_);
      has_found_ = true;
    }
    if (has_fence_) {
      char& mark = all[word];
      observe(released_->fiber());
      release(&mark);
    }
    observe(self_);
  }

 private:
  void* self_ = nullptr;
  void* host_ = nullptr;
  bool has_fence_ = false;
  bool has_found_ = false;
  char fence_mark_ = 0;
  char found_mark_ = 0;
  std::unique_ptr<observed_thread> released_;
  std::unique_ptr<observed_thread> found_;
};

/// Where a fiber, or the thread of the host, goes on.
struct context {
  ucontext_t begin;
  void* place[5];
  bool has_begun = true;
};

/// A compiler that believed it to return might jump to it from `change` and give up the stack to
/// which that goes back.
[[noreturn]] __attribute__((noinline, no_sanitize("address"))) void leave_for(context& to) {
  if (to.has_begun) __builtin_longjmp(to.place, 1);
  to.has_begun = true;
  setcontext(&to.begin);
  std::abort();
}
/// As swapcontext, but without its two calls of the system.
[[gnu::noinline]] void change(context& from, context& to) {
  if (__builtin_setjmp(from.place) == 0) leave_for(to);
}

/// A stack on which threads run, one after the other.
struct fiber {
  explicit fiber(unsigned which) : set(which) {}

  static constexpr std::size_t stack_bytes = 256 * 1024;
  context here;
  std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]};
  observed_thread observed;
  memory_order order;
  unsigned set;
};

/// Where threads wait for all others.
struct barrier {
  std::vector<std::size_t> waiting;
  /// What the thread sanitizer sees, in turn: who goes on is after what came before the barrier,
  /// and not after what others did from there to the next time.
  std::array<char, 2> meetings{};
  unsigned meeting = 0;
};

struct warp {
  barrier together;
  /// What its lanes are in, those that have come, and what each says and whom it asks.
  collective what{};
  unsigned mask = 0;
  unsigned present = 0;
  std::array<unsigned, lanes> says{};
  std::array<unsigned, lanes> asked{};
  std::array<unsigned, lanes> answers{};
};

struct block {
  std::unique_ptr<unsigned char[]> shared;
  barrier together;
  std::vector<warp> warps;
};

struct thread {
  thread_position position{};
  block* home = nullptr;
  /// Where it waits; none before it has begun.
  fiber* suspended = nullptr;
};

[[noreturn]] void fail(std::string const& what) {
  std::fprintf(stderr, "stand-in: %s\n", what.c_str());
  std::abort();
}

/// As device code writes it.
std::string call(collective what, unsigned mask) {
  constexpr std::array names{"__syncwarp",        "__ballot_sync",     "__reduce_add_sync",
                             "__reduce_min_sync", "__reduce_max_sync", "__reduce_or_sync",
                             "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",
                             "__shfl_xor_sync"};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s with mask 0x%08x",
                names[static_cast<std::size_t>(what)], mask);
  return text.data();
}

/// Runs the threads of blocks until all have ended. One for each thread of the host.
class scheduler {
 public:
  /// Blocks [first, last) of a kernel at once.
  void run(launch_shape const& shape, unsigned first, unsigned last, thread_order order,
           std::function<void()> const& body) {
    order_ = order;
    body_ = &body;
    past_.push_back(std::move(blocks_));
    blocks_ = std::vector<block>(last - first);
    if (is_observed()) set_ = static_cast<unsigned>(past_.size() % fiber_sets);
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
    if (unfinished_ != 0) fail_waiting();
  }

  /// All blocks of a kernel have run.
  void end_launch() {
    acquire(&end_);
    past_.clear();
    changed_words_.clear();
  }

  [[nodiscard]] thread& current() { return threads_[current_]; }
  [[nodiscard]] warp& own_warp() {
    return current().home->warps[current().position.thread / lanes];
  }
  [[nodiscard]] std::size_t threads_of_block() const { return threads_of_block_; }
  [[nodiscard]] std::size_t all_threads() const { return threads_.size(); }
  [[nodiscard]] barrier& of_grid() { return of_grid_; }
  void fence() { running_->order.fence(); }
  void change_word(void const* word) { running_->order.change(changed_words_, word); }
  [[nodiscard]] std::mt19937_64& random() { return random_; }

  /// Waits until `all` threads have come to the barrier, after what each of them did before.
  void wait(barrier& at, std::size_t all) {
    void* const meeting = &at.meetings[at.meeting % 2];
    release(meeting);
    wait_without_order(at, all);
    acquire(meeting);
  }

  /// Ends the launch. What its threads have on their stacks is lost, as they are.
  [[noreturn]] void trap() {
    // What they did comes before what follows the launch.
    for (auto const& each : all_) {
      observe(each->observed.fiber());
      release(&end_);
    }
    observe(host_);
    ready_.clear();
    unfinished_ = 0;
    of_grid_ = {};
    leave_for(host_context_);
  }

  /// The same for collectives that promise no order of memory.
  [[gnu::noinline]] void wait_without_order(barrier& at, std::size_t all) {
    observe(host_);
    std::size_t const self = current_;
    at.waiting.push_back(current_);
    if (at.waiting.size() == all) {
      // The last one waits like the others, so that any of them may go on first.
      arrange(at.waiting);
      // No iterators: they would lie on the stack of a thread that the sanitizer takes for another
      // one, and see them where the linker takes a function of the library from another file.
      for (std::size_t k = 0; k != at.waiting.size(); ++k) ready_.push_back(at.waiting[k]);
      at.waiting.clear();
      ++at.meeting;
    }
    fiber* const own = running_;
    threads_[self].suspended = own;
    go_on(&own->here);
    running_ = own;
    current_ = self;
    observe(own->observed.fiber());
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
  [[gnu::noinline]] void go_on(context* from) {
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
    std::deque<fiber*>& free = free_[set_];
    if (!free.empty() && (!is_observed() || made_[set_] >= min_fibers)) {
      running_ = free.front();
      free.pop_front();
      return *running_;
    }
    all_.push_back(std::make_unique<fiber>(set_));
    ++made_[set_];
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

  [[gnu::noinline]] static void begin(unsigned high, unsigned low) {
    auto const self = (static_cast<std::uintptr_t>(high) << 32) | low;
    for (;;) reinterpret_cast<scheduler*>(self)->run_threads();
  }

  /// Runs threads that have not begun, one after the other, until it is the turn of one that waits;
  /// a single one where they are observed. Returns when there are others again.
  [[gnu::noinline]] void run_threads() {
    fiber* const own = running_;
    do {
      std::size_t const self = ready_.back();
      ready_.pop_back();
      running_ = own;
      current_ = self;
      observe(own->observed.fiber());
      acquire(&begin_);
      own->order.begin(own->observed.fiber(), host_);
      (*body_)();
      release(&end_);
      observe(host_);
      --unfinished_;
    } while (!is_observed() && !ready_.empty() && threads_[ready_.back()].suspended == nullptr);
    free_[own->set].push_back(own);
    go_on(&own->here);
  }

  [[noreturn]] void fail_waiting() const {
    std::string lost;
    for (block const& each : blocks_) {
      for (warp const& own : each.warps) {
        if (own.present != 0) lost = ", among them lanes that call " + call(own.what, own.mask);
      }
    }
    fail("threads wait at a barrier, and others have ended or wait at another one" + lost);
  }

  /// Where the thread sanitizer looks on: the threads of a block share no fiber with those of the
  /// two blocks before, and no two of so many threads that begin one after the other share one.
  static constexpr unsigned fiber_sets = 3;
  static constexpr std::size_t min_fibers = 64;

  thread_order order_ = thread_order::ascending;
  std::mt19937_64 random_;
  std::function<void()> const* body_ = nullptr;
  std::vector<block> blocks_;
  /// Blocks that have ended, until the launch has: other blocks, which are not after them, get none
  /// of their shared memory and of what the thread sanitizer sees of their barriers.
  std::vector<std::vector<block>> past_;
  std::vector<thread> threads_;
  std::size_t threads_of_block_ = 0;
  barrier of_grid_;
  memory_order::words changed_words_;
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
  /// For each set: the fibers that nobody uses, and how many there are in all.
  std::array<std::deque<fiber*>, fiber_sets> free_;
  std::array<std::size_t, fiber_sets> made_{};
  unsigned set_ = 0;
};

/// What a device leaves undefined, and two collectives of a warp at once, ends the program.
void check_lane(warp const& own, unsigned lane, collective what, unsigned mask, unsigned asked) {
  bool const is_same = own.present == 0 || (what == own.what && mask == own.mask);
  bool const names_both = (mask >> lane & mask >> asked & 1) != 0;
  if (is_same && names_both) return;
  std::string const calls = "lane " + std::to_string(lane) + " calls " + call(what, mask);
  if (!is_same) fail(calls + ", and others of its warp " + call(own.what, own.mask));
  unsigned const missing = (mask >> lane & 1) == 0 ? lane : asked;
  fail(calls + ", which does not name lane " + std::to_string(missing));
}

/// What all lanes get of a ballot or a reduction.
unsigned combined(warp const& own) {
  unsigned result = own.what == collective::reduce_min ? ~0u : 0;
  for (unsigned lane = 0; lane != lanes; ++lane) {
    if ((own.present >> lane & 1) == 0) continue;
    unsigned const value = own.says[lane];
    if (own.what == collective::ballot) result |= (value != 0 ? 1u : 0u) << lane;
    if (own.what == collective::reduce_add) result += value;
    if (own.what == collective::reduce_min) result = std::min(result, value);
    if (own.what == collective::reduce_max) result = std::max(result, value);
    if (own.what == collective::reduce_or) result |= value;
  }
  return result;
}

/// All lanes have come.
void answer(warp& own) {
  bool const is_shuffle = own.what >= collective::shuffle;
  unsigned const of_all = combined(own);
  for (unsigned lane = 0; lane != lanes; ++lane) {
    // The others may still have to take their last answer.
    if ((own.present >> lane & 1) == 0) continue;
    own.answers[lane] = is_shuffle ? own.says[own.asked[lane]] : of_all;
  }
  own.present = 0;
}

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
std::atomic<bool> trapped = false;

unsigned multiprocessors_of_environment() {
  char const* const number = std::getenv("OMNIBAL_MULTIPROCESSORS");
  unsigned long const value = number == nullptr ? 3 : std::strtoul(number, nullptr, 10);
  if (value == 0 || value > 1000) fail("OMNIBAL_MULTIPROCESSORS must be in [1, 1000]");
  return static_cast<unsigned>(value);
}

void run_kernel(launch_shape const& shape, thread_order order, std::function<void()> const& body) {
  scheduler& here = own_scheduler();
  if (shape.is_cooperative) {
    here.run(shape, 0, shape.blocks, order, body);
    here.end_launch();
    return;
  }
  std::vector<unsigned> blocks(shape.blocks);
  std::iota(blocks.begin(), blocks.end(), 0u);
  if (order == thread_order::descending) std::reverse(blocks.begin(), blocks.end());
  if (order == thread_order::random) std::shuffle(blocks.begin(), blocks.end(), here.random());
  for (unsigned const b : blocks) {
    if (!trapped) here.run(shape, b, b + 1, order, body);
  }
  here.end_launch();
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

void trap() {
  trapped = true;
  own_scheduler().trap();
}
bool has_trapped() { return trapped; }
void forget_trap() { trapped = false; }

unsigned multiprocessors() {
  static unsigned const number = multiprocessors_of_environment();
  return number;
}

cudaError_t allow_shared_bytes(void const* kernel, std::size_t bytes) {
  if (bytes > max_shared_bytes) return cudaErrorInvalidValue;
  std::lock_guard const lock(large().mutex);
  large().allowed.insert(kernel);
  return cudaSuccess;
}

cudaError_t launch(cudaStream_t stream, launch_shape const& shape, void const* kernel,
                   std::function<void()> body) {
  bool is_allowed = shape.shared_bytes <= usual_shared_bytes;
  if (!is_allowed && shape.shared_bytes <= max_shared_bytes) {
    std::lock_guard const lock(large().mutex);
    is_allowed = large().allowed.contains(kernel);
  }
  if (!is_allowed || shape.blocks == 0 || shape.threads == 0 || shape.threads > 1024) {
    return cudaErrorInvalidValue;
  }
  if (shape.is_cooperative && shape.blocks > multiprocessors() * blocks_on_each) {
    return cudaErrorCooperativeLaunchTooLarge;
  }
  if (trapped) return cudaErrorLaunchFailure;
  enqueue(stream, [shape, order = chosen_order.load(), body = std::move(body)] {
    if (!trapped) run_kernel(shape, order, body);
  });
  return cudaSuccess;
}

thread_position position() { return own_scheduler().current().position; }

unsigned char* dynamic_shared_memory() { return own_scheduler().current().home->shared.get(); }

void wait_for_block() {
  scheduler& here = own_scheduler();
  here.wait(here.current().home->together, here.threads_of_block());
}

void wait_for_grid() {
  scheduler& here = own_scheduler();
  here.wait(here.of_grid(), here.all_threads());
}

void order_memory() { own_scheduler().fence(); }
void change_word(void const* word) { own_scheduler().change_word(word); }

unsigned meet_lanes(collective what, unsigned mask, unsigned says, unsigned asked) {
  scheduler& here = own_scheduler();
  warp& own = here.own_warp();
  unsigned const lane = here.current().position.thread % lanes;
  check_lane(own, lane, what, mask, asked);
  own.what = what;
  own.mask = mask;
  own.present |= 1u << lane;
  own.says[lane] = says;
  own.asked[lane] = asked;
  if (own.present == mask) answer(own);
  auto const all = static_cast<std::size_t>(std::popcount(mask));
  if (what == collective::sync) {
    here.wait(own.together, all);
  } else {
    here.wait_without_order(own.together, all);
  }
  return own.answers[lane];
}

}  // namespace stand_in
