// The types of elements, and how they are converted. Compiled without contraction (-fmad=false),
// so that the arithmetic of the twins in Java rounds alike.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef __half f16;
typedef __nv_bfloat16 bf16;
typedef float f32;
typedef double f64;

template <class R>
struct Complex {
  typedef R Real;
  R re, im;
};
typedef Complex<float> c64;
typedef Complex<double> c128;

// What is computed in: float for half and bfloat16, else the type itself.
template <class T> struct In { typedef T Type; };
template <> struct In<f16> { typedef float Type; };
template <> struct In<bf16> { typedef float Type; };

template <class T> struct IsComplex { static constexpr bool value = false; typedef T Real; };
template <class R> struct IsComplex<Complex<R>> { static constexpr bool value = true; typedef R Real; };

template <class T> struct IsInt { static constexpr bool value = T(0.5f) == T(0); };
template <> struct IsInt<bool> { static constexpr bool value = false; };
template <> struct IsInt<f16> { static constexpr bool value = false; };
template <> struct IsInt<bf16> { static constexpr bool value = false; };
template <class R> struct IsInt<Complex<R>> { static constexpr bool value = false; };
template <class T> struct IsBool { static constexpr bool value = false; };
template <> struct IsBool<bool> { static constexpr bool value = true; };
template <class T> struct IsReal { static constexpr bool value = false; };
template <> struct IsReal<f16> { static constexpr bool value = true; };
template <> struct IsReal<bf16> { static constexpr bool value = true; };
template <> struct IsReal<float> { static constexpr bool value = true; };
template <> struct IsReal<double> { static constexpr bool value = true; };

template <class T> struct Range;
#define RANGE(T, LOW, HIGH, BITS) \
  template <> struct Range<T> { \
    static constexpr T low = (T)(LOW); static constexpr T high = (T)(HIGH); \
    static constexpr double bound = BITS; };
RANGE(i8, -128, 127, 128.0)
RANGE(i16, -32768, 32767, 32768.0)
RANGE(i32, -2147483647 - 1, 2147483647, 2147483648.0)
RANGE(i64, -9223372036854775807LL - 1, 9223372036854775807LL, 9223372036854775808.0)
RANGE(u8, 0, 255, 256.0)
RANGE(u16, 0, 65535, 65536.0)
RANGE(u32, 0, 4294967295u, 4294967296.0)
RANGE(u64, 0, 18446744073709551615ull, 18446744073709551616.0)

__device__ inline float wide(f16 x) { return __half2float(x); }
__device__ inline float wide(bf16 x) { return __bfloat162float(x); }
template <class T> __device__ inline T wide(T x) { return x; }

// To an integer: towards zero, saturating; NaN is 0.
template <class To, class From>
__device__ inline To saturated(From x) {
  const double bound = Range<To>::bound;
  if (x != x) return 0;
  if ((double)x >= bound) return Range<To>::high;
  if ((double)x <= (double)Range<To>::low) return Range<To>::low;
  return (To)x;
}

template <class To> struct Cast {
  template <class From> static __device__ inline To of(From x) {
    if constexpr (IsComplex<From>::value) {
      return Cast<To>::of(x.re);
    } else if constexpr (IsReal<From>::value && IsInt<To>::value) {
      return saturated<To>(wide(x));
    } else {
      return (To)wide(x);
    }
  }
};
template <> struct Cast<bool> {
  template <class From> static __device__ inline bool of(From x) {
    if constexpr (IsComplex<From>::value) {
      return x.re != 0 || x.im != 0;
    } else {
      return wide(x) != 0;
    }
  }
};
template <> struct Cast<f16> {
  template <class From> static __device__ inline f16 of(From x) {
    if constexpr (IsComplex<From>::value) {
      return of(x.re);
    } else if constexpr (sizeof(From) == 8 && !IsInt<From>::value) {
      return __double2half(x);
    } else {
      return __float2half_rn((float)wide(x));
    }
  }
};
// Rounded to odd: what is rounded again is rounded as if once.
template <class From> __device__ inline float sticky(From x) {
  float cut;
  bool isExact;
  if constexpr (Range<From>::low < 0) {
    cut = __ll2float_rz(x);
    isExact = __float2ll_rz(cut) == x;
  } else {
    cut = __ull2float_rz(x);
    isExact = __float2ull_rz(cut) == x;
  }
  return isExact ? cut : __int_as_float(__float_as_int(cut) | 1);
}
template <> struct Cast<bf16> {
  template <class From> static __device__ inline bf16 of(From x) {
    if constexpr (IsComplex<From>::value) {
      return of(x.re);
    } else if constexpr (IsInt<From>::value) {
      return __float2bfloat16_rn(sticky(x));
    } else if constexpr (sizeof(From) == 8) {
      return __double2bfloat16(x);
    } else {
      return __float2bfloat16_rn((float)wide(x));
    }
  }
};
template <class R> struct Cast<Complex<R>> {
  template <class From> static __device__ inline Complex<R> of(From x) {
    if constexpr (IsComplex<From>::value) {
      return Complex<R>{(R)x.re, (R)x.im};
    } else {
      return Complex<R>{Cast<R>::of(x), 0};
    }
  }
};

// From what was computed to what is stored.
template <class T, class C> __device__ inline T narrow(C x) {
  if constexpr (sizeof(T) == sizeof(C) && !IsBool<T>::value && !IsBool<C>::value) {
    return x;
  } else {
    return Cast<T>::of(x);
  }
}
