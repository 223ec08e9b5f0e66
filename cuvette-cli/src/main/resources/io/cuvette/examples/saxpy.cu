// Rebuild: nvcc -ptx -arch=sm_75 saxpy.cu -o saxpy.ptx && sed -i 's/^.version .*/.version 8.0/' saxpy.ptx
/* y = a x + y */
extern "C" __global__ void saxpy(float a, const float *x, float *y, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = a * x[i] + y[i];
}
