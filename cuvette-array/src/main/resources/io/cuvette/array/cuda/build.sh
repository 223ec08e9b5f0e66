#!/bin/sh
# Compiles the kernels to PTX that drivers since CUDA 12.0 take, for GPUs since compute capability
# 7.5: needs nvcc. The results lie in ptx/ beside this script and belong into the repository.
set -e
cd "$(dirname "$0")"
rm -rf ptx
mkdir ptx
compile() { # result, source, definitions
  result=ptx/$1.ptx
  source=$2
  shift 2
  nvcc -std=c++17 -diag-suppress 186 -fmad=false -arch=compute_75 --ptx "$@" -o "$result" "$source"
  # No instruction in it is newer than PTX 8.0, which is that of CUDA 12.0; ptxas checks it.
  sed -i -e 's/^\.version .*/.version 8.0/' -e '/^\/\//d' -e '/^[[:space:]]*\/\//d' -e '/^$/d' "$result"
  if [ -n "$CHECK" ]; then
    for architecture in sm_75 sm_90; do
      ptxas -arch=$architecture -o /dev/null "$result"
    done
  fi
  gzip -9n "$result"
}
for each in bool:0 i8:1 i16:1 i32:1 i64:1 u8:1 u16:1 u32:1 u64:1 f16:2 bf16:2 f32:2 f64:2 c64:3 c128:3; do
  type=${each%:*}
  kind=${each#*:}
  compile "${type}_elements" elements.cu -DTYPE="$type" -DKIND="$kind" -DPART=0
  [ "$kind" != 2 ] || compile "${type}_maths" elements.cu -DTYPE="$type" -DKIND="$kind" -DPART=1
  compile "${type}_reductions" elements.cu -DTYPE="$type" -DKIND="$kind" -DPART=2
done
compile common common.cu
cat *.cu *.cuh build.sh | sha256sum | cut -d' ' -f1 > ptx/sources.sha256
