// SPDX-License-Identifier: Apache-2.0
//
// group.hpp: groups of ranks, and collectives. Include compute.hpp.
#ifndef COMPUTE_GROUP_HPP_
#define COMPUTE_GROUP_HPP_

#include <chrono>
#include <span>
#include <string_view>
#include <vector>

#include "compute/device.hpp"
#include "compute/stream.hpp"
#include "compute/tensor.hpp"

namespace compute {

/// Options of a group. All ranks pass the same.
struct GroupOptions {
  std::chrono::nanoseconds timeout{0};  ///< how long a call waits for the other ranks; 0: as the setting says
};

/// Options of collectives.
struct CollectiveOptions {
  bool deterministic = false;  ///< the same bits on all devices and in all runs: not by the vendor's library
};

/// One rank's handle of a group of ranks, which exchange the contents of tensors. See compute.h.
///
/// All ranks make the same calls in the same order. The tensors are on the device of the group.
///
/// Threads: any; the calls of one rank are in an order that the program determines.
class Group : public Reference<compute_group, compute_group_retain, compute_group_release> {
 public:
  using Reference::Reference;

  /// A group of one rank.
  explicit Group(const Device& device)
      : Reference(detail::made<compute_group>(
            [&](compute_group** out) { return compute_group_create(nullptr, device.get(), nullptr, out); })) {}
  /// A group over a transport of the program, which is copied. The library closes it, unless this throws.
  Group(const compute_transport& transport, const Device& device, const GroupOptions& options = {})
      : Reference(detail::made<compute_group>([&](compute_group** out) {
          const compute_group_options given = sized_options(options);
          return compute_group_create(&transport, device.get(), &given, out);
        })) {}
  /// The group of all processes of an MPI program.
  [[nodiscard]] static Group over_mpi(const Device& device, const GroupOptions& options = {}) {
    const compute_group_options given = sized_options(options);
    return Group(detail::made<compute_group>(
        [&](compute_group** out) { return compute_group_create_mpi(device.get(), &given, out); }));
  }
  /// The group of devices of this process: element i is the handle of rank i. Call the collectives of different ranks
  /// on different threads.
  [[nodiscard]] static std::vector<Group> over_devices(std::span<const Device> devices,
                                                       const GroupOptions& options = {}) {
    const compute_group_options given = sized_options(options);
    std::vector<compute_device*> handles;
    for (const Device& device : devices) handles.push_back(device.get());
    std::vector<compute_group*> made(handles.size());
    check(compute_group_create_all(handles.data(), static_cast<int64_t>(handles.size()), &given, made.data()));
    std::vector<Group> groups;
    groups.reserve(made.size());
    for (compute_group* group : made) groups.emplace_back(group);
    return groups;
  }
  /// The ranks that pass the same `color`, in the order of `key` and then of the ranks. All ranks call it.
  [[nodiscard]] Group split(int32_t color, int32_t key = 0) const {
    return Group(
        detail::made<compute_group>([&](compute_group** out) { return compute_group_split(get(), color, key, out); }));
  }

  [[nodiscard]] int32_t rank() const { return compute_group_rank(get()); }
  [[nodiscard]] int32_t size() const { return compute_group_size(get()); }
  [[nodiscard]] Device device() const {
    compute_device* const device = compute_group_device(get());
    compute_device_retain(device);
    return Device(device);
  }
  /// What carries the data.
  [[nodiscard]] std::string_view description() const { return compute_group_description(get()); }
  /// Ends the group on all ranks: calls in progress and later ones throw PEER_FAILED.
  void abort() const { check(compute_group_abort(get())); }
  /// Waits on the host until all ranks have called it.
  void barrier() const { check(compute_group_barrier(get())); }

  /// x of all ranks, combined.
  [[nodiscard]] Tensor all_reduce(const Tensor& x, Reduction reduction = Reduction::sum,
                                  const CollectiveOptions& options = {}, const Stream& stream = {}) const {
    return made([&](compute_tensor** out) {
      const compute_collective_options given = sized_options(options);
      return compute_group_all_reduce(stream.get(), get(), x.get(), number(reduction), &given, out);
    });
  }
  void all_reduce_into(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::sum,
                       const CollectiveOptions& options = {}, const Stream& stream = {}) const {
    const compute_collective_options given = sized_options(options);
    check(compute_group_all_reduce_into(stream.get(), get(), x.get(), number(reduction), &given, y.get()));
  }
  /// This rank's part, along axis 0, of what all_reduce gives.
  [[nodiscard]] Tensor reduce_scatter(const Tensor& x, Reduction reduction = Reduction::sum,
                                      const CollectiveOptions& options = {}, const Stream& stream = {}) const {
    return made([&](compute_tensor** out) {
      const compute_collective_options given = sized_options(options);
      return compute_group_reduce_scatter(stream.get(), get(), x.get(), number(reduction), &given, out);
    });
  }
  void reduce_scatter_into(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::sum,
                           const CollectiveOptions& options = {}, const Stream& stream = {}) const {
    const compute_collective_options given = sized_options(options);
    check(compute_group_reduce_scatter_into(stream.get(), get(), x.get(), number(reduction), &given, y.get()));
  }
  /// x of all ranks, joined along axis 0.
  [[nodiscard]] Tensor all_gather(const Tensor& x, const CollectiveOptions& options = {},
                                  const Stream& stream = {}) const {
    return made([&](compute_tensor** out) {
      const compute_collective_options given = sized_options(options);
      return compute_group_all_gather(stream.get(), get(), x.get(), &given, out);
    });
  }
  void all_gather_into(const Tensor& x, const Tensor& y, const CollectiveOptions& options = {},
                       const Stream& stream = {}) const {
    const compute_collective_options given = sized_options(options);
    check(compute_group_all_gather_into(stream.get(), get(), x.get(), &given, y.get()));
  }
  /// x of the rank `root`. Elsewhere only its shape and dtype count.
  [[nodiscard]] Tensor broadcast(const Tensor& x, int32_t root = 0, const CollectiveOptions& options = {},
                                 const Stream& stream = {}) const {
    return made([&](compute_tensor** out) {
      const compute_collective_options given = sized_options(options);
      return compute_group_broadcast(stream.get(), get(), x.get(), root, &given, out);
    });
  }
  void broadcast_into(const Tensor& x, const Tensor& y, int32_t root = 0, const CollectiveOptions& options = {},
                      const Stream& stream = {}) const {
    const compute_collective_options given = sized_options(options);
    check(compute_group_broadcast_into(stream.get(), get(), x.get(), root, &given, y.get()));
  }
  /// Part i, along axis 0, is this rank's part of x of rank i.
  [[nodiscard]] Tensor all_to_all(const Tensor& x, const CollectiveOptions& options = {},
                                  const Stream& stream = {}) const {
    return made([&](compute_tensor** out) {
      const compute_collective_options given = sized_options(options);
      return compute_group_all_to_all(stream.get(), get(), x.get(), &given, out);
    });
  }
  void all_to_all_into(const Tensor& x, const Tensor& y, const CollectiveOptions& options = {},
                       const Stream& stream = {}) const {
    const compute_collective_options given = sized_options(options);
    check(compute_group_all_to_all_into(stream.get(), get(), x.get(), &given, y.get()));
  }
  /// Sends x to the rank `peer`, which receives it.
  void send(const Tensor& x, int32_t peer, const CollectiveOptions& options = {}, const Stream& stream = {}) const {
    const compute_collective_options given = sized_options(options);
    check(compute_group_send(stream.get(), get(), x.get(), peer, &given));
  }
  [[nodiscard]] Tensor recv(DType dtype, List<int64_t> shape, int32_t peer, const CollectiveOptions& options = {},
                            const Stream& stream = {}) const {
    return made([&](compute_tensor** out) {
      const compute_collective_options given = sized_options(options);
      return compute_group_recv(stream.get(), get(), dtype.id(), static_cast<int32_t>(shape.size()), shape.data(), peer,
                                &given, out);
    });
  }
  void recv_into(const Tensor& y, int32_t peer, const CollectiveOptions& options = {},
                 const Stream& stream = {}) const {
    const compute_collective_options given = sized_options(options);
    check(compute_group_recv_into(stream.get(), get(), y.get(), peer, &given));
  }

 private:
  template <class F>
  static Tensor made(F&& call) {
    return Tensor(detail::made<compute_tensor>(std::forward<F>(call)));
  }
  static int32_t number(Reduction reduction) { return static_cast<int32_t>(reduction); }
  static compute_group_options sized_options(const GroupOptions& options) {
    auto given = sized<compute_group_options>();
    given.timeout_ns = options.timeout.count();
    return given;
  }
  static compute_collective_options sized_options(const CollectiveOptions& options) {
    auto given = sized<compute_collective_options>();
    given.flags = options.deterministic ? COMPUTE_COLLECTIVE_DETERMINISTIC : 0u;
    return given;
  }
};

}  // namespace compute

#endif  // COMPUTE_GROUP_HPP_
