// PyTorch's caching allocator called from C++: no Python in any timed loop.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace allocator = c10::cuda::CUDACachingAllocator;

namespace {

using Clock = std::chrono::steady_clock;

double nanos_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double pairs(int64_t turns, int64_t bytes) {
  auto start = Clock::now();
  for (int64_t i = 0; i < turns; i++) {
    void* p = allocator::raw_alloc(bytes);
    allocator::raw_delete(p);
  }
  return nanos_since(start) / turns;
}

uint64_t splitmix(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double random_live(int64_t repetitions) {
  constexpr int slot_count = 1024, table = 1 << 16;
  std::vector<size_t> sizes(table);
  std::vector<int> slots(table);
  std::vector<void*> live(slot_count, nullptr);
  uint64_t state = 1;
  for (auto& size : sizes) size = 1 + splitmix(state) % (4u << 20);
  for (auto& slot : slots) slot = static_cast<int>(splitmix(state) % slot_count);
  double best = 1e18;
  for (int64_t r = 0; r <= repetitions; r++) {
    auto start = Clock::now();
    for (int i = 0; i < 2 * table; i++) {
      void*& p = live[slots[i & (table - 1)]];
      if (p) allocator::raw_delete(p);
      p = allocator::raw_alloc(sizes[i & (table - 1)]);
    }
    if (r > 0) best = std::min(best, nanos_since(start) / (2 * table));
  }
  for (void* p : live) {
    if (p) allocator::raw_delete(p);
  }
  return best;
}

double pairs_per_second(int threads, int64_t turns, bool own_stream) {
  auto shared = c10::cuda::getStreamFromPool().stream();
  std::vector<cudaStream_t> streams;
  for (int t = 0; t < threads; t++) streams.push_back(own_stream ? c10::cuda::getStreamFromPool().stream() : shared);
  std::vector<Clock::time_point> starts(threads), ends(threads);
  std::atomic<int> ready{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; t++) {
    workers.emplace_back([&, t] {
      allocator::raw_delete(allocator::raw_alloc_with_stream(1 << 20, streams[t]));
      ready++;
      while (ready.load() < threads) std::this_thread::yield();
      starts[t] = Clock::now();
      for (int64_t i = 0; i < turns; i++) {
        allocator::raw_delete(allocator::raw_alloc_with_stream(1 << 20, streams[t]));
      }
      ends[t] = Clock::now();
    });
  }
  for (auto& worker : workers) worker.join();
  std::chrono::duration<double> span =
      *std::max_element(ends.begin(), ends.end()) - *std::min_element(starts.begin(), starts.end());
  return threads * turns / span.count();
}

struct Header {
  int64_t operations, slots, streams, peak_live;
};

struct Operation {
  int64_t bytes;  // negative: free
  int32_t slot, stream;
};

// Nanoseconds for each operation, the best of the repetitions, of a file that python/traces.py wrote.
double replay(const std::string& path, int64_t repetitions) {
  FILE* file = std::fopen(path.c_str(), "rb");
  Header h{};
  if (!file || std::fread(&h, sizeof h, 1, file) != 1) throw std::runtime_error("cannot read " + path);
  std::vector<Operation> operations(h.operations);
  size_t read = std::fread(operations.data(), sizeof(Operation), operations.size(), file);
  std::fclose(file);
  if (read != operations.size()) throw std::runtime_error("cut off: " + path);
  std::vector<void*> live(h.slots, nullptr);
  std::vector<cudaStream_t> streams(h.streams, nullptr);
  for (int64_t s = 1; s < h.streams; s++) streams[s] = c10::cuda::getStreamFromPool().stream();
  double best = 1e18;
  for (int64_t r = 0; r < repetitions; r++) {
    auto start = Clock::now();
    for (const auto& o : operations) {
      if (o.bytes >= 0) {
        live[o.slot] = allocator::raw_alloc_with_stream(o.bytes, streams[o.stream]);
      } else {
        allocator::raw_delete(live[o.slot]);
        live[o.slot] = nullptr;
      }
    }
    best = std::min(best, nanos_since(start) / h.operations);
    for (void*& p : live) {
      if (p) allocator::raw_delete(p);
      p = nullptr;
    }
  }
  return best;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("pairs", &pairs);
  m.def("random_live", &random_live);
  m.def("pairs_per_second", &pairs_per_second);
  m.def("replay", &replay);
}
