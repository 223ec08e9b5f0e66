// The kernels for one type of elements: with -DTYPE=f32, cuvette_add_f32 and its like. KIND is 0 for
// bool, 1 for integers, 2 for real and 3 for complex numbers.
#include "functions.cuh"
#include "loop.cuh"
#include "reduce.cuh"

#define JOIN_(A, B, C) A##B##_##C
#define JOIN(A, B, C) JOIN_(A, B, C)
#define NAME(OP) JOIN(cuvette_, OP, TYPE)

typedef TYPE T;
typedef In<T>::Type C;  // what is computed in
typedef IsComplex<T>::Real Part;

#define UNARY(OP, RESULT, BODY) \
  extern "C" __global__ void NAME(OP)(char* out, const char* a, const char*, const char*, \
                                      const __grid_constant__ Loop l) { \
    map1<RESULT, T>(out, a, l, [](T given) -> RESULT { \
      C x = wide(given); \
      return narrow<RESULT>(BODY); \
    }); \
  }
// Of a function that is long: it is there once, and called.
#define LONG_UNARY(OP) \
  __device__ __noinline__ static C NAME(OP##_of)(C x) { return OP(x); } \
  UNARY(OP, T, NAME(OP##_of)(x))
#define LONG_BINARY(OP) LONG_BINARY_BY(OP, OP)
#define LONG_BINARY_BY(OP, FUNCTION) \
  __device__ __noinline__ static C NAME(OP##_of)(C x, C y) { return FUNCTION(x, y); } \
  BINARY(OP, T, NAME(OP##_of)(x, y))
#define BINARY(OP, RESULT, BODY) \
  extern "C" __global__ void NAME(OP)(char* out, const char* a, const char* b, const char*, \
                                      const __grid_constant__ Loop l) { \
    map2<RESULT, T>(out, a, b, l, [](T first, T second) -> RESULT { \
      C x = wide(first), y = wide(second); \
      return narrow<RESULT>(BODY); \
    }); \
  }
#define CAST(FROM) \
  extern "C" __global__ void NAME(from_##FROM)(char* out, const char* a, const char*, const char*, \
                                               const __grid_constant__ Loop l) { \
    map1<T, FROM>(out, a, l, [](FROM x) -> T { return Cast<T>::of(x); }); \
  }

#if PART == 0  // arithmetic, comparison, copies and conversions
CAST(bool) CAST(i8) CAST(i16) CAST(i32) CAST(i64) CAST(u8) CAST(u16) CAST(u32) CAST(u64)
CAST(f16) CAST(bf16) CAST(f32) CAST(f64) CAST(c64) CAST(c128)

extern "C" __global__ void NAME(where)(char* out, const char* a, const char* b, const char* c,
                                       const __grid_constant__ Loop l) {
  map3<T, bool, T, T>(out, a, b, c, l, [](bool x, T y, T z) -> T { return x ? y : z; });
}

BINARY(add, T, add(x, y))
BINARY(multiply, T, multiply(x, y))
BINARY(equal, bool, x == y)
BINARY(notEqual, bool, x != y)

#if KIND != 0  // no bool
BINARY(subtract, T, subtract(x, y))
UNARY(negate, T, negate(x))
UNARY(square, T, square(x))
#endif
UNARY(abs, Part, absolute(x))

#if KIND != 3  // no complex numbers: what has an order
BINARY(less, bool, x < y)
BINARY(lessEqual, bool, x <= y)
BINARY(greater, bool, x > y)
BINARY(greaterEqual, bool, x >= y)
BINARY(minimum, T, minimum(x, y))
BINARY(maximum, T, maximum(x, y))
extern "C" __global__ void NAME(clip)(char* out, const char* a, const char* b, const char* c,
                                      const __grid_constant__ Loop l) {
  map3<T, T, T, T>(out, a, b, c, l, [](T x, T low, T high) -> T {
    return narrow<T>(minimum(maximum((C)wide(x), (C)wide(low)), (C)wide(high)));
  });
}
#endif

#if KIND == 0 || KIND == 1  // bool and integers
BINARY(bitAnd, T, (T)(x & y))
BINARY(bitOr, T, (T)(x | y))
BINARY(bitXor, T, (T)(x ^ y))
#if KIND == 0
UNARY(bitNot, T, !x)
#else
UNARY(bitNot, T, (T)~x)
#endif
#endif

#if KIND == 1 || KIND == 2  // numbers with an order
LONG_BINARY(floorDivide)
LONG_BINARY_BY(remainder, floorRemainder)
LONG_BINARY(power)
UNARY(sign, T, sign(x))
#endif

#if KIND == 2 || KIND == 3
LONG_BINARY(divide)
#endif


#if KIND == 3
UNARY(conjugate, T, (C{x.re, -x.im}))
UNARY(real, Part, x.re)
UNARY(imag, Part, x.im)
#endif
#endif

#if PART == 1  // functions of real numbers
UNARY(sqrt, T, sqrt(x))
LONG_UNARY(cbrt)
LONG_UNARY(exp)
LONG_UNARY(exp2)
LONG_UNARY(expm1)
LONG_UNARY(log)
LONG_UNARY(log2)
LONG_UNARY(log10)
LONG_UNARY(log1p)
LONG_UNARY(sin)
LONG_UNARY(cos)
LONG_UNARY(tan)
LONG_UNARY(asin)
LONG_UNARY(acos)
LONG_UNARY(atan)
LONG_UNARY(sinh)
LONG_UNARY(cosh)
LONG_UNARY(tanh)
UNARY(floor, T, floor(x))
UNARY(ceil, T, ceil(x))
UNARY(rint, T, rint(x))
UNARY(trunc, T, trunc(x))
UNARY(isNan, bool, x != x)
UNARY(isInfinite, bool, fabsOf(x) == INFINITY)
UNARY(isFinite, bool, fabsOf(x) < INFINITY)
LONG_BINARY(atan2)
LONG_BINARY(hypot)
#endif

#if PART == 2  // reductions
REDUCE(sum, Sum)
REDUCE(prod, Product)
REDUCE(mean, Mean)
REDUCE(any, Any)
REDUCE(all, All)
#if KIND != 3
REDUCE(min, Least)
REDUCE(max, Greatest)
REDUCE(argmin, ArgLeast)
REDUCE(argmax, ArgGreatest)
#endif
#endif
