// Rebuild: nvcc -ptx -arch=sm_75 kernels.cu -o kernels.ptx && sed -i 's/^.version .*/.version 8.0/' kernels.ptx
#include <cooperative_groups.h>
struct Pair { float first; double second; };
extern "C" __global__ void add(const float *a, const float *b, float *sum, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void mixed(char c, short s, double d, Pair pair, long long *out) {
  *out = c + s + (long long)(d + pair.first + pair.second);
}

/* Adds up the numbers of each block of 256 threads in shared memory. */
extern "C" __global__ void sums(const int *numbers, int *out, int count) {
  __shared__ int part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < count ? numbers[i] : 0;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

/* Reverses the numbers of each block in shared memory that the launch sizes. */
extern "C" __global__ void reverse(int *numbers) {
  extern __shared__ int block[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  block[threadIdx.x] = numbers[i];
  __syncthreads();
  numbers[i] = block[blockDim.x - 1 - threadIdx.x];
}

/* Counts how often each byte occurs. */
extern "C" __global__ void histogram(const unsigned char *bytes, int count, int *bins) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[bytes[i]], 1);
}

/* Each thread adds 1 to a counter and notes it once all have: a cooperative launch. */
extern "C" __global__ void meet(int *counter, int *seen) {
  atomicAdd(counter, 1);
  cooperative_groups::this_grid().sync();
  seen[blockIdx.x * blockDim.x + threadIdx.x] = *(volatile int *)counter;
}
