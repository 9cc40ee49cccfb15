// SPDX-License-Identifier: Apache-2.0
// Ranks that die, hang, differ or do not come, and transports that fail or lie, in each call of a group.
//
//   group_faults [--rounds N] [--fault NAME] [--call NAME] [--mpiexec PROGRAM]
//
// The ranks are processes that sockets connect. The other ranks must report the fault with its rank, the call and its
// number, and not by the timeout unless the fault is silence; other work on their devices must go on, and every process
// must end. With --mpiexec processes of MPI are killed too; then the launcher must end all of them. Odd rounds use a
// stream of their own. Limits of time only end what hangs: a busy machine takes seconds for a call.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <compute/compute.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace group_faults {
namespace {

using compute::Group;
using compute::Stream;
using compute::Tensor;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int32_t kRanks = 3, kBad = 1;           // the rank with the fault
constexpr auto kTimeout = milliseconds(1000);     // of ranks that wait for one that does not come
constexpr int64_t kCount = int64_t{3} * 700'001;  // three chunks

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

const compute::Device& cpu() {
  static const auto* const device = new compute::Device(compute::Device::open("cpu"));
  return *device;
}

// What the processes of one round share.
struct Board {
  std::atomic<double> struck{0};  // when the fault happened
  std::atomic<int> reported{0};   // ranks that know of it
};

// ---- The calls ------------------------------------------------------------------------------------------------------

constexpr std::array<const char*, 8> kCalls = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                               "all_to_all", "send",           "recv",       "barrier"};

// The call of one rank. Sends and receipts are between the ranks 0 and kBad, and a barrier of all ranks follows.
void make_call(const Group& group, size_t call, const Tensor& x, const Stream& stream) {
  const auto finish = [](const Tensor& y) { compute::check(compute_tensor_synchronize(y.get())); };
  switch (call) {
    case 0:
      return finish(group.all_reduce(x, compute::Reduction::sum, {}, stream));
    case 1:
      return finish(group.reduce_scatter(x, compute::Reduction::max, {}, stream));
    case 2:
      return finish(group.all_gather(x, {}, stream));
    case 3:
      return finish(group.broadcast(x, kBad, {}, stream));
    case 4:
      return finish(group.all_to_all(x, {}, stream));
    case 5:
    case 6:
      if (group.rank() == (call == 5 ? 0 : kBad)) {
        group.send(x, kBad - group.rank(), {}, stream);
      } else if (group.rank() <= kBad) {
        finish(group.recv(x.dtype(), x.shape(), kBad - group.rank(), {}, stream));
      }
      return group.barrier();
    default:
      return group.barrier();
  }
}

// ---- A transport over sockets ---------------------------------------------------------------------------------------

struct Header {
  int32_t kind;  // 0: of an exchange of all ranks; 1: of two ranks; 2: the reason of an abort
  int32_t reserved;
  int64_t size_bytes;
};

struct Request {
  struct Part {
    int32_t rank, kind;
    uint8_t* dst;
    int64_t size_bytes;
  };
  std::vector<Part> parts;  // that have not arrived
};

class Sockets {
 public:
  Sockets(int32_t rank, std::vector<int> ends) : rank_(rank), ends_(std::move(ends)), peers_(ends_.size()) {}

  // Called at the start of an exchange and in its progress. Returns an error of the engine.
  std::function<int32_t(Sockets&)> strike;
  std::string text;
  double abort_s = 20;  // limit of sending a reason to ranks that do not receive

  void break_all() {
    for (const int end : ends_)
      if (end >= 0) shutdown(end, SHUT_RDWR);
  }

  compute_transport table() {
    compute_transport table{};
    table.struct_size = sizeof table;
    table.struct_type = COMPUTE_STRUCT_TRANSPORT;
    table.rank = rank_;
    table.size = static_cast<int32_t>(ends_.size());
    table.user_data = this;
    table.all_gather = [](const void* src, void* dst, int64_t size, uint64_t* out, void* user_data) {
      return self(user_data).exchange(static_cast<const uint8_t*>(src), 0, dst, size, out);
    };
    table.all_to_all = [](const void* src, void* dst, int64_t size, uint64_t* out, void* user_data) {
      return self(user_data).exchange(static_cast<const uint8_t*>(src), size, dst, size, out);
    };
    table.broadcast = [](void* data, int64_t size, int32_t root, uint64_t* out, void* user_data) {
      Sockets& own = self(user_data);
      if (own.rank_ != root) return own.start({{{root, 0, static_cast<uint8_t*>(data), size}}}, out);
      for (int32_t peer = 0; peer < kRanks; ++peer) own.post(peer, 0, data, size);
      return own.start({}, out);
    };
    table.send = [](void* data, int64_t size, int32_t peer, uint64_t* out, void* user_data) {
      self(user_data).post(peer, 1, data, size);
      return self(user_data).start({}, out);
    };
    table.recv = [](void* data, int64_t size, int32_t peer, uint64_t* out, void* user_data) {
      return self(user_data).start({{{peer, 1, static_cast<uint8_t*>(data), size}}}, out);
    };
    table.progress = [](uint64_t request, int32_t* out_done, void* user_data) {
      return self(user_data).progress(reinterpret_cast<Request*>(request), out_done);
    };
    table.abort = [](const char* reason, void* user_data) { self(user_data).abort(reason); };
    table.close = [](void*) {};
    table.describe = [](void* user_data) -> const char* { return self(user_data).text.c_str(); };
    return table;
  }

 private:
  struct Peer {
    std::vector<uint8_t> out, in;
    size_t sent = 0;
    std::array<std::deque<std::vector<uint8_t>>, 2> arrived;  // by kind
    bool is_gone = false;
  };

  static Sockets& self(void* user_data) { return *static_cast<Sockets*>(user_data); }

  int32_t exchange(const uint8_t* src, int64_t step, void* to, int64_t size, uint64_t* out_request) {
    auto* const dst = static_cast<uint8_t*>(to);
    Request request;
    for (int32_t peer = 0; peer < kRanks; ++peer) {
      if (peer == rank_) {
        if (dst + peer * size != src + peer * step)
          std::memcpy(dst + peer * size, src + peer * step, static_cast<size_t>(size));
        continue;
      }
      post(peer, 0, src + peer * step, size);
      request.parts.push_back({peer, 0, dst + peer * size, size});
    }
    return start(std::move(request), out_request);
  }

  int32_t start(Request request, uint64_t* out_request) {
    if (const int32_t code = strike ? strike(*this) : 0) return code;
    *out_request = reinterpret_cast<uint64_t>(new Request(std::move(request)));
    return 0;
  }

  void post(int32_t peer, int32_t kind, const void* data, int64_t size) {
    if (peer == rank_) return;
    const std::lock_guard guard(mutex_);
    std::vector<uint8_t>& out = peers_[static_cast<size_t>(peer)].out;
    const Header header{kind, 0, size};
    const auto append = [&](const void* from, size_t bytes) {
      out.insert(out.end(), static_cast<const uint8_t*>(from), static_cast<const uint8_t*>(from) + bytes);
    };
    append(&header, sizeof header);
    append(data, static_cast<size_t>(size));
  }

  int32_t say(const std::string& what) {
    text = what;
    return 5;
  }

  int32_t progress(Request* request, int32_t* out_done) {
    if (const int32_t code = strike ? strike(*this) : 0) return code;
    const std::lock_guard guard(mutex_);
    for (int32_t peer = 0; peer < kRanks; ++peer)
      if (peer != rank_) move(peer);
    if (!aborted_.empty()) return say(aborted_);
    if (request == nullptr) return 0;
    bool is_sent = true;
    for (const Peer& peer : peers_) is_sent = is_sent && (peer.is_gone || peer.sent == peer.out.size());
    for (Request::Part& part : request->parts) {
      Peer& peer = peers_[static_cast<size_t>(part.rank)];
      auto& arrived = peer.arrived[static_cast<size_t>(part.kind)];
      if (arrived.empty()) {
        if (peer.is_gone) return say("rank " + std::to_string(part.rank) + " is gone");
        continue;
      }
      if (static_cast<int64_t>(arrived.front().size()) != part.size_bytes)
        return say("a message of another size from rank " + std::to_string(part.rank));
      std::memcpy(part.dst, arrived.front().data(), arrived.front().size());
      arrived.pop_front();
      part.rank = -1;
    }
    std::erase_if(request->parts, [](const Request::Part& part) { return part.rank < 0; });
    *out_done = is_sent && request->parts.empty() ? 1 : 0;
    if (*out_done != 0) delete request;
    return 0;
  }

  // Sends and receives what it can without waiting.
  void move(int32_t rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    const int end = ends_[static_cast<size_t>(rank)];
    while (!peer.is_gone && peer.sent < peer.out.size()) {
      const ssize_t size = ::send(end, peer.out.data() + peer.sent, peer.out.size() - peer.sent, MSG_NOSIGNAL);
      if (size < 0 && errno != EAGAIN) peer.is_gone = errno != EINTR;
      if (size <= 0) break;
      peer.sent += static_cast<size_t>(size);
    }
    if (peer.sent == peer.out.size()) {
      peer.out.clear();
      peer.sent = 0;
    }
    std::array<uint8_t, 65536> some;
    for (;;) {
      const ssize_t size = ::recv(end, some.data(), some.size(), 0);
      if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) peer.is_gone = true;
      if (size <= 0) break;
      peer.in.insert(peer.in.end(), some.begin(), some.begin() + size);
    }
    size_t at = 0;
    for (Header header; peer.in.size() - at >= sizeof header;) {
      std::memcpy(&header, peer.in.data() + at, sizeof header);
      const auto size = static_cast<size_t>(header.size_bytes);
      if (peer.in.size() - at - sizeof header < size) break;
      const auto begin = peer.in.begin() + static_cast<ptrdiff_t>(at + sizeof header);
      std::vector<uint8_t> message(begin, begin + header.size_bytes);
      at += sizeof header + size;
      if (header.kind == 2) {
        if (aborted_.empty())
          aborted_ =
              "rank " + std::to_string(rank) + " has ended the group: " + std::string(message.begin(), message.end());
      } else {
        peer.arrived[static_cast<size_t>(header.kind)].push_back(std::move(message));
      }
    }
    peer.in.erase(peer.in.begin(), peer.in.begin() + static_cast<ptrdiff_t>(at));
  }

  void abort(const char* reason) {
    for (int32_t peer = 0; peer < kRanks; ++peer) post(peer, 2, reason, static_cast<int64_t>(std::strlen(reason)));
    const double end = now() + abort_s;
    for (bool is_sent = false; !is_sent && now() < end;) {
      const std::lock_guard guard(mutex_);
      is_sent = true;
      for (int32_t peer = 0; peer < kRanks; ++peer) {
        if (peer == rank_) continue;
        move(peer);
        is_sent =
            is_sent && (peers_[static_cast<size_t>(peer)].is_gone || peers_[static_cast<size_t>(peer)].out.empty());
      }
    }
  }

  const int32_t rank_;
  const std::vector<int> ends_;
  std::mutex mutex_;  // guards the members below
  std::vector<Peer> peers_;
  std::string aborted_;
};

// ---- Faults of ranks ------------------------------------------------------------------------------------------------

enum class Fault { kKilled, kHangs, kAbsent, kDiffers, kEngine, kBroken };
constexpr std::array<const char*, 6> kFaults = {"killed", "hangs", "absent", "differs", "engine", "broken"};

bool waits_for_the_timeout(Fault fault) { return fault == Fault::kHangs || fault == Fault::kAbsent; }

struct Round {
  Fault fault;
  size_t call;
  int strikes_at;  // calls of the transport's functions until the fault
  bool has_stream;
  Board* board;
};

[[noreturn]] void end(int code, const std::string& why = {}) {
  if (!why.empty()) std::fprintf(stderr, "%s\n", why.c_str());
  std::fflush(nullptr);
  _exit(code);
}

void wait_for_reports(const Board& board) {
  const double limit = now() + 60;
  while (board.reported < kRanks - 1 && now() < limit) std::this_thread::sleep_for(milliseconds(1));
}

// What the bad rank does in its third call.
void arm(const Round& round, Sockets& sockets) {
  auto left = std::make_shared<int>(round.strikes_at);
  sockets.strike = [&round, left](Sockets& own) -> int32_t {
    if (--*left != 0) return 0;
    round.board->struck = now();
    if (round.fault == Fault::kKilled) kill(getpid(), SIGKILL);
    if (round.fault == Fault::kHangs) wait_for_reports(*round.board);
    if (round.fault == Fault::kBroken) own.break_all();
    if (round.fault != Fault::kEngine) return 0;
    own.text = "the engine is out of order";
    return 7;
  };
}

// On a busy machine, ranks may give up a slow one before the fault. Then the round is run again.
constexpr int kTooEarly = 4;

void run_rank(const Round& round, int32_t rank, std::vector<int> ends) {
  auto* const sockets = new Sockets(rank, std::move(ends));  // never freed, as transports are after failures
  const Tensor x = cpu().full({kCount}, 1.0f), other = cpu().full({999}, 2.0f);
  const bool waits = waits_for_the_timeout(round.fault);
  if (waits) sockets->abort_s = 1;  // the bad rank receives nothing
  const bool is_bad = rank == kBad;
  std::string message;
  int32_t code = COMPUTE_OK;
  const auto has = [&](std::string_view part) { return message.find(part) != std::string::npos; };
  Group group;
  try {
    group = Group(sockets->table(), cpu(), {.timeout = waits ? kTimeout : milliseconds(30'000)});
  } catch (const compute::Error& error) {
    message = error.what();
    end(waits && has("COMPUTE_COLLECTIVE_TIMEOUT") ? kTooEarly : 3, message);
  }
  const Stream stream = round.has_stream ? Stream(cpu()) : Stream();
  // A rank that is still in its second call when the fault happens reports it there.
  try {
    make_call(group, 0, other, stream);
    make_call(group, 7, other, stream);
    // Set again when the fault happens, unless the other ranks give this one up before.
    if (is_bad) round.board->struck = now();
    if (is_bad && round.fault == Fault::kAbsent) wait_for_reports(*round.board);
    if (is_bad && round.fault != Fault::kAbsent && round.fault != Fault::kDiffers) arm(round, *sockets);
    const Tensor& given = is_bad && round.fault == Fault::kDiffers ? other : x;
    make_call(group, is_bad && round.fault == Fault::kDiffers && round.call == 7 ? 0 : round.call, given, stream);
    // This rank may have done its part before the fault; a later call tells it.
    for (int i = 0; i < 1000; ++i) group.barrier();
  } catch (const compute::Error& error) {
    code = static_cast<int32_t>(error.code());
    message = error.what();
  }
  const double took = now() - round.board->struck;
  if (!is_bad) ++round.board->reported;
  if (code != COMPUTE_ERROR_PEER_FAILED) end(2, "code " + std::to_string(code) + ": " + message);
  if (round.board->struck == 0)
    end(waits && has("COMPUTE_COLLECTIVE_TIMEOUT") ? kTooEarly : 2, "no fault has happened: " + message);
  if (!is_bad && !waits && has("COMPUTE_COLLECTIVE_TIMEOUT")) end(2, "only the timeout has ended it: " + message);
  const bool says_call = has(kCalls[round.call]) || has("barrier") || has("recv") || has("send");
  if (!has("rank ") || !has(": call ") || !says_call) end(2, "without rank, call or number: " + message);
  if (round.fault == Fault::kEngine && !has("the engine is out of order")) end(2, "without the reason: " + message);
  // Later calls fail at once: all with what the first failure was, none with what it met itself. Other work goes on.
  std::array<std::string, 2> later;
  for (std::string& said : later) {
    try {
      group.barrier();
      end(2, "a later call succeeded");
    } catch (const compute::Error& error) {
      said = error.what();
      if (static_cast<int32_t>(error.code()) != COMPUTE_ERROR_PEER_FAILED) end(2, "later: " + said);
    }
  }
  if (later[0] != later[1]) end(2, "a later call was begun: " + later[1]);
  const Stream own(cpu());
  if (compute::negative(other, own).to_vector<float>()[998] != -2.0f) end(2, "other work has failed");
  if (std::getenv("GROUP_FAULTS_VERBOSE") != nullptr)
    std::fprintf(stderr, "rank %d after %.3f s: %s\n", rank, took, message.c_str());
}

enum class Verdict { kRight, kWrong, kTooEarly };

// Whether all ranks have ended as they should. Nothing may be left running.
Verdict try_round(Round round) {
  void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  round.board = new (memory) Board;
  std::vector<std::vector<int>> ends(kRanks, std::vector<int>(kRanks, -1));
  for (size_t i = 0; i < kRanks; ++i) {
    for (size_t j = i + 1; j < kRanks; ++j) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) return Verdict::kWrong;
      ends[i][j] = pair[0];
      ends[j][i] = pair[1];
    }
  }
  std::vector<pid_t> children;
  std::fflush(nullptr);
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      for (int32_t other = 0; other < kRanks; ++other) {
        if (other == rank) continue;
        for (const int end : ends[static_cast<size_t>(other)])
          if (end >= 0) close(end);
      }
      try {
        run_rank(round, rank, ends[static_cast<size_t>(rank)]);
      } catch (const std::exception& error) {
        end(3, error.what());
      }
      std::exit(0);
    }
    children.push_back(child);
  }
  for (const auto& one : ends) {
    for (const int end : one)
      if (end >= 0) close(end);
  }
  bool is_right = true, is_too_early = false;
  const double limit = now() + 120;
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    const pid_t child = children[static_cast<size_t>(rank)];
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (now() > limit) {
        std::fprintf(stderr, "rank %d has not ended\n", rank);
        kill(child, SIGKILL);
        is_right = false;
        waitpid(child, &status, 0);
        break;
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    is_too_early = is_too_early || (WIFEXITED(status) && WEXITSTATUS(status) == kTooEarly);
    const bool was_to_die = rank == kBad && round.fault == Fault::kKilled;
    const bool ended_well =
        was_to_die ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended_well) std::fprintf(stderr, "rank %d ended with status %d\n", rank, status);
    is_right = is_right && ended_well;
  }
  munmap(memory, sizeof(Board));
  return is_too_early ? Verdict::kTooEarly : is_right ? Verdict::kRight : Verdict::kWrong;
}

bool run_round(const Round& round) {
  Verdict verdict = Verdict::kTooEarly;
  for (int i = 0; i < 5 && verdict == Verdict::kTooEarly; ++i) verdict = try_round(round);
  return verdict == Verdict::kRight;
}

// ---- A transport that lies ------------------------------------------------------------------------------------------

// Reports what is not so. There is no other rank. A call may have any values or fail; nothing else may happen.
enum class Lie {
  kDoneAtOnce,
  kOddDone,
  kNoRequest,
  kNegativeCode,
  kDoneAndFailed,
  kSilent,
  kGarbage,
  kNeverDone,
  kBadSplit
};
constexpr std::array<const char*, 9> kLies = {"done at once",  "odd done",        "no request",
                                              "negative code", "done and failed", "without a reason",
                                              "garbage",       "never done",      "bad split"};

struct Liar {
  Lie lie;
  int32_t calls_until;  // it begins to lie
  std::atomic<int32_t> closed{0};

  static Liar& of(void* user_data) { return *static_cast<Liar*>(user_data); }
  bool lies() { return calls_until > 0 ? (--calls_until, false) : true; }

  int32_t begin(void* dst, int64_t size_bytes, uint64_t* out_request) {
    const bool is_lie = lies();
    if (is_lie && lie == Lie::kNegativeCode) return -1;
    if (is_lie && lie == Lie::kSilent) return 9;
    if (dst != nullptr) std::memset(dst, is_lie && lie == Lie::kGarbage ? 0xFF : 0, static_cast<size_t>(size_bytes));
    if (!is_lie || lie != Lie::kNoRequest) *out_request = 17;
    return 0;
  }
  int32_t progress(int32_t* out_done) {
    const bool is_lie = calls_until == 0;
    *out_done = is_lie && lie == Lie::kNeverDone ? 0 : is_lie && lie == Lie::kOddDone ? -77 : 1;
    return is_lie && lie == Lie::kDoneAndFailed ? 11 : 0;
  }

  compute_transport table() {
    compute_transport table{};
    table.struct_size = sizeof table;
    table.struct_type = COMPUTE_STRUCT_TRANSPORT;
    table.rank = kBad;
    table.size = kRanks;
    table.user_data = this;
    table.all_gather = table.all_to_all = [](const void*, void* dst, int64_t size, uint64_t* out, void* user_data) {
      return of(user_data).begin(dst, size * kRanks, out);
    };
    table.broadcast = table.recv = [](void* data, int64_t size, int32_t, uint64_t* out, void* user_data) {
      return of(user_data).begin(data, size, out);
    };
    table.send = [](void*, int64_t, int32_t, uint64_t* out, void* user_data) {
      return of(user_data).begin(nullptr, 0, out);
    };
    table.progress = [](uint64_t, int32_t* out_done, void* user_data) { return of(user_data).progress(out_done); };
    table.split = [](int32_t, int32_t, compute_transport* out, void* user_data) {
      if (of(user_data).lies()) return 0;  // *out stays as it was
      *out = of(user_data).table();
      out->rank = 99;
      return 0;
    };
    table.abort = [](const char*, void*) {};
    table.close = [](void* user_data) { ++of(user_data).closed; };
    table.describe = [](void* user_data) -> const char* {
      return of(user_data).lie == Lie::kSilent ? nullptr : "a liar";
    };
    return table;
  }
};

void run_liar(Lie lie, size_t call, int32_t calls_until, bool has_stream) {
  const Tensor x = cpu().full({kCount}, 1.0f);
  auto* const liar = new Liar{lie, calls_until, {}};
  bool is_made = false;
  try {
    const Group group(liar->table(), cpu(), {.timeout = kTimeout});
    is_made = true;
    const Stream stream = has_stream ? Stream(cpu()) : Stream();
    try {
      if (lie == Lie::kBadSplit) {
        static_cast<void>(group.split(0));
        end(2, "a split into nothing succeeded");
      }
      make_call(group, call, x, stream);
    } catch (const compute::Error& error) {
      const bool is_table =
          lie == Lie::kBadSplit && static_cast<int32_t>(error.code()) == COMPUTE_ERROR_INVALID_ARGUMENT;
      if (static_cast<int32_t>(error.code()) != COMPUTE_ERROR_PEER_FAILED && !is_table) end(2, error.what());
    }
  } catch (const compute::Error& error) {
    if (static_cast<int32_t>(error.code()) != COMPUTE_ERROR_PEER_FAILED) end(2, error.what());
  }
  // The group's thread may be the last to release it.
  for (int i = 0; is_made && liar->closed == 0 && i < 60'000; ++i) std::this_thread::sleep_for(milliseconds(1));
  // A group that was made closes the transport; otherwise the caller does. A refused part of a split is closed as well.
  const int32_t parts = lie == Lie::kBadSplit && liar->closed == 2 ? 1 : 0;
  if (liar->closed != (is_made ? 1 : 0) + parts) end(2, "closed " + std::to_string(liar->closed.load()) + " times");
}

bool run_lie(Lie lie, size_t call, int32_t calls_until, bool has_stream) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    try {
      run_liar(lie, call, calls_until, has_stream);
    } catch (const std::exception& error) {
      end(3, error.what());
    }
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0)
    std::fprintf(stderr, "\"%s\", from call %d of the transport: status %d\n", kLies[static_cast<size_t>(lie)],
                 calls_until, status);
  return status == 0;
}

// ---- Processes of MPI -----------------------------------------------------------------------------------------------

// A rank, started by mpiexec. Notes its process and when it dies.
int run_mpi_rank(size_t call, int delay_us, const std::string& folder) {
  const Group group = Group::over_mpi(cpu());
  std::ofstream(folder + "/process." + std::to_string(group.rank())) << getpid();
  const Tensor x = cpu().full({kCount}, 1.0f);
  make_call(group, call, x, {});
  group.barrier();
  if (group.rank() == kBad) {
    std::thread([=] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
      std::ofstream(folder + "/struck") << std::to_string(now()) << std::flush;
      kill(getpid(), SIGKILL);
    }).detach();
  }
  for (;;) make_call(group, call, x, {});
}

bool run_mpi_round(const std::string& program, const std::string& mpiexec, size_t call, int delay_us) {
  char name[] = "/tmp/compute-group-XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDWR);
    for (const int to : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, to);
    execlp(mpiexec.c_str(), mpiexec.c_str(), "-n", std::to_string(kRanks).c_str(), program.c_str(), "--rank",
           std::to_string(call).c_str(), std::to_string(delay_us).c_str(), folder.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  const double limit = now() + 120;
  bool is_right = true;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (now() > limit) {
      kill(child, SIGTERM);
      is_right = false;
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  double struck = 0;
  std::ifstream(folder / "struck") >> struck;
  const double took = now() - struck;
  is_right = is_right && status != 0 && struck != 0;
  // Processes that the launcher has killed may still be ending.
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    pid_t process = 0;
    std::ifstream(folder / ("process." + std::to_string(rank))) >> process;
    while (process > 0 && kill(process, 0) == 0 && now() < limit) std::this_thread::sleep_for(milliseconds(1));
    if (process == 0 || kill(process, 0) == 0) is_right = false;
  }
  if (!is_right) std::fprintf(stderr, "mpiexec ended with status %d, %.2f s after the kill\n", status, took);
  std::filesystem::remove_all(folder);
  return is_right;
}

// ---- The table ------------------------------------------------------------------------------------------------------

struct Options {
  int rounds = 1;
  std::string fault, call, mpiexec;
};

int run(const Options& options, const std::string& program) {
  std::mt19937 random(29);
  const auto up_to = [&](int limit) { return 1 + static_cast<int>(random() % static_cast<unsigned>(limit)); };
  int64_t wrong = 0, runs = 0;
  const auto cell = [&](const char* fault, const char* call, const std::function<bool(int)>& round) {
    if ((!options.fault.empty() && options.fault != fault) || (!options.call.empty() && options.call != call)) return;
    int failed = 0;
    const double begin = now();
    for (int i = 0; i < options.rounds; ++i) failed += round(i) ? 0 : 1;
    std::printf("%-10s %-16s %4d runs %4d wrong  %.2f s each\n", fault, call, options.rounds, failed,
                (now() - begin) / options.rounds);
    std::fflush(stdout);
    wrong += failed;
    runs += options.rounds;
  };
  for (size_t fault = 0; fault < kFaults.size(); ++fault) {
    for (size_t call = 0; call < kCalls.size(); ++call) {
      // A barrier is one exchange with few calls of the transport.
      const int latest = call == 7 ? 2 : 40;
      cell(kFaults[fault], kCalls[call], [&](int i) {
        if (static_cast<Fault>(fault) == Fault::kDiffers) setenv("COMPUTE_COLLECTIVE_CHECK", "1", 1);
        const bool is_right = run_round({static_cast<Fault>(fault), call, up_to(latest), i % 2 == 1, nullptr});
        unsetenv("COMPUTE_COLLECTIVE_CHECK");
        return is_right;
      });
    }
  }
  for (size_t call = 0; call < kCalls.size(); ++call) {
    cell("lies", kCalls[call], [&](int i) {
      bool is_right = true;
      for (size_t lie = 0; lie < kLies.size(); ++lie) {
        if (i % 3 == 2) setenv("COMPUTE_COLLECTIVE_CHECK", "1", 1);
        is_right = run_lie(static_cast<Lie>(lie), call, up_to(4) - 1, i % 2 == 1) && is_right;
        unsetenv("COMPUTE_COLLECTIVE_CHECK");
      }
      return is_right;
    });
  }
  if (!options.mpiexec.empty()) {
    for (size_t call = 0; call < kCalls.size(); ++call)
      cell("mpi", kCalls[call], [&](int) { return run_mpi_round(program, options.mpiexec, call, up_to(8000)); });
  }
  std::printf("%lld runs, %lld wrong\n", static_cast<long long>(runs), static_cast<long long>(wrong));
  return wrong == 0 && runs > 0 ? 0 : 1;
}

}  // namespace
}  // namespace group_faults

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--rank")
    return group_faults::run_mpi_rank(static_cast<size_t>(std::atoi(argv[2])), std::atoi(argv[3]), argv[4]);
  group_faults::Options options;
  if (const char* rounds = std::getenv("COMPUTE_TEST_ROUNDS")) options.rounds = std::atoi(rounds);
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    const bool is_known = flag == "--rounds" || flag == "--fault" || flag == "--call" || flag == "--mpiexec";
    if (!is_known || i + 1 == argc) {
      std::fprintf(stderr, "usage: group_faults [--rounds N] [--fault NAME] [--call NAME] [--mpiexec PROGRAM]\n");
      return 2;
    }
    if (flag == "--rounds") options.rounds = std::atoi(argv[i + 1]);
    if (flag == "--fault") options.fault = argv[i + 1];
    if (flag == "--call") options.call = argv[i + 1];
    if (flag == "--mpiexec") options.mpiexec = argv[i + 1];
  }
  return group_faults::run(options, argv[0]);
}
