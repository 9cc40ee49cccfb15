// SPDX-License-Identifier: Apache-2.0
//
// MPI is asked for bytes alone. So its binary interfaces differ in a few constants: handles are numbers of 32 bits,
// pointers, or addresses of exported objects. All are passed as 64 bits here, which is how the calling conventions of
// x86-64 and AArch64 pass each of them.
#include "core/collective/mpi_transport.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/settings/config.hpp"

namespace compute {
namespace {

using MpiHandle = uint64_t;
using Clock = std::chrono::steady_clock;

// A status of any library is smaller.
struct alignas(16) MpiStatus {
  uint8_t bytes[128];
};

using CopyAttribute = int (*)(MpiHandle, int, void*, void*, void*, int*);
using DeleteAttribute = int (*)(MpiHandle, int, void*, void*);

#define COMPUTE_MPI_FUNCTIONS(F)                                                             \
  F(Initialized, (int*))                                                                     \
  F(Finalized, (int*))                                                                       \
  F(Init_thread, (int*, char***, int, int*))                                                 \
  F(Query_thread, (int*))                                                                    \
  F(Finalize, ())                                                                            \
  F(Comm_dup, (MpiHandle, MpiHandle*))                                                       \
  F(Comm_split, (MpiHandle, int, int, MpiHandle*))                                           \
  F(Comm_rank, (MpiHandle, int*))                                                            \
  F(Comm_size, (MpiHandle, int*))                                                            \
  F(Comm_set_errhandler, (MpiHandle, MpiHandle))                                             \
  F(Comm_create_keyval, (CopyAttribute, DeleteAttribute, int*, void*))                       \
  F(Comm_set_attr, (MpiHandle, int, void*))                                                  \
  F(Error_string, (int, char*, int*))                                                        \
  F(Get_library_version, (char*, int*))                                                      \
  F(Iallgather, (const void*, int, MpiHandle, void*, int, MpiHandle, MpiHandle, MpiHandle*)) \
  F(Ialltoall, (const void*, int, MpiHandle, void*, int, MpiHandle, MpiHandle, MpiHandle*))  \
  F(Ibcast, (void*, int, MpiHandle, int, MpiHandle, MpiHandle*))                             \
  F(Isend, (const void*, int, MpiHandle, int, int, MpiHandle, MpiHandle*))                   \
  F(Irecv, (void*, int, MpiHandle, int, int, MpiHandle, MpiHandle*))                         \
  F(Test, (MpiHandle*, int*, MpiStatus*))

constexpr int kDataTag = 1, kNoticeTag = 2, kExchangeTag = 3;
// Exchanges of so many bytes for each rank, and among so few ranks, are messages of their own. In the library's
// nonblocking collectives each step waits for the one before.
constexpr int64_t kDirectBytes = int64_t{32} << 10;
constexpr int kDirectRanks = 32;

// The last message of each rank to each other one.
struct Notice {
  char kind;  // 'A': it has aborted; 'L': it has left
  char text[511];
};

struct Communicator;

// The library, initialized.
struct Mpi {
#define COMPUTE_MPI_MEMBER(name, parameters) int(*name) parameters = nullptr;
  COMPUTE_MPI_FUNCTIONS(COMPUTE_MPI_MEMBER)
#undef COMPUTE_MPI_MEMBER
  MpiHandle world = 0, self = 0, byte = 0, errors_return = 0;
  int thread_multiple = 3;
  const void* in_place = nullptr;
  std::string version;
  std::function<void()> before_end;
  pid_t process = 0;
  std::atomic<bool> has_ended{false};
  std::atomic<int> calls{0};  // of the library, in progress; see InCall

  std::mutex mutex;  // guards the member below
  std::vector<Communicator*> communicators;

  std::string text_of(int code) const {
    std::array<char, 1024> text{};
    int size = 0;
    if (Error_string(code, text.data(), &size) != 0) return fmt::format("MPI error {}", code);
    return std::string("MPI: ") + text.data();
  }
  void check(int code) const {
    if (code != 0) throw Error(COMPUTE_ERROR_PEER_FAILED, text_of(code));
  }
};

Mpi* the_mpi = nullptr;  // set once

// Around calls of the library on threads that do not know of the end: MPI_Finalize waits for them.
class InCall {
 public:
  InCall() { ++the_mpi->calls; }
  ~InCall() { --the_mpi->calls; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

  bool is_refused() const { return the_mpi->has_ended; }
};

struct Communicator {
  explicit Communicator(MpiHandle handle) : handle(handle) {
    Mpi& mpi = *the_mpi;
    mpi.check(mpi.Comm_set_errhandler(handle, mpi.errors_return));
    mpi.check(mpi.Comm_rank(handle, &rank));
    mpi.check(mpi.Comm_size(handle, &size));
    notices.resize(static_cast<size_t>(size));
    sends.resize(static_cast<size_t>(size));
    receipts.resize(static_cast<size_t>(size));
    for (int32_t peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      mpi.check(mpi.Irecv(&notices[static_cast<size_t>(peer)], sizeof(Notice), mpi.byte, peer, kNoticeTag, handle,
                          &receipts[static_cast<size_t>(peer)]));
    }
    const std::lock_guard guard(mpi.mutex);
    mpi.communicators.push_back(this);
  }

  const MpiHandle handle;
  int rank = 0, size = 0;
  std::string text;
  uint64_t polls = 0;

  // By rank. Never freed: MPI writes to them.
  std::vector<Notice> notices;
  std::vector<MpiHandle> sends, receipts;  // 0: it has ended
  Notice own{};
  std::mutex telling;  // guards the member below, `own` and `sends`
  bool has_told = false;
  int32_t gone = -1;  // the first rank whose notice was seen
  Clock::time_point gone_at{};

  void tell(char kind, const char* reason) noexcept {
    const std::lock_guard guard(telling);
    const InCall in_call;
    if (std::exchange(has_told, true) || in_call.is_refused()) return;
    own.kind = kind;
    std::strncpy(own.text, reason, sizeof own.text - 1);
    for (int32_t peer = 0; peer < size; ++peer) {
      if (peer != rank)
        the_mpi->Isend(&own, sizeof own, the_mpi->byte, peer, kNoticeTag, handle, &sends[static_cast<size_t>(peer)]);
    }
  }

  int32_t say(const std::string& what) {
    text = what;
    return COMPUTE_ERROR_PEER_FAILED;
  }

  // What a request of this rank waits for may still be on its way from a rank that has left.
  int32_t look_at_peers() {
    for (size_t peer = 0; gone < 0 && peer < receipts.size(); ++peer) {
      if (static_cast<int32_t>(peer) == rank) continue;
      int is_done = 0;
      MpiStatus status;
      if (const int code = the_mpi->Test(&receipts[peer], &is_done, &status)) return say(the_mpi->text_of(code));
      if (is_done == 0) continue;
      gone = static_cast<int32_t>(peer);
      gone_at = Clock::now();
    }
    if (gone < 0) return 0;
    const Notice& notice = notices[static_cast<size_t>(gone)];
    if (notice.kind == 'A') return say(fmt::format("rank {} has ended the group: {}", gone, notice.text));
    if (Clock::now() - gone_at < std::chrono::seconds(1)) return 0;
    return say(fmt::format("rank {} has left the group", gone));
  }
};

Communicator& self(void* user_data) { return *static_cast<Communicator*>(user_data); }

// One or several requests of MPI that have not ended. After a failure MPI may use it and the memory of the messages
// until the process ends.
struct Request {
  std::vector<MpiHandle> parts;
  int failure = 0;  // of the start of a part; those before it have begun
};

// Starts `count` parts by start(i, MpiHandle*), which returns an MPI error.
template <class F>
int32_t begin(Communicator& own, int64_t size_bytes, int count, uint64_t* out_request, F&& start) {
  const InCall in_call;
  if (in_call.is_refused()) return own.say("MPI_Finalize was called");
  if (size_bytes > INT_MAX) return own.say(fmt::format("{} bytes in one message", size_bytes));
  auto request = std::make_unique<Request>();
  request->parts.resize(static_cast<size_t>(count));
  for (int i = 0; i < count && request->failure == 0; ++i)
    request->failure = start(i, &request->parts[static_cast<size_t>(i)]);
  *out_request = reinterpret_cast<uint64_t>(request.release());
  return 0;
}

// Part i of `src` is for rank i: `step_bytes` lie between the parts.
int32_t exchange(Communicator& own, const void* src, int64_t step_bytes, void* dst, int64_t size_bytes,
                 uint64_t* out_request) {
  const auto* const from = static_cast<const uint8_t*>(src);
  auto* const to = static_cast<uint8_t*>(dst);
  const uint8_t* const kept = from + own.rank * step_bytes;
  if (kept != to + own.rank * size_bytes)
    std::memcpy(to + own.rank * size_bytes, kept, static_cast<size_t>(size_bytes));
  const auto count = static_cast<int>(size_bytes);
  const int others = own.size - 1;
  return begin(own, size_bytes, 2 * others, out_request, [&](int i, MpiHandle* request) {
    if (i < others) {
      const int peer = (own.rank + 1 + i) % own.size;
      return the_mpi->Irecv(to + peer * size_bytes, count, the_mpi->byte, peer, kExchangeTag, own.handle, request);
    }
    const int peer = (own.rank + own.size - 1 - (i - others)) % own.size;
    return the_mpi->Isend(from + peer * step_bytes, count, the_mpi->byte, peer, kExchangeTag, own.handle, request);
  });
}

bool is_direct(const Communicator& own, int64_t size_bytes) {
  return size_bytes >= kDirectBytes && own.size <= kDirectRanks;
}

int32_t all_gather(const void* src, void* dst, int64_t size_bytes, uint64_t* out_request, void* user_data) {
  Communicator& own = self(user_data);
  if (is_direct(own, size_bytes)) return exchange(own, src, 0, dst, size_bytes, out_request);
  const auto count = static_cast<int>(size_bytes);
  if (src == static_cast<const uint8_t*>(dst) + own.rank * size_bytes) src = the_mpi->in_place;
  return begin(own, size_bytes, 1, out_request, [&](int, MpiHandle* request) {
    return the_mpi->Iallgather(src, count, the_mpi->byte, dst, count, the_mpi->byte, own.handle, request);
  });
}

int32_t all_to_all(const void* src, void* dst, int64_t size_bytes, uint64_t* out_request, void* user_data) {
  Communicator& own = self(user_data);
  if (is_direct(own, size_bytes)) return exchange(own, src, size_bytes, dst, size_bytes, out_request);
  const auto count = static_cast<int>(size_bytes);
  return begin(own, size_bytes, 1, out_request, [&](int, MpiHandle* request) {
    return the_mpi->Ialltoall(src, count, the_mpi->byte, dst, count, the_mpi->byte, own.handle, request);
  });
}

int32_t broadcast(void* data, int64_t size_bytes, int32_t root, uint64_t* out_request, void* user_data) {
  Communicator& own = self(user_data);
  return begin(own, size_bytes, 1, out_request, [&](int, MpiHandle* request) {
    return the_mpi->Ibcast(data, static_cast<int>(size_bytes), the_mpi->byte, root, own.handle, request);
  });
}

int32_t send(void* data, int64_t size_bytes, int32_t peer, uint64_t* out_request, void* user_data) {
  Communicator& own = self(user_data);
  return begin(own, size_bytes, 1, out_request, [&](int, MpiHandle* request) {
    return the_mpi->Isend(data, static_cast<int>(size_bytes), the_mpi->byte, peer, kDataTag, own.handle, request);
  });
}

int32_t recv(void* data, int64_t size_bytes, int32_t peer, uint64_t* out_request, void* user_data) {
  Communicator& own = self(user_data);
  return begin(own, size_bytes, 1, out_request, [&](int, MpiHandle* request) {
    return the_mpi->Irecv(data, static_cast<int>(size_bytes), the_mpi->byte, peer, kDataTag, own.handle, request);
  });
}

int32_t progress(uint64_t request, int32_t* out_done, void* user_data) {
  Communicator& own = self(user_data);
  const InCall in_call;
  if (in_call.is_refused()) return own.say("MPI_Finalize was called");
  if (request == 0) return own.look_at_peers();
  auto* const all = reinterpret_cast<Request*>(request);
  *out_done = 0;
  if (all->failure != 0) return own.say(the_mpi->text_of(all->failure));
  while (!all->parts.empty()) {
    int is_done = 0;
    MpiStatus status;
    if (const int code = the_mpi->Test(&all->parts.back(), &is_done, &status)) return own.say(the_mpi->text_of(code));
    if (is_done == 0) return ++own.polls % 32 == 0 ? own.look_at_peers() : 0;
    all->parts.pop_back();
  }
  delete all;
  *out_done = 1;
  return 0;
}

compute_transport table_of(MpiHandle handle);

int32_t split(int32_t color, int32_t key, compute_transport* out_transport, void* user_data) {
  Communicator& own = self(user_data);
  MpiHandle part = 0;
  if (const int code = the_mpi->Comm_split(own.handle, color, key, &part)) return own.say(the_mpi->text_of(code));
  try {
    *out_transport = table_of(part);
  } catch (const Error& error) {
    return own.say(error.message);
  }
  return 0;
}

void abort(const char* reason, void* user_data) { self(user_data).tell('A', reason); }

// The communicator stays, because the last messages may still be on their way.
void close(void* user_data) { self(user_data).tell('L', ""); }

const char* describe(void* user_data) {
  const Communicator& own = self(user_data);
  return own.text.empty() ? the_mpi->version.c_str() : own.text.c_str();
}

compute_transport table_of(MpiHandle handle) {
  auto own = std::make_unique<Communicator>(handle);
  compute_transport table{};
  table.struct_size = sizeof table;
  table.struct_type = COMPUTE_STRUCT_TRANSPORT;
  table.rank = own->rank;
  table.size = own->size;
  table.user_data = own.release();
  table.all_gather = all_gather;
  table.all_to_all = all_to_all;
  table.broadcast = broadcast;
  table.send = send;
  table.recv = recv;
  table.progress = progress;
  table.split = split;
  table.abort = abort;
  table.close = close;
  table.describe = describe;
  return table;
}

// ---- The end --------------------------------------------------------------------------------------------------------

// MPI_Finalize deletes the attributes of MPI_COMM_SELF first.
int at_finalize(MpiHandle, int, void*, void*) {
  Mpi& mpi = *the_mpi;
  if (mpi.before_end) mpi.before_end();
  std::vector<Communicator*> communicators;
  {
    const std::lock_guard guard(mpi.mutex);
    communicators = mpi.communicators;
  }
  const Clock::time_point end = Clock::now() + std::chrono::seconds(1);
  for (Communicator* const one : communicators) {
    one->tell('L', "");
    const std::lock_guard guard(one->telling);
    for (size_t peer = 0; peer < one->sends.size(); ++peer) {
      int is_done = static_cast<int32_t>(peer) == one->rank ? 1 : 0;
      MpiStatus status;
      while (is_done == 0 && Clock::now() < end && mpi.Test(&one->sends[peer], &is_done, &status) == 0) {
      }
    }
  }
  mpi.has_ended = true;
  // Those that have begun before are short.
  while (mpi.calls != 0) std::this_thread::yield();
  return 0;
}

int refuse_to_copy(MpiHandle, int, void*, void*, void*, int* out_flag) {
  *out_flag = 0;
  return 0;
}

void end_with_process(int, void*) {
  Mpi& mpi = *the_mpi;
  int has_ended = 0;
  if (mpi.process != getpid() || mpi.has_ended || mpi.Finalized(&has_ended) != 0 || has_ended != 0) return;
  mpi.Finalize();
}

// ---- Opening --------------------------------------------------------------------------------------------------------

enum class Interface : uint8_t { kStandard, kNumbers, kObjects };

struct LibraryName {
  const char* file;
  Interface interface;
};

constexpr std::array<LibraryName, 4> kNames = {{{"libmpi_abi.so.1", Interface::kStandard},
                                                {"libmpi.so.12", Interface::kNumbers},
                                                {"libmpich.so.12", Interface::kNumbers},
                                                {"libmpi.so.40", Interface::kObjects}}};

struct OpenLibrary {
  void* handle = nullptr;
  Interface interface {};
};

// The folders of the libraries beside the programs that started this one: the launcher brings its own library.
std::vector<std::filesystem::path> launcher_folders() {
  std::vector<std::filesystem::path> folders;
  if (process_is_privileged()) return folders;
  pid_t process = getppid();
  for (int i = 0; i < 4 && process > 1; ++i) {
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), error);
    if (!error) folders.push_back(program.parent_path().parent_path() / "lib");
    std::ifstream stat(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(stat, text);
    const size_t name_end = text.rfind(')');
    char state = 0;
    int parent = 0;
    if (name_end == std::string::npos || std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &parent) != 2)
      break;
    process = parent;
  }
  return folders;
}

// The one that the program has loaded; else the launcher's; else the system's.
OpenLibrary open_library() {
  std::string tried;
  const auto open = [&](const std::string& name, Interface interface, int flags) -> OpenLibrary {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL | flags);
    if (handle == nullptr && flags == 0) tried += fmt::format("\n  {}", dlerror());
    return {handle, interface};
  };
  for (const LibraryName& name : kNames) {
    if (const OpenLibrary found = open(name.file, name.interface, RTLD_NOLOAD); found.handle != nullptr) return found;
  }
  for (const std::filesystem::path& folder : launcher_folders()) {
    for (const LibraryName& name : kNames) {
      std::error_code error;
      const std::filesystem::path file = folder / name.file;
      if (!std::filesystem::exists(file, error)) continue;
      if (const OpenLibrary found = open(file, name.interface, 0); found.handle != nullptr) return found;
    }
  }
  const bool has_open_mpi = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;  // set by its launcher
  for (const bool is_launchers : {true, false}) {
    for (const LibraryName& name : kNames) {
      if (((name.interface == Interface::kObjects) == has_open_mpi) != is_launchers) continue;
      if (const OpenLibrary found = open(name.file, name.interface, 0); found.handle != nullptr) return found;
    }
  }
  throw Error(COMPUTE_ERROR_NOT_FOUND,
              "no MPI library; install one (pip install mpich, or the package mpich or openmpi-bin of the "
              "system) and start the program with its mpiexec:" +
                  tried);
}

std::unique_ptr<Mpi> open_mpi() {
  const OpenLibrary library = open_library();
  auto mpi = std::make_unique<Mpi>();
  const auto symbol = [&](const char* name) {
    void* const found = dlsym(library.handle, name);
    if (found == nullptr) throw Error(COMPUTE_ERROR_NOT_FOUND, fmt::format("the MPI library lacks {}", name));
    return found;
  };
#define COMPUTE_MPI_LOAD(name, parameters) mpi->name = reinterpret_cast<int(*) parameters>(symbol("MPI_" #name));
  COMPUTE_MPI_FUNCTIONS(COMPUTE_MPI_LOAD)
#undef COMPUTE_MPI_LOAD
  const auto object = [&](const char* name) { return reinterpret_cast<MpiHandle>(symbol(name)); };
  switch (library.interface) {
    case Interface::kStandard:
      mpi->world = 0x101;
      mpi->self = 0x102;
      mpi->byte = 0x247;
      mpi->errors_return = 0x143;
      mpi->thread_multiple = 4096;
      mpi->in_place = reinterpret_cast<const void*>(1);
      break;
    case Interface::kNumbers:
      mpi->world = 0x44000000;
      mpi->self = 0x44000001;
      mpi->byte = 0x4c00010d;
      mpi->errors_return = 0x54000001;
      mpi->in_place = reinterpret_cast<const void*>(-1);
      break;
    case Interface::kObjects:
      mpi->world = object("ompi_mpi_comm_world");
      mpi->self = object("ompi_mpi_comm_self");
      mpi->byte = object("ompi_mpi_byte");
      mpi->errors_return = object("ompi_mpi_errors_return");
      mpi->in_place = reinterpret_cast<const void*>(1);
      break;
  }
  std::array<char, 8192> text{};  // MPI_MAX_LIBRARY_VERSION_STRING
  int size = 0;
  mpi->check(mpi->Get_library_version(text.data(), &size));
  mpi->version = text.data();
  // "Open MPI v5.0.6, package: …"; MPICH has a line each for its version and for how it was built.
  mpi->version = mpi->version.substr(0, std::min(mpi->version.find('\n'), mpi->version.find(',')));
  constexpr std::string_view kLabel = " Version:";
  if (const size_t label = mpi->version.find(kLabel); label != std::string::npos) {
    const size_t number = mpi->version.find_first_not_of(" \t", label + kLabel.size());
    mpi->version.replace(label, std::min(number, mpi->version.size()) - label, " ");
  }
  return mpi;
}

// As launchers tell the processes that they start; 0: unknown.
int ranks_started() {
  for (const char* const value : {std::getenv("OMPI_COMM_WORLD_SIZE"), std::getenv("PMI_SIZE")}) {
    if (value != nullptr) return std::atoi(value);
  }
  return 0;
}

void initialize(Mpi& mpi) {
  int is_initialized = 0, has_ended = 0, level = 0;
  mpi.check(mpi.Initialized(&is_initialized));
  mpi.check(mpi.Finalized(&has_ended));
  if (has_ended != 0) throw Error(COMPUTE_ERROR_UNSUPPORTED, "the program has called MPI_Finalize");
  if (is_initialized == 0) {
    mpi.check(mpi.Init_thread(nullptr, nullptr, mpi.thread_multiple, &level));
    on_exit(end_with_process, nullptr);
  } else {
    mpi.check(mpi.Query_thread(&level));
  }
  if (level < mpi.thread_multiple) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("{} allows calls by one thread only; initialize it with MPI_THREAD_MULTIPLE", mpi.version));
  }
  // Processes that do not know of each other would each compute alone.
  int size = 0;
  mpi.check(mpi.Comm_size(mpi.world, &size));
  if (const int started = ranks_started(); size == 1 && started > 1) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("the launcher has started {} processes, but {} sees one: they belong to different MPI "
                            "installations; use the mpiexec of the library",
                            started, mpi.version));
  }
  int key = 0;
  mpi.check(mpi.Comm_create_keyval(refuse_to_copy, at_finalize, &key, nullptr));
  mpi.check(mpi.Comm_set_attr(mpi.self, key, nullptr));
}

}  // namespace

compute_transport mpi_transport(std::function<void()> before_end) {
  static std::mutex opening;
  const std::lock_guard guard(opening);
  static bool is_initialized = false;
  if (the_mpi == nullptr) the_mpi = open_mpi().release();
  if (!is_initialized) {
    the_mpi->process = getpid();
    the_mpi->before_end = std::move(before_end);
    initialize(*the_mpi);
    is_initialized = true;
  }
  if (the_mpi->has_ended) throw Error(COMPUTE_ERROR_UNSUPPORTED, "the program has called MPI_Finalize");
  MpiHandle own = 0;
  the_mpi->check(the_mpi->Comm_dup(the_mpi->world, &own));
  return table_of(own);
}

}  // namespace compute
