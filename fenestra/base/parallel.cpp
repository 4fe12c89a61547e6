// The pool behind parallel_for: one for the process, of threads that sleep while nobody calls.
//
// A call is a `Job` on its caller's stack. The caller takes ranges itself until none is left;
// helpers that come take some of them, and nobody waits for a helper that has not come. All state
// is constant-initialised and never destroyed, so that calls work in constructors and destructors
// of static objects, and a forked child can begin anew. Read on: docs/decisions/0016-threads.md.
#include <fenestra/base/memory.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/processors.hpp>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

namespace fenestra {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// How long somebody who waits looks again and again before it sleeps: most pauses between two
/// kernels of a network, where waking a sleeper takes 15 us of its caller and 35 us until it comes.
constexpr microseconds kSpin{150};
/// A processor that is given away and comes back later than this is wanted by others.
constexpr microseconds kGivenAway{10};
/// The delays with which helpers are woken while they keep coming too late, and the calls after
/// which a delay is halved all the same.
constexpr microseconds kLeastDelay{25};
constexpr microseconds kMostDelay{1600};
constexpr int kCallsToForget = 64;
/// Work that must be left when helpers are woken late: it takes about half of this to come.
constexpr microseconds kWorthWaking{80};
/// After the system refused a thread, it is not asked again for so long.
constexpr std::chrono::seconds kRefused{1};

/// 0 until somebody asks.
constinit std::atomic<int> thread_count{0};
constinit std::atomic<int> processors{0};

/// True in a body, in helpers and in callers alike.
constinit thread_local bool inside_parallel = false;

int initial_threads() {
  const char* text = std::getenv("FENESTRA_THREADS");
  if (text == nullptr || *text == '\0') {
    return std::min(processors.load(), kMaxThreads);
  }
  const std::string_view value(text);
  int n = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (error != std::errc() || end != value.data() + value.size() || n < 1 || n > kMaxThreads) {
    throw Error(ErrorCode::bad_environment,
                "threads: FENESTRA_THREADS is \"" + std::string(value) +
                    "\", needed a number from 1 to " + std::to_string(kMaxThreads) +
                    "\n  fix: FENESTRA_THREADS=1 for serial work, or unset it to use every "
                    "processor that is available");
  }
  return n;
}

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Looks whether it is done until `deadline`. Gives up early where others want the processor: to
/// sleep is then worth more than to be quick.
template <class Done>
bool spin(Clock::time_point deadline, const Done& done) {
  Clock::time_point now = Clock::now();
  while (now < deadline) {
    for (int i = 0; i < 16; ++i) {
      if (done()) {
        return true;
      }
      pause();
    }
    const Clock::time_point before = Clock::now();
    sched_yield();
    now = Clock::now();
    if (now - before > kGivenAway) {
      break;
    }
  }
  return done();
}

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

/// The same, let go for a scope.
class Unlock {
 public:
  explicit Unlock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_unlock(&mutex_); }
  ~Unlock() { pthread_mutex_lock(&mutex_); }
  Unlock(const Unlock&) = delete;
  Unlock& operator=(const Unlock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

/// One call of parallel_for. Fields of the second group are read and written under the pool's lock;
/// `helpers` is written under it, and the caller looks at it from outside.
struct Job {
  Index n;
  Index grain;
  Index ranges;
  detail::RangeBody body;
  std::atomic<Index> next{0};
  std::atomic<bool> has_failed{false};
  std::exception_ptr failure;

  int places;  ///< for helpers that may still come
  std::atomic<int> helpers{0};
  bool caller_sleeps = false;
  Job* following = nullptr;

  Job(Index size, Index step, detail::RangeBody f)
      : n(size), grain(step), ranges((size - 1) / step + 1), body(f), places(0) {}

  Index ranges_left() const {
    return std::max<Index>(0, ranges - next.load(std::memory_order_relaxed));
  }

  /// Takes one range and runs it; false where none is left.
  bool run_range() noexcept {
    const Index range = next.fetch_add(1, std::memory_order_relaxed);
    if (range >= ranges) {
      return false;
    }
    const Index begin = range * grain;
    try {
      body.call(body.object, begin, begin + std::min(grain, n - begin));
    } catch (...) {
      if (!has_failed.exchange(true)) {
        failure = std::current_exception();
      }
      next.store(ranges, std::memory_order_relaxed);
    }
    return true;
  }
};

/// Invariants, under the lock: busy <= workers; sleeping + spinning + busy <= workers, the others
/// being on their way; woken <= sleeping; running < thread_count whenever a helper joins.
class Pool {
 public:
  void run(Job& job, int team);

  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }
  /// In a forked child, with the lock held: the workers and the other callers are gone.
  void begin_anew();
  /// No worker is left that could be waiting; calls run in their caller from now on.
  void stop();

 private:
  struct Worker {
    pthread_t thread;
    bool is_busy;
  };

  static void* work(void* worker);
  void work(Worker& worker);
  Job* claim();
  void leave(Job& job);
  int threads_to_spare() const;
  int helpers_wanted(const Job& job) const;
  void start_workers(int wanted);
  void wake(int wanted);
  void note_wake(bool was_useful);
  bool may_spin() const;

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_up_ = PTHREAD_COND_INITIALIZER;
  pthread_cond_t helpers_left_ = PTHREAD_COND_INITIALIZER;
  Job* jobs_ = nullptr;
  int workers_ = 0;
  int busy_ = 0;
  /// Callers and busy workers. Written under the lock, seen by workers between two ranges.
  std::atomic<int> running_{0};
  int sleeping_ = 0;
  int spinning_ = 0;
  int woken_ = 0;  ///< of the sleeping
  bool stopped_ = false;
  /// Grows with every chance for a helper; what those who spin look at.
  std::atomic<unsigned> chances_{0};
  /// Before sleepers are woken for a job; not 0 while they keep finding nothing to do.
  microseconds delay_{0};
  int delayed_calls_ = 0;
  Clock::time_point ask_again_{};
  Worker worker_[kMaxThreads] = {};
};

constinit Pool pool;

/// More threads than processors would spin against each other.
bool Pool::may_spin() const {
  return thread_count.load(std::memory_order_relaxed) <= processors.load(std::memory_order_relaxed);
}

/// Below 0 where callers came while helpers were at work.
int Pool::threads_to_spare() const {
  return thread_count.load(std::memory_order_relaxed) - running_.load(std::memory_order_relaxed);
}

/// A job that has room for one more, unless as many run as may.
Job* Pool::claim() {
  if (stopped_ || threads_to_spare() <= 0) {
    return nullptr;
  }
  for (Job* job = jobs_; job != nullptr; job = job->following) {
    if (job->places > 0 && job->ranges_left() > 0) {
      --job->places;
      job->helpers.fetch_add(1, std::memory_order_relaxed);
      return job;
    }
  }
  return nullptr;
}

/// Makes room for another; the job may be gone when this returns.
void Pool::leave(Job& job) {
  ++job.places;
  const bool caller_sleeps = job.caller_sleeps;
  if (job.helpers.fetch_sub(1, std::memory_order_release) == 1 && caller_sleeps) {
    pthread_cond_broadcast(&helpers_left_);
  }
}

void Pool::note_wake(bool was_useful) {
  if (was_useful) {
    delay_ = delay_ <= kLeastDelay ? microseconds(0) : delay_ / 2;
  } else {
    delay_ = std::clamp(delay_ * 2, kLeastDelay, kMostDelay);
  }
}

void* Pool::work(void* worker) {
  inside_parallel = true;
  pool.work(*static_cast<Worker*>(worker));
  return nullptr;
}

void Pool::work(Worker& worker) {
  const Lock locked(mutex_);
  bool was_woken = false;
  Clock::time_point deadline = Clock::now() + kSpin;
  while (true) {
    const unsigned seen = chances_.load(std::memory_order_relaxed);
    if (Job* job = claim()) {
      worker.is_busy = true;
      ++busy_;
      running_.fetch_add(1, std::memory_order_relaxed);
      Index ran = 0;
      {
        const Unlock unlocked(mutex_);
        while (threads_to_spare() >= 0 && job->run_range()) {
          ++ran;
        }
      }
      leave(*job);
      running_.fetch_sub(1, std::memory_order_relaxed);
      --busy_;
      worker.is_busy = false;
      if (was_woken) {
        note_wake(ran > 0);
        was_woken = false;
      }
      deadline = Clock::now() + kSpin;
      continue;
    }
    if (was_woken) {
      note_wake(false);
      was_woken = false;
    }
    if (stopped_) {
      return;
    }
    bool is_worth_a_look = false;
    if (may_spin()) {
      ++spinning_;
      {
        const Unlock unlocked(mutex_);
        is_worth_a_look = spin(deadline, [&] { return chances_.load() != seen; });
      }
      --spinning_;
    }
    if (is_worth_a_look || chances_.load() != seen) {
      continue;
    }
    ++sleeping_;
    while (woken_ == 0 && !stopped_) {
      pthread_cond_wait(&wake_up_, &mutex_);
    }
    --sleeping_;
    woken_ = std::max(0, woken_ - 1);
    was_woken = true;
    deadline = Clock::now() + kSpin;
  }
}

int Pool::helpers_wanted(const Job& job) const { return std::min(job.places, threads_to_spare()); }

/// As many as can be had; those who are there do the work otherwise.
void Pool::start_workers(int wanted) {
  if (wanted <= workers_ - busy_ || Clock::now() < ask_again_) {
    return;
  }
  // Signals are for the threads of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (wanted > workers_ - busy_ && workers_ < kMaxThreads) {
    Worker& worker = worker_[workers_];
    worker.is_busy = false;
    if (pthread_create(&worker.thread, nullptr, &Pool::work, &worker) != 0) {
      ask_again_ = Clock::now() + kRefused;
      break;
    }
    ++workers_;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Those who spin come by themselves.
void Pool::wake(int wanted) {
  for (int n = std::min(wanted - spinning_, sleeping_ - woken_); n > 0; --n) {
    ++woken_;
    pthread_cond_signal(&wake_up_);
  }
}

void Pool::run(Job& job, int team) {
  bool wakes_later = false;
  Clock::time_point begin{};
  Clock::time_point later{};
  {
    const Lock locked(mutex_);
    running_.fetch_add(1, std::memory_order_relaxed);
    job.places = team - 1;
    job.following = jobs_;
    jobs_ = &job;
    chances_.fetch_add(1);
    const int wanted = stopped_ ? 0 : helpers_wanted(job);
    start_workers(wanted);
    if (wanted > spinning_ && sleeping_ > woken_) {
      wakes_later = delay_ > microseconds(0);
      if (!wakes_later) {
        wake(wanted);
      } else {
        begin = Clock::now();
        later = begin + delay_;
        if (++delayed_calls_ == kCallsToForget) {
          delayed_calls_ = 0;
          note_wake(true);
        }
      }
    }
  }

  inside_parallel = true;
  for (Index ran = 1; job.run_range(); ++ran) {
    if (!wakes_later) {
      continue;
    }
    const Clock::time_point now = Clock::now();
    if (now >= later && job.ranges_left() * ((now - begin) / ran) >= kWorthWaking) {
      wakes_later = false;
      const Lock locked(mutex_);
      wake(helpers_wanted(job));
    }
  }
  inside_parallel = false;

  bool is_alone = false;
  {
    const Lock locked(mutex_);
    Job** link = &jobs_;
    while (*link != &job) {
      link = &(*link)->following;
    }
    *link = job.following;
    running_.fetch_sub(1, std::memory_order_relaxed);
    is_alone = job.helpers.load(std::memory_order_relaxed) == 0;
    if (jobs_ != nullptr) {
      chances_.fetch_add(1);
      wake(1);
    }
  }
  if (is_alone) {
    return;
  }
  const auto have_left = [&] { return job.helpers.load(std::memory_order_acquire) == 0; };
  if (may_spin() && spin(Clock::now() + kSpin, have_left)) {
    return;
  }
  const Lock locked(mutex_);
  job.caller_sleeps = true;
  while (!have_left()) {
    pthread_cond_wait(&helpers_left_, &mutex_);
  }
}

void Pool::begin_anew() {
  wake_up_ = PTHREAD_COND_INITIALIZER;
  helpers_left_ = PTHREAD_COND_INITIALIZER;
  jobs_ = nullptr;
  workers_ = busy_ = sleeping_ = spinning_ = woken_ = 0;
  running_ = 0;
  ask_again_ = {};
}

void Pool::stop() {
  lock();
  stopped_ = true;
  pthread_cond_broadcast(&wake_up_);
  chances_.fetch_add(1);
  const int workers = workers_;
  bool is_busy[kMaxThreads];
  for (int i = 0; i < workers; ++i) {
    is_busy[i] = worker_[i].is_busy;
  }
  unlock();
  for (int i = 0; i < workers; ++i) {
    // One that is busy works for a thread that goes on while the process ends, or is itself the
    // thread that ends the process.
    if (is_busy[i]) {
      pthread_detach(worker_[i].thread);
    } else {
      pthread_join(worker_[i].thread, nullptr);
    }
  }
}

/// Ties the pool to the life of the library, and to forks.
class Attendant {
 public:
  Attendant() {
    // Its lock has to know of forks before there are threads.
    detail::BufferCache::instance();
    pthread_atfork([] { pool.lock(); },
                   [] { pool.unlock(); },
                   [] {
                     pool.begin_anew();
                     pool.unlock();
                   });
  }
  ~Attendant() { pool.stop(); }
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;
};

const Attendant attendant;

}  // namespace

int threads() {
  int n = thread_count.load(std::memory_order_relaxed);
  if (n == 0) {
    processors = detail::available_processors();
    const int initial = initial_threads();
    // Somebody may have set the number meanwhile; then that one counts.
    n = thread_count.compare_exchange_strong(n, initial) ? initial : n;
  }
  return n;
}

void set_threads(int n) {
  if (n < 1 || n > kMaxThreads) {
    throw Error(
        ErrorCode::invalid_option,
        "set_threads: " + std::to_string(n) + " threads, needed 1 to " +
            std::to_string(kMaxThreads) + "\n  fix: " +
            (n < 1 ? "set_threads(1) for serial work" : "as many threads as there are processors"));
  }
  if (processors == 0) {  // read once: the files of cgroups take longer than many a call
    processors = detail::available_processors();
  }
  thread_count = n;
}

namespace detail {

void parallel_for(Index n, Index grain, RangeBody body) {
  if (n <= 0) {
    return;
  }
  grain = std::max<Index>(grain, 1);
  if (n <= grain) {
    body.call(body.object, 0, n);
    return;
  }
  Job job(n, grain, body);
  const int team = inside_parallel ? 1 : static_cast<int>(std::min<Index>(threads(), job.ranges));
  if (team > 1) {
    pool.run(job, team);
  } else {
    while (job.run_range()) {
    }
  }
  if (job.failure) {
    std::rethrow_exception(job.failure);
  }
}

}  // namespace detail

}  // namespace fenestra
