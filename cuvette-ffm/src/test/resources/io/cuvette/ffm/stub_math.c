// The functions of cuBLAS and of cuSOLVER that are called, which note their calls in the file that
// STUB_MATH_LOG names. Each fails with the number in STUB_MATH_STATUS, if there is one.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>


static int note(const char *call, long long a, long long b, long long c) {
  const char *status = getenv("STUB_MATH_STATUS");
  FILE *log = fopen(getenv("STUB_MATH_LOG"), "a");
  fprintf(log, "%s %llx %llx %lld\n", call, a, b, c);
  fclose(log);
  return status ? atoi(status) : 0;
}

#define H(h) (long long)(size_t)h
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
int cublasGetProperty(int which, int *value) { *value = 13 + which; return note("cublasGetProperty", which, 0, 0); }
#else
LIBRARY(cusolverDnCreate, cusolverDnDestroy, cusolverDnSetStream)
LIBRARY(cusolverSpCreate, cusolverSpDestroy, cusolverSpSetStream)
int cusolverGetProperty(int which, int *value) { *value = 12 - which; return note("cusolverGetProperty", which, 0, 0); }
#endif
