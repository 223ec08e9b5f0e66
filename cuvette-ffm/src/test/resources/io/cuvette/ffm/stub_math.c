// The functions of cuBLAS and of cuSOLVER that are called, which note their calls in the file that
// STUB_MATH_LOG names, or LOG where that is defined. Each fails with the number in
// STUB_MATH_STATUS, if there is one, or in stub_status.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int stub_status;
#ifdef LOG
#define LOG_FILE LOG
#else
#define LOG_FILE getenv("STUB_MATH_LOG")
#endif
#define H(h) (long long)(size_t)h
static int note(const char *call, long long a, long long b, long long c) {
  const char *status = getenv("STUB_MATH_STATUS");
  FILE *log = fopen(LOG_FILE, "a");
  fprintf(log, "%s %llx %llx %lld\n", call, a, b, c);
  fclose(log);
  return status ? atoi(status) : stub_status;
}

static long next = 0x100;

#define LIBRARY(create, destroy, stream) \
  int create(void **out) { *out = (void *)next++; return note(#create, 0, 0, 0); } \
  int destroy(void *h) { return note(#destroy, H(h), 0, 0); } \
  int stream(void *h, void *s) { return note(#stream, H(h), H(s), 0); }

#ifdef BLAS
LIBRARY(cublasCreate_v2, cublasDestroy_v2, cublasSetStream_v2)
int cublasSetWorkspace_v2(void *h, void *address, size_t bytes) {
  return note("cublasSetWorkspace_v2", H(h), H(address), bytes);
}
static void product(char *text, int transA, int transB, long long m, long long n, long long k, const double *one, void *a,
                    int typeA, long long leadingA, void *b, int typeB, long long leadingB, const double *zero, void *c,
                    int typeC, long long leadingC, int compute, int algorithm) {
  const float *parts = (const float *)one;
  sprintf(text, "%d%d %lldx%lldx%lld %g+%gi a=%llx:%d/%lld b=%llx:%d/%lld %g+%gi c=%llx:%d/%lld %d %d", transA, transB,
          m, n, k, compute == 70 ? one[0] : parts[0], compute == 70 ? one[1] : parts[1], H(a), typeA, leadingA, H(b), typeB,
          leadingB, zero[0], zero[1], H(c), typeC, leadingC, compute, algorithm);
}
int cublasGemmEx_64(void *h, int transA, int transB, long long m, long long n, long long k, const void *one, void *a,
                    int typeA, long long leadingA, void *b, int typeB, long long leadingB, const void *zero, void *c,
                    int typeC, long long leadingC, int compute, int algorithm) {
  char text[500] = "cublasGemmEx_64 ";
  product(text + 16, transA, transB, m, n, k, one, a, typeA, leadingA, b, typeB, leadingB, zero, c, typeC, leadingC,
          compute, algorithm);
  return note(text, H(h), 0, 0);
}
int cublasGemmStridedBatchedEx_64(void *h, int transA, int transB, long long m, long long n, long long k,
                                  const void *one, void *a, int typeA, long long leadingA, long long strideA, void *b,
                                  int typeB, long long leadingB, long long strideB, const void *zero, void *c, int typeC,
                                  long long leadingC, long long strideC, long long batch, int compute, int algorithm) {
  char text[500] = "cublasGemmStridedBatchedEx_64 ";
  product(text + 30, transA, transB, m, n, k, one, a, typeA, leadingA, b, typeB, leadingB, zero, c, typeC, leadingC,
          compute, algorithm);
  sprintf(text + strlen(text), " strides %lld %lld %lld", strideA, strideB, strideC);
  return note(text, H(h), batch, 0);
}
int cublasGetProperty(int which, int *value) { *value = 13 + which; return note("cublasGetProperty", which, 0, 0); }
#else
LIBRARY(cusolverDnCreate, cusolverDnDestroy, cusolverDnSetStream)
LIBRARY(cusolverSpCreate, cusolverSpDestroy, cusolverSpSetStream)
int cusolverGetProperty(int which, int *value) { *value = 12 - which; return note("cusolverGetProperty", which, 0, 0); }
#endif
