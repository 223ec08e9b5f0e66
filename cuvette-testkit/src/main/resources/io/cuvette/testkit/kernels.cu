// Rebuild: nvcc -ptx -arch=sm_75 kernels.cu -o kernels.ptx && sed -i 's/^.version .*/.version 8.0/' kernels.ptx
struct Pair { float first; double second; };
extern "C" __global__ void add(const float *a, const float *b, float *sum, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void mixed(char c, short s, double d, Pair pair, long long *out) {
  *out = c + s + (long long)(d + pair.first + pair.second);
}
