// Runs a function over strided arrays of up to 32 dimensions, the fastest first.
#pragma once
#include "types.cuh"

#define MAX_RANK 32

struct Loop {
  i64 count;
  i32 rank;
  i32 mode;
  i64 offset[4];  // in bytes: of the result and of three operands
  i32 immediate;  // bit k: operand k is the value below
  i32 unused;
  alignas(16) unsigned char value[3][16];
  i64 shape[MAX_RANK];
  i64 stride[4][MAX_RANK];  // in bytes
};
static_assert(sizeof(Loop) == 1392, "as in LoopArgument.java");

enum { VECTOR = 0, STRIDED = 1 };

template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

template <class T, int N>
__device__ inline Pack<T, N> load(const char* at) {
  constexpr int bytes = sizeof(T) * N;
  Pack<T, N> result;
  if constexpr (bytes == 16) {
    *reinterpret_cast<uint4*>(&result) = *reinterpret_cast<const uint4*>(at);
  } else if constexpr (bytes == 8) {
    *reinterpret_cast<uint2*>(&result) = *reinterpret_cast<const uint2*>(at);
  } else if constexpr (bytes == 4) {
    *reinterpret_cast<u32*>(&result) = *reinterpret_cast<const u32*>(at);
  } else if constexpr (bytes == 2) {
    *reinterpret_cast<u16*>(&result) = *reinterpret_cast<const u16*>(at);
  } else {
    *reinterpret_cast<u8*>(&result) = *reinterpret_cast<const u8*>(at);
  }
  return result;
}

template <class T, int N>
__device__ inline void store(char* at, const Pack<T, N>& value) {
  constexpr int bytes = sizeof(T) * N;
  if constexpr (bytes == 16) {
    *reinterpret_cast<uint4*>(at) = *reinterpret_cast<const uint4*>(&value);
  } else if constexpr (bytes == 8) {
    *reinterpret_cast<uint2*>(at) = *reinterpret_cast<const uint2*>(&value);
  } else if constexpr (bytes == 4) {
    *reinterpret_cast<u32*>(at) = *reinterpret_cast<const u32*>(&value);
  } else if constexpr (bytes == 2) {
    *reinterpret_cast<u16*>(at) = *reinterpret_cast<const u16*>(&value);
  } else {
    *reinterpret_cast<u8*>(at) = *reinterpret_cast<const u8*>(&value);
  }
}

// An operand in flat modes: contiguous, or one value for all.
template <class T, int N>
__device__ inline Pack<T, N> flat(const Loop& l, int k, const char* base, i64 first) {
  if (l.immediate >> k & 1 || l.stride[k + 1][0] == 0) {
    const T one = l.immediate >> k & 1 ? *reinterpret_cast<const T*>(l.value[k])
                                       : *reinterpret_cast<const T*>(base + l.offset[k + 1]);
    Pack<T, N> result;
#pragma unroll
    for (int i = 0; i < N; i++) result.v[i] = one;
    return result;
  }
  return load<T, N>(base + l.offset[k + 1] + first * (i64)sizeof(T));
}

template <class T>
__device__ inline T at(const Loop& l, int k, const char* base, i64 offset) {
  return l.immediate >> k & 1 ? *reinterpret_cast<const T*>(l.value[k])
                              : *reinterpret_cast<const T*>(base + l.offset[k + 1] + offset);
}

// Where an element of the result and of the operands is, in bytes.
template <int OPERANDS>
__device__ inline void offsets(const Loop& l, i64 index, i64* result) {
#pragma unroll
  for (int k = 0; k <= OPERANDS; k++) result[k] = 0;
#pragma unroll 1
  for (int d = 0; d < l.rank; d++) {
    i64 here = index;
    if (d < l.rank - 1) {
      i64 extent = l.shape[d];
      i64 next = (u64)(index | extent) >> 32 == 0 ? (i64)((u32)index / (u32)extent) : index / extent;
      here = index - next * extent;
      index = next;
    }
#pragma unroll
    for (int k = 0; k <= OPERANDS; k++) result[k] += here * l.stride[k][d];
  }
}

template <class... T> struct Largest { static constexpr int size = 1; };
template <class T, class... U> struct Largest<T, U...> {
  static constexpr int size =
      (int)sizeof(T) > Largest<U...>::size ? (int)sizeof(T) : Largest<U...>::size;
};

#define THREAD ((i64)blockIdx.x * blockDim.x + threadIdx.x)

// Full packs of a contiguous loop; false for its last elements and for other loops.
template <class R, int N, class F>
__device__ inline bool packed(char* out, const Loop& l, i64 first, F f) {
  if (l.mode != VECTOR || first + N > l.count) return false;
  store<R, N>(out + l.offset[0] + first * (i64)sizeof(R), f());
  return true;
}

// One by one.
template <class R, int OPERANDS, class F>
__device__ inline void single(char* out, const Loop& l, i64 first, F f) {
  i64 last = l.mode == VECTOR ? l.count : first + 1;
#pragma unroll 1
  for (i64 i = first; i < last && i < l.count; i++) {
    i64 o[OPERANDS + 1];
    offsets<OPERANDS>(l, i, o);
    *reinterpret_cast<R*>(out + l.offset[0] + o[0]) = f(o);
  }
}

template <class R, class A, class F>
__device__ inline void map1(char* out, const char* a, const Loop& l, F f) {
  constexpr int N = 16 / Largest<R, A>::size;
  i64 first = THREAD * (l.mode == VECTOR ? N : 1);
  if (packed<R, N>(out, l, first, [&] {
        Pack<A, N> x = flat<A, N>(l, 0, a, first);
        Pack<R, N> r;
#pragma unroll
        for (int n = 0; n < N; n++) r.v[n] = f(x.v[n]);
        return r;
      })) return;
  single<R, 1>(out, l, first, [&](const i64* o) { return f(at<A>(l, 0, a, o[1])); });
}

template <class R, class A, class F>
__device__ inline void map2(char* out, const char* a, const char* b, const Loop& l, F f) {
  constexpr int N = 16 / Largest<R, A>::size;
  i64 first = THREAD * (l.mode == VECTOR ? N : 1);
  if (packed<R, N>(out, l, first, [&] {
        Pack<A, N> x = flat<A, N>(l, 0, a, first), y = flat<A, N>(l, 1, b, first);
        Pack<R, N> r;
#pragma unroll
        for (int n = 0; n < N; n++) r.v[n] = f(x.v[n], y.v[n]);
        return r;
      })) return;
  single<R, 2>(out, l, first,
               [&](const i64* o) { return f(at<A>(l, 0, a, o[1]), at<A>(l, 1, b, o[2])); });
}

template <class R, class A, class B, class C, class F>
__device__ inline void map3(
    char* out, const char* a, const char* b, const char* c, const Loop& l, F f) {
  constexpr int N = 16 / Largest<R, A, B, C>::size;
  i64 first = THREAD * (l.mode == VECTOR ? N : 1);
  if (packed<R, N>(out, l, first, [&] {
        Pack<A, N> x = flat<A, N>(l, 0, a, first);
        Pack<B, N> y = flat<B, N>(l, 1, b, first);
        Pack<C, N> z = flat<C, N>(l, 2, c, first);
        Pack<R, N> r;
#pragma unroll
        for (int n = 0; n < N; n++) r.v[n] = f(x.v[n], y.v[n], z.v[n]);
        return r;
      })) return;
  single<R, 3>(out, l, first, [&](const i64* o) {
    return f(at<A>(l, 0, a, o[1]), at<B>(l, 1, b, o[2]), at<C>(l, 2, c, o[3]));
  });
}
