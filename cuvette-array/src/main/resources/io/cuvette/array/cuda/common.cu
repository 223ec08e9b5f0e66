// Kernels that know sizes and not types: transposition in tiles, and random numbers.
#include "types.cuh"

struct Tiles {
  i64 rows, columns;            // of the result
  i64 outOffset, inOffset;      // all in bytes
  i64 outRow, inColumn;         // from row to row of the result, and from column to column of the operand
  i64 outMatrix, inMatrix;
  i64 matrices;                 // as many as the grid has in z
};
static_assert(sizeof(Tiles) == 72, "as in TilesArgument.java");

// The elements of a row of the result lie side by side, as those of a column of the operand do.
template <class U> __device__ inline void transpose(char* out, const char* in, const Tiles& t) {
  __shared__ U tile[32][33];
  i64 column = (i64)blockIdx.x * 32, row = (i64)blockIdx.y * 32;
  in += t.inOffset + blockIdx.z * t.inMatrix;
  out += t.outOffset + blockIdx.z * t.outMatrix;
  for (int k = threadIdx.y; k < 32; k += 8) {
    i64 r = row + threadIdx.x, c = column + k;
    if (r < t.rows && c < t.columns)
      tile[k][threadIdx.x] = *reinterpret_cast<const U*>(in + c * t.inColumn + r * (i64)sizeof(U));
  }
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += 8) {
    i64 r = row + k, c = column + threadIdx.x;
    if (r < t.rows && c < t.columns)
      *reinterpret_cast<U*>(out + r * t.outRow + c * (i64)sizeof(U)) = tile[threadIdx.x][k];
  }
}
struct Sixteen { u64 low, high; };
#define TRANSPOSE(BYTES, U) \
  extern "C" __global__ void cuvette_transpose_##BYTES( \
      char* out, const char* in, const __grid_constant__ Tiles t) { \
    transpose<U>(out, in, t); \
  }
TRANSPOSE(1, u8)
TRANSPOSE(2, u16)
TRANSPOSE(4, u32)
TRANSPOSE(8, u64)
TRANSPOSE(16, Sixteen)

// Philox 4x32-10 of Salmon et al., SC 2011: the block of a counter under a key.
__device__ inline uint4 philox(u64 counter, u64 key) {
  uint4 x = {(u32)counter, (u32)(counter >> 32), 0, 0};
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    u32 high0 = __umulhi(0xD2511F53u, x.x), low0 = 0xD2511F53u * x.x;
    u32 high1 = __umulhi(0xCD9E8D57u, x.z), low1 = 0xCD9E8D57u * x.z;
    x = {high1 ^ x.y ^ k0, low1, high0 ^ x.w ^ k1, low0};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return x;
}

struct Draw {
  i64 count;
  u64 key;
  u64 counter;  // of the first block
  i64 outOffset;
  u64 low;      // of integers; the bits of the mean of normal numbers
  u64 extent;   // how many integers there are, 0 for all; the bits of the standard deviation
};
static_assert(sizeof(Draw) == 48, "as in DrawArgument.java");

__device__ inline u64 both(u32 low, u32 high) { return (u64)high << 32 | low; }
// In [0, 1), by the upper 24 or 53 bits.
__device__ inline float unit(u32 x) { return (x >> 8) * 0x1p-24f; }
__device__ inline double unit(u64 x) { return (x >> 11) * 0x1p-53; }

template <class T, int N> __device__ inline void put(char* out, const Draw& d, i64 block, const T* v) {
  T* to = reinterpret_cast<T*>(out + d.outOffset) + block * N;
#pragma unroll
  for (int n = 0; n < N; n++)
    if (block * N + n < d.count) to[n] = v[n];
}
#define BLOCK ((i64)blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void cuvette_uniform_f32(char* out, const __grid_constant__ Draw d) {
  i64 b = BLOCK;
  uint4 x = philox(d.counter + b, d.key);
  float v[4] = {unit(x.x), unit(x.y), unit(x.z), unit(x.w)};
  put<float, 4>(out, d, b, v);
}
extern "C" __global__ void cuvette_uniform_f64(char* out, const __grid_constant__ Draw d) {
  i64 b = BLOCK;
  uint4 x = philox(d.counter + b, d.key);
  double v[2] = {unit(both(x.x, x.y)), unit(both(x.z, x.w))};
  put<double, 2>(out, d, b, v);
}
// By Box and Muller, of 1 - u in (0, 1].
__device__ inline void normals(float u, float w, float* v, const Draw& d) {
  float r = sqrtf(-2.0f * logf(1.0f - u)), s, c;
  sincospif(2.0f * w, &s, &c);
  float mean = (float)__longlong_as_double(d.low), deviation = (float)__longlong_as_double(d.extent);
  v[0] = mean + deviation * (r * c);
  v[1] = mean + deviation * (r * s);
}
__device__ inline void normals(double u, double w, double* v, const Draw& d) {
  double r = sqrt(-2.0 * log(1.0 - u)), s, c;
  sincospi(2.0 * w, &s, &c);
  double mean = __longlong_as_double(d.low), deviation = __longlong_as_double(d.extent);
  v[0] = mean + deviation * (r * c);
  v[1] = mean + deviation * (r * s);
}
extern "C" __global__ void cuvette_normal_f32(char* out, const __grid_constant__ Draw d) {
  i64 b = BLOCK;
  uint4 x = philox(d.counter + b, d.key);
  float v[4];
  normals(unit(x.x), unit(x.y), v, d);
  normals(unit(x.z), unit(x.w), v + 2, d);
  put<float, 4>(out, d, b, v);
}
extern "C" __global__ void cuvette_normal_f64(char* out, const __grid_constant__ Draw d) {
  i64 b = BLOCK;
  uint4 x = philox(d.counter + b, d.key);
  double v[2];
  normals(unit(both(x.x, x.y)), unit(both(x.z, x.w)), v, d);
  put<double, 2>(out, d, b, v);
}
// low + the upper half of 64 bits times the extent.
template <class T> __device__ inline void integers(char* out, const Draw& d) {
  i64 b = BLOCK;
  uint4 x = philox(d.counter + b, d.key);
  u64 first = both(x.x, x.y), second = both(x.z, x.w);
  T v[2] = {(T)(d.low + (d.extent == 0 ? first : __umul64hi(first, d.extent))),
            (T)(d.low + (d.extent == 0 ? second : __umul64hi(second, d.extent)))};
  put<T, 2>(out, d, b, v);
}
#define INTEGERS(NAME, T) \
  extern "C" __global__ void cuvette_integers_##NAME(char* out, const __grid_constant__ Draw d) { \
    integers<T>(out, d); \
  }
INTEGERS(1, u8)
INTEGERS(2, u16)
INTEGERS(4, u32)
INTEGERS(8, u64)
