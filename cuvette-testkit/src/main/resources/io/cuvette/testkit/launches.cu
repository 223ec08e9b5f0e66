// Rebuild: nvcc -ptx -arch=sm_75 launches.cu -o launches.ptx && sed -i 's/^.version .*/.version 8.0/' launches.ptx
#include <cooperative_groups.h>

struct Point { float first; double second; };

extern "C" __global__ void addVectors(const float *a, const float *b, float *sum, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

extern "C" __global__ void doNothing() {}

extern "C" __global__ void addValues(char c, short s, double d, Point point, long long *out) {
  *out = c + s + (long long)(d + point.first + point.second);
}

extern "C" __global__ void scale(float *data, float factor, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

// The sum of each block, with as much dynamic shared memory as it has threads.
extern "C" __global__ void sumBlocks(const int *in, int *out, int count) {
  extern __shared__ int part[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < count ? in[i] : 0;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

// Counts bytes: first in shared memory, then in that of the device.
extern "C" __global__ void countBytes(const unsigned char *in, unsigned int *bins, int count) {
  __shared__ unsigned int own[256];
  for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) own[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&own[in[i]], 1);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) atomicAdd(&bins[bin], own[bin]);
}

// The sum of all, for blocks that wait for each other: one number of parts for each block.
extern "C" __global__ void sumAll(const int *in, int *parts, int *sum, int count) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) parts[blockIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&parts[blockIdx.x], in[i]);
  }
  grid.sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    int all = 0;
    for (int block = 0; block < gridDim.x; block++) all += parts[block];
    *sum = all;
  }
}
