// What is done with each element. The twins in Java (internal.twin) do the same.
#pragma once
#include "types.cuh"

template <class R> __device__ inline Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R> __device__ inline Complex<R> operator-(Complex<R> a, Complex<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R> __device__ inline Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// By Smith's method, which does not overflow in between.
template <class R> __device__ inline Complex<R> operator/(Complex<R> a, Complex<R> b) {
  if (fabs(b.re) >= fabs(b.im)) {
    if (b.re == 0 && b.im == 0) return {a.re / fabs(b.re), a.im / fabs(b.re)};
    R ratio = b.im / b.re, scale = b.re + b.im * ratio;
    return {(a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale};
  }
  R ratio = b.re / b.im, scale = b.re * ratio + b.im;
  return {(a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale};
}
template <class R> __device__ inline bool operator==(Complex<R> a, Complex<R> b) {
  return a.re == b.re && a.im == b.im;
}
template <class R> __device__ inline bool operator!=(Complex<R> a, Complex<R> b) {
  return !(a == b);
}

__device__ inline float fabsOf(float x) { return fabsf(x); }
__device__ inline double fabsOf(double x) { return fabs(x); }

// Integers without surprises: the sum and the product wrap around.
template <class C> __device__ inline C wrap(u64 x) { return (C)x; }

template <class C> __device__ inline C add(C a, C b) {
  if constexpr (IsBool<C>::value) return a || b;
  else if constexpr (IsInt<C>::value) return wrap<C>((u64)a + (u64)b);
  else return a + b;
}
template <class C> __device__ inline C subtract(C a, C b) {
  if constexpr (IsInt<C>::value) return wrap<C>((u64)a - (u64)b);
  else return a - b;
}
template <class C> __device__ inline C multiply(C a, C b) {
  if constexpr (IsBool<C>::value) return a && b;
  else if constexpr (IsInt<C>::value) return wrap<C>((u64)a * (u64)b);
  else return a * b;
}
template <class C> __device__ inline C divide(C a, C b) { return a / b; }

// Towards minus infinity; by 0 it is 0 for integers, as in NumPy.
template <class C> __device__ inline C floorDivide(C a, C b) {
  if constexpr (IsInt<C>::value) {
    if (b == 0) return 0;
    if (Range<C>::low < 0 && b == (C)-1) return wrap<C>(0 - (u64)a);
    C q = a / b;
    return (C)(q * b != a && ((a < 0) != (b < 0)) ? q - 1 : q);
  } else {
    return floor(a / b);
  }
}
// Of the sign of the divisor. CUDA's own remainder is that of the nearest quotient.
template <class C> __device__ inline C floorRemainder(C a, C b) {
  if constexpr (IsInt<C>::value) {
    if (b == 0 || (Range<C>::low < 0 && b == (C)-1)) return 0;
    C r = a % b;
    return (C)(r != 0 && ((r < 0) != (b < 0)) ? r + b : r);
  } else {
    C r = fmod(a, b);
    if (r == 0) return copysign(C(0), b);
    return (r < 0) != (b < 0) ? r + b : r;
  }
}
template <class C> __device__ inline C power(C a, C b) {
  if constexpr (IsInt<C>::value) {
    if (b < 0) return a == 1 ? 1 : a == (C)-1 ? (b % 2 == 0 ? 1 : -1) : 0;
    u64 result = 1, base = (u64)a;
    for (u64 e = (u64)b; e != 0; e >>= 1) {
      if (e & 1) result *= base;
      base *= base;
    }
    return wrap<C>(result);
  } else {
    return pow(a, b);
  }
}
template <class C> __device__ inline C minimum(C a, C b) {
  if constexpr (IsReal<C>::value) {
    if (a != a) return a;
    if (b != b) return b;
  }
  return b < a ? b : a;
}
template <class C> __device__ inline C maximum(C a, C b) {
  if constexpr (IsReal<C>::value) {
    if (a != a) return a;
    if (b != b) return b;
  }
  return b > a ? b : a;
}

template <class C> __device__ inline C negate(C a) {
  if constexpr (IsComplex<C>::value) return C{-a.re, -a.im};
  else if constexpr (IsInt<C>::value) return wrap<C>(0 - (u64)a);
  else return -a;
}
// |a| of a complex number, scaled so that it does not overflow in between.
template <class C> __device__ inline typename IsComplex<C>::Real absolute(C a) {
  if constexpr (IsComplex<C>::value) return hypot(a.re, a.im);
  else if constexpr (IsInt<C>::value) return a < 0 ? wrap<C>(0 - (u64)a) : a;
  else if constexpr (IsBool<C>::value) return a;
  else return fabsOf(a);
}
template <class C> __device__ inline C square(C a) { return multiply(a, a); }
template <class C> __device__ inline C sign(C a) {
  if constexpr (IsReal<C>::value) {
    return a > 0 ? C(1) : a < 0 ? C(-1) : a;
  } else {
    return a > 0 ? 1 : a < 0 ? (C)-1 : 0;
  }
}
