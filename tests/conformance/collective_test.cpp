// SPDX-License-Identifier: Apache-2.0
// Collectives: between the device and cpu, and between two devices of the plugin.
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <thread>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;
using Group = Handle<compute_group, compute_group_retain, compute_group_release>;

std::vector<Group> groups_of(const std::vector<compute_device*>& devices) {
  std::vector<compute_group*> made(devices.size());
  check(compute_group_create_all(devices.data(), static_cast<int64_t>(devices.size()), nullptr, made.data()));
  std::vector<Group> groups(made.size());
  for (size_t i = 0; i < made.size(); ++i) *groups[i].out() = made[i];
  return groups;
}

// Runs body(group) on a thread for each rank, and throws what the first one throws.
void on_all_ranks(const std::vector<Group>& groups, const std::function<void(compute_group*)>& body) {
  std::vector<std::exception_ptr> failures(groups.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < groups.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        body(groups[i]);
      } catch (...) {
        failures[i] = std::current_exception();
        compute_error_free(compute_group_abort(groups[i]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

Tensor upload_to(compute_device* device, const Array& array) {
  Tensor tensor;
  const Shape& shape = array.shape();
  check(compute_tensor_from_host(device, array.dtype(), static_cast<int32_t>(shape.size()), shape.data(), array.data(),
                                 tensor.out()));
  return tensor;
}

std::vector<uint8_t> bytes_of(compute_tensor* tensor) {
  std::vector<uint8_t> bytes(static_cast<size_t>(compute_tensor_size_bytes(tensor)));
  check(compute_tensor_read(tensor, bytes.data(), static_cast<int64_t>(bytes.size())));
  return bytes;
}

Device open(const char* name) {
  Device device;
  check(compute_device_open(name, device.out()));
  return device;
}

// Both ranks get the same bits, on a default stream and on another one.
void with_cpu(const Session& session) {
  const Device cpu = open("cpu");
  const std::vector<Group> groups = groups_of({session.device(), cpu.get()});
  const Stream stream = session.stream();
  Inputs inputs(73);
  for (const Dtype dtype : tested_dtypes(session.level())) {
    if (!session.states(dtype, COMPUTE_DTYPE_LEVEL_STORAGE)) continue;
    for (const int64_t count : {int64_t{1}, int64_t{5000}}) {
      const Array values[] = {inputs.uniform(dtype, {count}, -9, 9), inputs.uniform(dtype, {count}, -9, 9)};
      std::vector<uint8_t> sums[2], joined[2];
      Tensor sum;
      on_all_ranks(groups, [&](compute_group* group) {
        const auto rank = static_cast<size_t>(compute_group_rank(group));
        compute_stream* const queue = rank == 0 && count > 1 ? stream.get() : nullptr;
        const Tensor x = upload_to(compute_group_device(group), values[rank]);
        Tensor y, all;
        check(compute_group_all_reduce(queue, group, x, COMPUTE_REDUCTION_SUM, nullptr, y.out()));
        check(compute_group_all_gather(queue, group, x, nullptr, all.out()));
        sums[rank] = bytes_of(y);
        joined[rank] = bytes_of(all);
        if (rank == 0) sum = y;
      });
      EXPECT_EQ(sums[0], sums[1]) << "dtype " << dtype;
      EXPECT_EQ(joined[0], joined[1]) << "dtype " << dtype;
      const auto* const first = reinterpret_cast<const uint8_t*>(values[0].data());
      std::vector<uint8_t> expected(first, first + values[0].size_bytes());
      const auto* const second = reinterpret_cast<const uint8_t*>(values[1].data());
      expected.insert(expected.end(), second, second + values[1].size_bytes());
      EXPECT_EQ(joined[0], expected) << "dtype " << dtype;
      if (dtype == dtype::BOOL) continue;
      const Operand operands[] = {{values[0], {}}, {values[1], {}}};
      session.judge(sum, reference("add", {}, operands), bound_of("add", dtype), "all_reduce");
    }
  }
}

// The other device of the plugin, if there are several.
std::string neighbour_of(const Session& session) {
  int64_t count = 0;
  check(compute_device_list(nullptr, 0, &count));
  std::vector<compute_device_info> infos(static_cast<size_t>(count));
  infos[0].struct_size = sizeof(compute_device_info);
  check(compute_device_list(infos.data(), count, &count));
  for (const compute_device_info& info : infos) {
    if (info.plugin == session.plugin() && info.name != session.name() && info.unusable_size == 0) return info.name;
  }
  throw Lacking("the plugin has no other device");
}

void by_the_library_of_the_plugin(const Session& session) {
  const Device other = open(neighbour_of(session).c_str());
  const std::vector<Group> groups = groups_of({session.device(), other.get()});
  if (std::string_view(compute_group_description(groups[0])).find(", ") == std::string_view::npos)
    throw Lacking("the plugin has no compute.ext.collective.v1, or not for these devices");
  Inputs inputs(74);
  const Array values[] = {inputs.uniform(dtype::INT32, {600}, -99, 99), inputs.uniform(dtype::INT32, {600}, -99, 99)};
  on_all_ranks(groups, [&](compute_group* group) {
    const auto rank = static_cast<size_t>(compute_group_rank(group));
    const int32_t peer = 1 - static_cast<int32_t>(rank);
    const auto* const own = reinterpret_cast<const int32_t*>(values[rank].data());
    const auto* const others = reinterpret_cast<const int32_t*>(values[1 - rank].data());
    const Tensor x = upload_to(compute_group_device(group), values[rank]);
    Tensor sum, part, all, root, swapped, received;
    check(compute_group_all_reduce(nullptr, group, x, COMPUTE_REDUCTION_SUM, nullptr, sum.out()));
    check(compute_group_reduce_scatter(nullptr, group, x, COMPUTE_REDUCTION_MAX, nullptr, part.out()));
    check(compute_group_all_gather(nullptr, group, x, nullptr, all.out()));
    check(compute_group_broadcast(nullptr, group, x, 1, nullptr, root.out()));
    check(compute_group_all_to_all(nullptr, group, x, nullptr, swapped.out()));
    const int64_t shape[] = {600};
    if (rank == 0) check(compute_group_send(nullptr, group, x, peer, nullptr));
    check(rank == 1 ? compute_group_recv(nullptr, group, COMPUTE_DTYPE_INT32, 1, shape, peer, nullptr, received.out())
                    : nullptr);
    const auto element = [](const std::vector<uint8_t>& bytes, size_t i) {
      return reinterpret_cast<const int32_t*>(bytes.data())[i];
    };
    const std::vector<uint8_t> sums = bytes_of(sum), parts = bytes_of(part), joined = bytes_of(all),
                               of_root = bytes_of(root), exchanged = bytes_of(swapped);
    const std::vector<uint8_t> sent = rank == 1 ? bytes_of(received) : std::vector<uint8_t>();
    for (size_t i = 0; i < 600; ++i) {
      EXPECT_EQ(element(sums, i), own[i] + others[i]);
      EXPECT_EQ(element(joined, rank * 600 + i), own[i]);
      EXPECT_EQ(element(joined, (1 - rank) * 600 + i), others[i]);
      EXPECT_EQ(element(of_root, i), (rank == 1 ? own : others)[i]);
      if (rank == 1) {
        EXPECT_EQ(element(sent, i), others[i]);
      }
      if (i >= 300) continue;
      EXPECT_EQ(element(parts, i), std::max(own[rank * 300 + i], others[rank * 300 + i]));
      EXPECT_EQ(element(exchanged, rank * 300 + i), own[rank * 300 + i]);
      EXPECT_EQ(element(exchanged, (1 - rank) * 300 + i), others[rank * 300 + i]);
    }
  });
}

// Each run of the graph is a collective, between ops of this device.
void by_the_library_in_a_graph(const Session& session) {
  const Device other = open(neighbour_of(session).c_str());
  const std::vector<Group> groups = groups_of({session.device(), other.get()});
  if (std::string_view(compute_group_description(groups[0])).find(", ") == std::string_view::npos)
    throw Lacking("the plugin has no compute.ext.collective.v1, or not for these devices");
  Inputs inputs(75);
  const Array values[] = {inputs.uniform(dtype::INT32, {600}, -99, 99), inputs.uniform(dtype::INT32, {600}, -99, 99)};
  on_all_ranks(groups, [&](compute_group* group) {
    const auto rank = static_cast<size_t>(compute_group_rank(group));
    const Tensor x = upload_to(compute_group_device(group), values[rank]);
    Stream stream;
    check(compute_stream_create(compute_group_device(group), nullptr, stream.out()));
    check(compute_graph_begin(stream, nullptr));
    Tensor twice, sum, negative;
    check(compute_add(stream, x, x, twice.out()));
    check(compute_group_all_reduce(stream, group, twice, COMPUTE_REDUCTION_SUM, nullptr, sum.out()));
    check(compute_negative(stream, sum, negative.out()));
    Graph graph;
    check(compute_graph_end(stream, graph.out()));
    for (int32_t round = 1; round <= 3; ++round) {
      std::vector<int32_t> now(600);
      for (size_t i = 0; i < 600; ++i) now[i] = round * reinterpret_cast<const int32_t*>(values[rank].data())[i];
      check(compute_tensor_write(x, now.data(), 2400));
      check(compute_graph_run(graph, stream));
      const std::vector<uint8_t> found = bytes_of(negative);
      for (size_t i = 0; i < 600; ++i) {
        const int32_t both = reinterpret_cast<const int32_t*>(values[0].data())[i] +
                             reinterpret_cast<const int32_t*>(values[1].data())[i];
        EXPECT_EQ(reinterpret_cast<const int32_t*>(found.data())[i], -2 * round * both);
      }
    }
  });
}

}  // namespace

void add_collective_tests(Registry& registry) {
  for (Test test : {Test{"collective", "with_cpu", with_cpu},
                    Test{"collective", "by_the_library_of_the_plugin", by_the_library_of_the_plugin},
                    Test{"collective", "by_the_library_in_a_graph", by_the_library_in_a_graph}}) {
    test.runs_ops = false;
    registry.add(std::move(test));
  }
}

}  // namespace compute::conformance
