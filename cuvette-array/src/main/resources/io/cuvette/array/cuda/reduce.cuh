// Reductions: each result is that of a fixed tree over its elements, so that it does not depend on
// the device nor on the time.
#pragma once
#include "functions.cuh"
#include "loop.cuh"

#define THREADS 256

struct Reduction {
  i64 results;
  i64 elements;   // of each result
  i64 splits;     // blocks for each result
  i64 chunk;      // elements of a split
  i64 inOffset;   // in bytes
  i64 outOffset;
  i32 keptRank;
  i32 reducedRank;
  i32 columns;    // whether a thread has a result of its own
  i32 partials;   // bit 0: reads partial results, bit 1: writes them
  i64 total;      // what a mean divides by
  i64 unused;
  i64 keptShape[MAX_RANK];
  i64 keptStride[MAX_RANK];  // in bytes, of the operand
  i64 outStride[MAX_RANK];
  i64 reducedShape[MAX_RANK];
  i64 reducedStride[MAX_RANK];
};
static_assert(sizeof(Reduction) == 1360, "as in ReductionArgument.java");

// What sums are kept in.
template <class T> struct Wide { typedef i64 Type; };
template <> struct Wide<u8> { typedef u64 Type; };
template <> struct Wide<u16> { typedef u64 Type; };
template <> struct Wide<u32> { typedef u64 Type; };
template <> struct Wide<u64> { typedef u64 Type; };
template <> struct Wide<f16> { typedef float Type; };
template <> struct Wide<bf16> { typedef float Type; };
template <> struct Wide<float> { typedef float Type; };
template <> struct Wide<double> { typedef double Type; };
template <class R> struct Wide<Complex<R>> { typedef Complex<R> Type; };

// What the result of a sum is stored as: half and bfloat16 again, else what it is kept in.
template <class T> struct Total { typedef typename Wide<T>::Type Type; };
template <> struct Total<f16> { typedef f16 Type; };
template <> struct Total<bf16> { typedef bf16 Type; };

template <class T> struct Sum {
  typedef typename Wide<T>::Type Acc;
  typedef typename Total<T>::Type Out;
  static __device__ Acc zero() { return Cast<Acc>::of(0); }
  static __device__ Acc of(T x, i64) { return Cast<Acc>::of(wide(x)); }
  static __device__ Acc join(Acc a, Acc b) { return add(a, b); }
  static __device__ Out done(Acc a, i64) { return narrow<Out>(a); }
};
template <class T> struct Product : Sum<T> {
  typedef typename Wide<T>::Type Acc;
  static __device__ Acc zero() { return Cast<Acc>::of(1); }
  static __device__ Acc join(Acc a, Acc b) { return multiply(a, b); }
};
// Of integers in double.
template <class T> struct MeanOf { typedef typename Wide<T>::Type Acc; typedef typename Total<T>::Type Out; };
#define MEAN_IN_DOUBLE(T) template <> struct MeanOf<T> { typedef double Acc; typedef double Out; };
MEAN_IN_DOUBLE(bool) MEAN_IN_DOUBLE(i8) MEAN_IN_DOUBLE(i16) MEAN_IN_DOUBLE(i32) MEAN_IN_DOUBLE(i64)
MEAN_IN_DOUBLE(u8) MEAN_IN_DOUBLE(u16) MEAN_IN_DOUBLE(u32) MEAN_IN_DOUBLE(u64)
template <class T> struct Mean {
  typedef typename MeanOf<T>::Acc Acc;
  typedef typename MeanOf<T>::Out Out;
  static __device__ Acc zero() { return Cast<Acc>::of(0); }
  static __device__ Acc of(T x, i64) { return Cast<Acc>::of(wide(x)); }
  static __device__ Acc join(Acc a, Acc b) { return a + b; }
  static __device__ Out done(Acc a, i64 n) {
    typedef typename IsComplex<Acc>::Real R;
    if constexpr (IsComplex<Acc>::value) return Acc{a.re / (R)n, a.im / (R)n};
    else return narrow<Out>(a / (R)n);
  }
};
template <class T> struct Any {
  typedef bool Acc;
  typedef bool Out;
  static __device__ bool zero() { return false; }
  static __device__ bool of(T x, i64) { return Cast<bool>::of(x); }
  static __device__ bool join(bool a, bool b) { return a | b; }
  static __device__ bool done(bool a, i64) { return a; }
};
template <class T> struct All : Any<T> {
  static __device__ bool zero() { return true; }
  static __device__ bool join(bool a, bool b) { return a & b; }
};

// An element and where it was: the first NaN, else the first of the extreme ones.
template <class C> struct Found { C value; i64 index; };
template <class T, bool LEAST> struct Arg {
  typedef typename In<T>::Type C;
  typedef Found<C> Acc;
  typedef i64 Out;
  static __device__ Acc zero() { return Acc{C(0), -1}; }
  static __device__ Acc of(T x, i64 i) { return Acc{(C)wide(x), i}; }
  static __device__ Acc join(Acc a, Acc b) {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    bool aNan = a.value != a.value, bNan = b.value != b.value;
    if (aNan != bNan) return aNan ? a : b;
    if (!aNan) {
      if (LEAST ? a.value < b.value : a.value > b.value) return a;
      if (LEAST ? b.value < a.value : b.value > a.value) return b;
    }
    return a.index < b.index ? a : b;
  }
  static __device__ i64 done(Acc a, i64) { return a.index; }
};
template <class T> struct ArgLeast : Arg<T, true> {};
template <class T> struct ArgGreatest : Arg<T, false> {};
template <class T> struct Least : Arg<T, true> {
  typedef T Out;
  static __device__ T done(typename Arg<T, true>::Acc a, i64) { return narrow<T>(a.value); }
};
template <class T> struct Greatest : Arg<T, false> {
  typedef T Out;
  static __device__ T done(typename Arg<T, false>::Acc a, i64) { return narrow<T>(a.value); }
};

__device__ inline i64 placed(i64 index, i32 rank, const i64* shape, const i64* stride) {
  i64 result = 0;
#pragma unroll 1
  for (int d = 0; d < rank - 1; d++) {
    i64 extent = shape[d];
    i64 next = (u64)(index | extent) >> 32 == 0 ? (i64)((u32)index / (u32)extent) : index / extent;
    result += (index - next * extent) * stride[d];
    index = next;
  }
  return rank == 0 ? 0 : result + index * stride[rank - 1];
}

template <class O, class T>
__device__ inline void finish(char* out, const Reduction& r, i64 m, i64 split,
                              typename O::Acc value) {
  if (r.partials & 2) {
    reinterpret_cast<typename O::Acc*>(out + r.outOffset)[m * r.splits + split] = value;
  } else {
    i64 at = placed(m, r.keptRank, r.keptShape, r.outStride);
    *reinterpret_cast<typename O::Out*>(out + r.outOffset + at) = O::done(value, r.total);
  }
}

// The elements from first to last in steps; those of partial results lie side by side.
template <class O, class T>
__device__ inline typename O::Acc gathered(
    const char* in, const Reduction& r, i64 base, i64 first, i64 last, i64 step) {
  typedef typename O::Acc Acc;
  in += base;
  Acc sum = O::zero();
  if (r.partials & 1) {
#pragma unroll 1
    for (i64 j = first; j < last; j += step)
      sum = O::join(sum, reinterpret_cast<const Acc*>(in)[j]);
  } else if (r.reducedRank == 1) {
    i64 stride = r.reducedStride[0];
    Acc more[3] = {O::zero(), O::zero(), O::zero()};
    i64 j = first;
#pragma unroll 1
    for (; j + 3 * step < last; j += 4 * step) {
      T x[4];
#pragma unroll
      for (int n = 0; n < 4; n++)
        x[n] = *reinterpret_cast<const T*>(in + (j + n * step) * stride);
      sum = O::join(sum, O::of(x[0], j));
#pragma unroll
      for (int n = 1; n < 4; n++) more[n - 1] = O::join(more[n - 1], O::of(x[n], j + n * step));
    }
#pragma unroll 1
    for (; j < last; j += step)
      sum = O::join(sum, O::of(*reinterpret_cast<const T*>(in + j * stride), j));
    sum = O::join(O::join(sum, more[0]), O::join(more[1], more[2]));
  } else {
#pragma unroll 1
    for (i64 j = first; j < last; j += step) {
      i64 at = placed(j, r.reducedRank, r.reducedShape, r.reducedStride);
      sum = O::join(sum, O::of(*reinterpret_cast<const T*>(in + at), j));
    }
  }
  return sum;
}

template <class O, class T>
__device__ inline void reduce(char* out, const char* in, const Reduction& r) {
  typedef typename O::Acc Acc;
  i64 m = r.columns ? THREAD : (i64)blockIdx.x / r.splits;
  if (m >= r.results) return;
  i64 split = r.columns ? blockIdx.y : (i64)blockIdx.x % r.splits;
  i64 first = split * r.chunk;
  i64 last = first + r.chunk < r.elements ? first + r.chunk : r.elements;
  i64 base = r.inOffset + (r.partials & 1
                               ? m * r.elements * (i64)sizeof(Acc)
                               : placed(m, r.keptRank, r.keptShape, r.keptStride));
  Acc sum = gathered<O, T>(in, r, base, r.columns ? first : first + threadIdx.x, last,
                           r.columns ? 1 : THREADS);
  if (!r.columns) {
    __shared__ alignas(16) unsigned char room[THREADS * sizeof(Acc)];
    Acc* shared = reinterpret_cast<Acc*>(room);
    shared[threadIdx.x] = sum;
#pragma unroll 1
    for (int half = THREADS / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half)
        shared[threadIdx.x] = O::join(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    if (threadIdx.x != 0) return;
    sum = shared[0];
  }
  finish<O, T>(out, r, m, split, sum);
}

#define REDUCE(OP, FUNCTION) \
  extern "C" __global__ void NAME(OP)(char* out, const char* in, const __grid_constant__ Reduction r) { \
    reduce<FUNCTION<T>, T>(out, in, r); \
  }
