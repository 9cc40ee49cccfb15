// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/device.hpp"

#include <dirent.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "plugins/cpu/base/host.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/threads/threads.hpp"

#define TBB_PREVIEW_VERSION 1
#include <tbb/version.h>

namespace compute::cpu {
namespace {

constexpr const char* kProcessors = "/sys/devices/system/cpu/";

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\n") - first + 1));
}

// The first line of a file, or "".
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return trimmed(line);
}

// Entries of a folder that are `prefix` and a number.
std::vector<int> numbered(const std::string& folder, std::string_view prefix) {
  std::vector<int> numbers;
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return numbers;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.substr(0, prefix.size()) != prefix) continue;
    const std::string_view rest = name.substr(prefix.size());
    if (!rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos) {
      numbers.push_back(std::atoi(rest.data()));
    }
  }
  closedir(directory);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// "0-3,8" has five processors.
int count_in_list(const std::string& list) {
  int count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0;
    const int fields = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    if (fields >= 1) count += fields == 2 ? last - first + 1 : 1;
  }
  return count;
}

std::string text_of_bytes(int64_t bytes) {
  for (const auto& [unit, name] :
       {std::pair<int64_t, const char*>{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}}) {
    if (bytes >= unit && bytes % unit == 0) return std::to_string(bytes / unit) + name;
  }
  return std::to_string(bytes) + " bytes";
}

// /proc/cpuinfo's fields for the first processor; names differ between architectures.
std::map<std::string, std::string> read_cpuinfo() {
  std::map<std::string, std::string> fields;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos) fields.emplace(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  }
  return fields;
}

using Properties = std::vector<std::pair<std::string, std::string>>;

void add(Properties& properties, std::string name, std::string value) {
  if (!value.empty()) properties.emplace_back(std::move(name), std::move(value));
}

void add_topology(Properties& properties) {
  std::set<std::string> cores, packages;
  int present = 0;
  for (const int cpu : numbered(kProcessors, "cpu")) {
    const std::string topology = std::string(kProcessors) + "cpu" + std::to_string(cpu) + "/topology/";
    const std::string package = line_of(topology + "physical_package_id");
    if (package.empty()) continue;
    ++present;
    packages.insert(package);
    cores.insert(package + ":" + line_of(topology + "core_id"));
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (!packages.empty()) add(properties, "sockets", std::to_string(packages.size()));
  if (!cores.empty()) add(properties, "cores", std::to_string(cores.size()));
  add(properties, "hardware_threads", std::to_string(present > 0 ? present : online));
  add(properties, "hardware_threads_online", std::to_string(online));
  add(properties, "affinity_mask_threads", std::to_string(affinity_count()));
  const auto quota = cgroup_cpu_limit();
  add(properties, "cgroup_quota_threads", quota ? std::to_string(*quota) : "unlimited");
  add(properties, "threads_used", std::to_string(usable_threads()));
  const std::string nodes = line_of("/sys/devices/system/node/online");
  add(properties, "numa_nodes", nodes.empty() ? "1" : std::to_string(count_in_list(nodes)));
}

void add_instruction_sets(Properties& properties, const std::map<std::string, std::string>& cpuinfo) {
  const Isa* best = select_isa(nullptr);
  const std::optional<std::string> narrow = setting("COMPUTE_CPU_ISA");
  const Isa* chosen = narrow ? select_isa(narrow->c_str()) : best;
  add(properties, "isa", (chosen != nullptr ? chosen : best)->name);
  add(properties, "isa_best", best->name);
  for (const char* field : {"flags", "Features"}) {
    const auto found = cpuinfo.find(field);
    if (found == cpuinfo.end()) continue;
    std::string shown;
    std::istringstream words(found->second);
    for (std::string word; words >> word;) {
      for (const char* prefix :
           {"sse", "ssse", "avx", "fma", "f16c", "bmi", "amx", "vnni", "asimd", "sve", "sme", "bf16", "i8mm", "fphp"}) {
        if (word.rfind(prefix, 0) != 0) continue;
        shown += (shown.empty() ? "" : " ") + word;
        break;
      }
    }
    add(properties, "isa_features", shown);
  }
}

void add_caches(Properties& properties) {
  const std::string folder = std::string(kProcessors) + "cpu0/cache/";
  for (const int index : numbered(folder, "index")) {
    const std::string cache = folder + "index" + std::to_string(index) + "/";
    const std::string type = line_of(cache + "type");
    std::string name = "cache_l" + line_of(cache + "level");
    if (type == "Data") name += "_data";
    if (type == "Instruction") name += "_instruction";
    const int64_t kib = std::atoll(line_of(cache + "size").c_str());
    const int sharers = count_in_list(line_of(cache + "shared_cpu_list"));
    add(properties, name,
        text_of_bytes(kib * 1024) + ", " + line_of(cache + "ways_of_associativity") + " ways, shared by " +
            std::to_string(std::max(sharers, 1)) + (sharers > 1 ? " threads" : " thread"));
  }
  const std::string line = line_of(folder + "index0/coherency_line_size");
  if (!line.empty()) add(properties, "cache_line", line + " bytes");
}

void add_frequencies(Properties& properties, const std::map<std::string, std::string>& cpuinfo) {
  if (const auto mhz = cpuinfo.find("cpu MHz"); mhz != cpuinfo.end()) {
    add(properties, "frequency_now", std::to_string(std::atoll(mhz->second.c_str())) + " MHz");
  }
  const std::string folder = std::string(kProcessors) + "cpu0/cpufreq/";
  for (const auto& [file, name] :
       {std::pair{"cpuinfo_min_freq", "frequency_least"}, {"cpuinfo_max_freq", "frequency_greatest"}}) {
    const std::string khz = line_of(folder + file);
    if (!khz.empty()) add(properties, name, std::to_string(std::atoll(khz.c_str()) / 1000) + " MHz");
  }
  add(properties, "frequency_governor", line_of(folder + "scaling_governor"));
}

void add_memory(Properties& properties) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    const int64_t kib = std::atoll(line.c_str() + std::min(line.size(), line.find_first_of("0123456789")));
    if (line.rfind("SwapTotal:", 0) == 0) add(properties, "swap", text_of_bytes(kib * 1024));
    if (line.rfind("Hugepagesize:", 0) == 0) add(properties, "huge_page", text_of_bytes(kib * 1024));
  }
  add(properties, "page", text_of_bytes(sysconf(_SC_PAGESIZE)));
  // "always [madvise] never": the one in brackets is in force.
  const std::string modes = line_of("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = modes.find('['), close = modes.find(']');
  if (open != std::string::npos && close != std::string::npos) {
    add(properties, "transparent_huge_pages", modes.substr(open + 1, close - open - 1));
  }
}

// Open devices, for fork. Never destroyed.
struct OpenDevices {
  std::mutex mutex;
  std::vector<Device*> devices;
};

OpenDevices& open_devices() {
  static OpenDevices& instance = *new OpenDevices;
  return instance;
}

}  // namespace

ProcessorInfo read_processor_info() {
  ProcessorInfo info;
  const auto cpuinfo = read_cpuinfo();
  for (const char* field : {"model name", "Model", "Processor", "cpu"}) {
    if (const auto found = cpuinfo.find(field); info.model.empty() && found != cpuinfo.end())
      info.model = found->second;
  }
  for (const char* field : {"vendor_id", "CPU implementer"}) {
    if (const auto found = cpuinfo.find(field); info.vendor.empty() && found != cpuinfo.end())
      info.vendor = found->second;
  }
  utsname system{};
  if (uname(&system) == 0) info.kernel = std::string(system.sysname) + " " + system.release;
  if (info.model.empty()) info.model = std::string(system.machine) + " processor";

  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) info.memory_bytes = static_cast<int64_t>(pages) * page_bytes;

  Properties& properties = info.properties;
  add(properties, "architecture", system.machine);
  for (const auto& [field, name] :
       {std::pair{"cpu family", "family"}, {"model", "model"}, {"stepping", "stepping"}, {"microcode", "microcode"}}) {
    if (const auto found = cpuinfo.find(field); found != cpuinfo.end()) add(properties, name, found->second);
  }
  add_topology(properties);
  add_instruction_sets(properties, cpuinfo);
  add_caches(properties);
  add_frequencies(properties, cpuinfo);
  add_memory(properties);
  add(properties, "onetbb", TBB_runtime_version());
  add(properties, "concurrent_streams", "unlimited, one thread each");
  add(properties, "host_memory", "used in place");
  return info;
}

Device::Device() : spin_ns_(spin_time_ns()) {
  OpenDevices& open = open_devices();
  std::lock_guard lock(open.mutex);
  open.devices.push_back(this);
}

Device::~Device() {
  OpenDevices& open = open_devices();
  {
    std::lock_guard lock(open.mutex);
    std::erase(open.devices, this);
  }
  while (!queued_.empty()) destroy_stream(queued_.back());
  for (Stream* stream : retired_) {
    stream->join();
    stream->release();
  }
}

Stream* Device::create_stream(uint32_t flags) {
  if (flags & COMPUTE_PLUGIN_STREAM_IMMEDIATE) return Stream::make_immediate(this);
  std::lock_guard lock(mutex_);
  reap();
  queued_.reserve(queued_.size() + 1);
  retired_.reserve(retired_.size() + queued_.size() + 1);  // destroying cannot fail
  queued_.push_back(Stream::make_queued(this, spin_ns_));
  return queued_.back();
}

void Device::destroy_stream(Stream* stream) {
  if (stream->is_immediate()) return stream->release();
  std::lock_guard lock(mutex_);
  std::erase(queued_, stream);
  retired_.push_back(stream);
  stream->finish();
}

void Device::reap() {
  std::erase_if(retired_, [](Stream* stream) {
    if (!stream->has_finished()) return false;
    stream->join();
    stream->release();
    return true;
  });
}

void Device::forked() {
  OpenDevices& open = open_devices();
  new (&open.mutex) std::mutex;
  for (Device* device : open.devices) {
    new (&device->mutex_) std::mutex;
    for (Stream* stream : device->queued_) stream->forked();
    for (Stream* stream : device->retired_) stream->forked();
  }
}

}  // namespace compute::cpu
