// Rebuild: nvcc -ptx -arch=sm_75 graphs.cu -o graphs.ptx && sed -i 's/^.version .*/.version 8.3/' graphs.ptx
#include <cuda_device_runtime_api.h>
/* Work whose order shows in its result: each number becomes itself · factor + more. */
extern "C" __global__ void affine(int *numbers, int factor, int more, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] = numbers[i] * factor + more;
}
/* Counts a number down by one, and sets a condition to whether it is more than 0 now. */
extern "C" __global__ void countDown(cudaGraphConditionalHandle condition, int *number) {
  cudaGraphSetConditional(condition, --*number > 0);
}
/* Sets a condition to a number. */
extern "C" __global__ void choose(cudaGraphConditionalHandle condition, const int *number) {
  cudaGraphSetConditional(condition, *number);
}
