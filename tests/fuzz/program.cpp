// SPDX-License-Identifier: Apache-2.0
//
// Any program of tensors, views, streams, events and graphs reads the values that the same calls give on the host, one
// after another. A call that is refused changes nothing, and all memory goes back.
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/fuzz/bytes.hpp"

namespace {

using Values = std::vector<int32_t>;

// What the buffer of a tensor holds, as far as it is known.
struct Memory {
  enum class State { kNone, kKnown, kUnknown };  // none: the output of a graph that has not run

  explicit Memory(Values first, State state = State::kKnown) : values(std::move(first)), state(state) {}

  Values values;
  State state;
};
using MemoryReference = std::shared_ptr<Memory>;

// A line of elements of a buffer.
struct Line {
  MemoryReference memory;
  int64_t offset = 0, stride = 1, count = 0;

  int32_t& at(int64_t i) const { return memory->values[static_cast<size_t>(offset + (count == 1 ? 0 : i) * stride)]; }
  bool is_whole() const { return count == static_cast<int64_t>(memory->values.size()) && stride != 0; }
  Values read() const {
    Values result;
    for (int64_t i = 0; i < count; ++i) result.push_back(at(i));
    return result;
  }
  void write(const Values& from, Memory::State state) const {
    for (int64_t i = 0; i < count; ++i) at(i) = from[static_cast<size_t>(i)];
    if (is_whole() || memory->state == state) {
      memory->state = state;
    } else if (count > 0) {
      memory->state = Memory::State::kUnknown;
    }
  }
};

struct Operand {
  compute_tensor* tensor = nullptr;
  Line line;
};

struct Graph {
  compute_graph* graph = nullptr;
  std::vector<std::function<void(int32_t)>> steps;  // each is given the value of the slot
  int32_t slot = 0;
};

struct Stream {
  compute_stream* stream = nullptr;
  bool records = false;
  std::vector<std::function<void(int32_t)>> steps;
};

// Memory of the program that a queued copy reads or writes.
struct Transfer {
  Values memory;
  std::optional<Values> expected;
};

int32_t times_plus(int32_t a, int32_t factor, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(factor) + static_cast<uint32_t>(b));
}

class Program {
 public:
  explicit Program(fuzz::Bytes& bytes) : bytes_(bytes) {
    fuzz::require(compute_tensor_slot(COMPUTE_DTYPE_INT32, &slot_));
    for (size_t i = 0; i < streams_.size(); ++i) {
      fuzz::require(compute_stream_create(device_of_stream(i), nullptr, &streams_[i].stream));
    }
  }

  void run() {
    for (int call = 0; call < 64 && !bytes_.empty(); ++call) step();
    finish();
  }

 private:
  static compute_device* other_device() {
    static compute_device* const device = [] {
      compute_device* opened = nullptr;
      fuzz::require(compute_device_open("minimal1", &opened));
      return opened;
    }();
    return device;
  }
  static compute_device* device(uint32_t number) {
    return number == 0 ? fuzz::cpu_device() : number == 1 ? other_device() : fuzz::minimal_device();
  }
  static compute_device* device_of_stream(size_t i) { return i < 2 ? fuzz::minimal_device() : other_device(); }
  static compute_expression* expression() {
    static compute_expression* const parsed = [] {
      const char* names[] = {"a", "b"};
      const char* scalars[] = {"s"};
      compute_expression* result = nullptr;
      fuzz::require(compute_expression_parse("a * s + b", names, 2, scalars, 1, &result));
      return result;
    }();
    return parsed;
  }

  void step() {
    switch (bytes_.below(18)) {
      case 0:
      case 1:
        make();
        break;
      case 2:
        view();
        break;
      case 3:
      case 4:
      case 5:
        map();
        break;
      case 6:
        read();
        break;
      case 7:
        write();
        break;
      case 8:
        copy();
        break;
      case 9:
        access();
        break;
      case 10:
        begin();
        break;
      case 11:
        end(stream());
        break;
      case 12:
      case 13:
        run_graph();
        break;
      case 14:
        release();
        break;
      case 15:
        read_later();
        break;
      case 16:
        write_later();
        break;
      default:
        order();
        break;
    }
  }

  Operand* operand() { return operands_.empty() ? nullptr : &operands_[bytes_.below(operand_count())]; }
  uint32_t operand_count() const { return static_cast<uint32_t>(operands_.size()); }
  Stream& stream() { return streams_[bytes_.below(static_cast<uint32_t>(streams_.size()))]; }
  Values some(int64_t count) {
    Values values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int8_t>(bytes_.byte()));
    return values;
  }
  static int64_t size_of(const Values& values) { return static_cast<int64_t>(values.size() * sizeof(int32_t)); }

  // A value that must be there, or must not.
  static void require_values(const Line& line, const Values& got) {
    if (line.count == 0 || line.memory->state == Memory::State::kUnknown) return;
    if (line.memory->state == Memory::State::kNone || got != line.read()) std::abort();
  }

  void make() {
    const int64_t count = bytes_.below(9);
    const Values values = some(count);
    Operand made;
    if (fuzz::failed(compute_tensor_from_host(device(bytes_.below(4)), COMPUTE_DTYPE_INT32, 1, &count, values.data(),
                                              &made.tensor))) {
      return;
    }
    made.line = {std::make_shared<Memory>(values), 0, 1, count};
    operands_.push_back(made);
  }

  void view() {
    const Operand* of = operand();
    if (of == nullptr) return;
    const int64_t start = static_cast<int8_t>(bytes_.byte()) % 10, stop = static_cast<int8_t>(bytes_.byte()) % 10;
    const int64_t step = bytes_.below(7) - int64_t{3};
    Operand made;
    if (fuzz::failed(compute_tensor_slice(of->tensor, 1, bytes_.one_in(3) ? nullptr : &start,
                                          bytes_.one_in(3) ? nullptr : &stop, &step, &made.tensor))) {
      return;
    }
    made.line = of->line;
    made.line.count = compute_tensor_shape(made.tensor)[0];
    made.line.offset = compute_tensor_offset_bytes(made.tensor) / 4;
    made.line.stride = compute_tensor_strides(made.tensor)[0];
    operands_.push_back(made);
  }

  // a * s + b, into a new tensor or one that is there.
  void map() {
    const Operand *a = operand(), *b = operand(), *into = bytes_.one_in(3) ? operand() : nullptr;
    if (a == nullptr) return;
    Stream* on = bytes_.one_in(3) ? nullptr : &stream();
    const bool has_slot = bytes_.one_in(4);
    const int32_t factor = static_cast<int8_t>(bytes_.byte());
    compute_number scalar{};
    scalar.kind = has_slot ? COMPUTE_KIND_SCALAR : COMPUTE_KIND_INT64;
    scalar.integer = factor;
    scalar.tensor = has_slot ? slot_ : nullptr;
    compute_tensor* inputs[] = {a->tensor, b->tensor};
    compute_tensor* output = into != nullptr ? into->tensor : nullptr;
    if (fuzz::failed(
            compute_map(on != nullptr ? on->stream : nullptr, expression(), inputs, 2, &scalar, 1, &output, 1))) {
      return;
    }
    const Line x = a->line, y = b->line;
    Line result;
    if (into != nullptr) {
      result = into->line;
    } else {
      const int64_t count = compute_tensor_shape(output)[0];
      const bool later = on != nullptr && on->records;
      result = {std::make_shared<Memory>(Values(static_cast<size_t>(count)),
                                         later && count > 0 ? Memory::State::kNone : Memory::State::kKnown),
                0, 1, count};
      operands_.push_back({output, result});
    }
    const auto compute = [x, y, result, has_slot, factor](int32_t slot) {
      Values values;
      for (int64_t i = 0; i < result.count; ++i)
        values.push_back(times_plus(x.at(i), has_slot ? slot : factor, y.at(i)));
      const bool known = x.memory->state == Memory::State::kKnown && y.memory->state == Memory::State::kKnown;
      result.write(values, known ? Memory::State::kKnown : Memory::State::kUnknown);
    };
    if (on != nullptr && on->records) {
      on->steps.emplace_back(compute);
    } else {
      if (result.count > 0 && (x.memory->state == Memory::State::kNone || y.memory->state == Memory::State::kNone))
        std::abort();
      compute(0);
    }
  }

  void read() {
    const Operand* of = operand();
    if (of == nullptr) return;
    Values got(static_cast<size_t>(of->line.count));
    if (!fuzz::failed(compute_tensor_read(of->tensor, got.data(), size_of(got)))) require_values(of->line, got);
  }

  void write() {
    const Operand* to = operand();
    if (to == nullptr) return;
    const Values values = some(to->line.count);
    if (!fuzz::failed(compute_tensor_write(to->tensor, values.data(), size_of(values)))) {
      to->line.write(values, Memory::State::kKnown);
    }
  }

  void read_later() {
    const Operand* of = operand();
    if (of == nullptr) return;
    Transfer& transfer = transfers_.emplace_back();
    transfer.memory.resize(static_cast<size_t>(of->line.count));
    if (fuzz::failed(
            compute_tensor_read_async(of->tensor, transfer.memory.data(), size_of(transfer.memory), stream().stream))) {
      return;
    }
    if (of->line.count > 0 && of->line.memory->state == Memory::State::kNone) std::abort();
    if (of->line.memory->state == Memory::State::kKnown) transfer.expected = of->line.read();
  }

  void write_later() {
    const Operand* to = operand();
    if (to == nullptr) return;
    Transfer& transfer = transfers_.emplace_back();
    transfer.memory = some(to->line.count);
    if (!fuzz::failed(compute_tensor_write_async(to->tensor, transfer.memory.data(), size_of(transfer.memory),
                                                 stream().stream))) {
      to->line.write(transfer.memory, Memory::State::kKnown);
    }
  }

  void copy() {
    const Operand* of = operand();
    if (of == nullptr) return;
    Operand made;
    compute_device* const to = device(bytes_.below(3));
    const bool moves = to != compute_tensor_device(of->tensor);
    if (fuzz::failed(compute_tensor_to_device(of->tensor, to, &made.tensor))) return;
    made.line = of->line;
    if (moves) {
      if (of->line.count > 0 && of->line.memory->state == Memory::State::kNone) std::abort();
      made.line = {std::make_shared<Memory>(of->line.read(), of->line.memory->state), 0, 1, of->line.count};
    }
    operands_.push_back(made);
  }

  // The elements, in the host's memory.
  void access() {
    const Operand* of = operand();
    if (of == nullptr) return;
    const int32_t access = 1 + static_cast<int32_t>(bytes_.below(3));
    void* data = nullptr;
    int32_t is_copy = 0;
    if (fuzz::failed(compute_tensor_map(of->tensor, access, &data, &is_copy))) return;
    auto* const first = static_cast<int32_t*>(data);
    const int64_t stride = is_copy != 0 ? 1 : of->line.stride;
    if ((access & COMPUTE_ACCESS_READ) != 0) {
      Values got;
      for (int64_t i = 0; i < of->line.count; ++i) got.push_back(first[i * stride]);
      require_values(of->line, got);
    }
    if ((access & COMPUTE_ACCESS_WRITE) != 0) {
      const Values values = some(of->line.count);
      for (int64_t i = 0; i < of->line.count; ++i) first[i * stride] = values[static_cast<size_t>(i)];
      of->line.write(values, Memory::State::kKnown);
    }
    fuzz::require(compute_tensor_unmap(of->tensor, data));
  }

  void begin() {
    Stream& on = stream();
    if (fuzz::failed(compute_graph_begin(on.stream, nullptr)) != on.records) std::abort();
    on.records = true;
  }

  void end(Stream& on) {
    compute_graph* graph = nullptr;
    const bool refused = fuzz::failed(compute_graph_end(on.stream, &graph));
    if (refused != (graph == nullptr) || (!refused && !on.records)) std::abort();
    if (!refused) graphs_.push_back({graph, std::move(on.steps)});
    on.records = false;
    on.steps.clear();
  }

  void run_graph() {
    if (graphs_.empty()) return;
    Graph& graph = graphs_[bytes_.below(static_cast<uint32_t>(graphs_.size()))];
    if (bytes_.one_in(3)) {
      const int32_t value = static_cast<int8_t>(bytes_.byte());
      if (!fuzz::failed(compute_graph_set_slot(graph.graph, slot_, &value))) graph.slot = value;
    }
    if (fuzz::failed(compute_graph_run(graph.graph, stream().stream))) return;
    for (const auto& step : graph.steps) step(graph.slot);
  }

  void release() {
    if (bytes_.one_in(4) && !graphs_.empty()) {
      const uint32_t i = bytes_.below(static_cast<uint32_t>(graphs_.size()));
      compute_graph_release(graphs_[i].graph);
      graphs_.erase(graphs_.begin() + i);
    } else if (!operands_.empty()) {
      const uint32_t i = bytes_.below(operand_count());
      compute_tensor_release(operands_[i].tensor);
      operands_.erase(operands_.begin() + i);
    }
  }

  // What orders and waits, and a new stream in place of one.
  void order() {
    Stream& on = stream();
    int32_t finished = 0;
    switch (bytes_.below(6)) {
      case 0:
        static_cast<void>(fuzz::failed(compute_stream_synchronize(on.stream)));
        break;
      case 1:
        static_cast<void>(fuzz::failed(compute_stream_query(on.stream, &finished)));
        break;
      case 2: {
        compute_event* event = nullptr;
        if (fuzz::failed(compute_event_record(on.stream, nullptr, &event))) break;
        static_cast<void>(fuzz::failed(compute_event_wait(event, stream().stream)));
        if (bytes_.one_in(2)) static_cast<void>(fuzz::failed(compute_event_synchronize(event)));
        compute_event_release(event);
        break;
      }
      case 3: {
        const auto i = static_cast<size_t>(&on - streams_.data());
        compute_stream_release(on.stream);
        on = {};
        fuzz::require(compute_stream_create(device_of_stream(i), nullptr, &on.stream));
        break;
      }
      case 4:
        if (const Operand* of = operand()) static_cast<void>(fuzz::failed(compute_tensor_synchronize(of->tensor)));
        break;
      default:
        static_cast<void>(fuzz::failed(compute_device_trim(device(bytes_.below(3)), 0)));
        break;
    }
  }

  void finish() {
    for (Stream& on : streams_) {
      if (on.records && bytes_.one_in(2)) end(on);
      compute_stream_release(on.stream);
    }
    for (const Operand& one : operands_) {
      Values got(static_cast<size_t>(one.line.count));
      const bool refused = fuzz::failed(compute_tensor_read(one.tensor, got.data(), size_of(got)));
      if (!refused) require_values(one.line, got);
      if (refused && one.line.memory->state == Memory::State::kKnown) std::abort();
      compute_tensor_release(one.tensor);
    }
    for (const Graph& one : graphs_) compute_graph_release(one.graph);
    compute_tensor_release(slot_);
    for (uint32_t i = 0; i < 3; ++i) {
      fuzz::require(compute_device_synchronize(device(i)));
      compute_device_statistics statistics{};
      statistics.struct_size = sizeof statistics;
      statistics.struct_type = COMPUTE_STRUCT_DEVICE_STATISTICS;
      fuzz::require(compute_device_get_statistics(device(i), &statistics));
      if (statistics.memory_used != 0 || statistics.blocks_live != 0) std::abort();
    }
    for (const Transfer& one : transfers_) {
      if (one.expected && one.memory != *one.expected) std::abort();
    }
  }

  fuzz::Bytes& bytes_;
  compute_tensor* slot_ = nullptr;
  std::array<Stream, 3> streams_;
  std::vector<Operand> operands_;
  std::vector<Graph> graphs_;
  std::deque<Transfer> transfers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static_cast<void>(fuzz::cpu_device());
  fuzz::Bytes bytes(data, size);
  Program(bytes).run();
  return 0;
}
